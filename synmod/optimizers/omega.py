"""Omega: quality and diversity over joint candidates."""

import re
from collections import Counter
from collections.abc import Sequence
from math import exp, fsum, inf, sqrt
from random import Random
from typing import Any, Final

from synmod.data import dump_json
from synmod.registry import register_own
from synmod.train import Bench, crossover, real_number, whole_numbers
from synmod.tree import OptState, State

from .reflection import Pool, Reflective, evidence, minibatches

_WORD: Final = re.compile(r"\w+")


@register_own()
class Omega(Reflective):
    """Breeds a population that is good and unlike each other: by reflection, and by mixing two members path by path.

    Candidates are whole States: what is kept has run together.

    Args:
        population: Members that survive a step.
        width: Slots per step.
        minibatch: Train rows per slot.
        block: Validation rows that a new member is run on, and that each of the three best get more per step.
        lcb: How many standard errors a bound lies below the mean.
        temperature: How evenly parents are drawn: 0 for the best alone.
        crossover: The share of slots that mix two members.
        neighbours: Better members that a member is compared with.
        patience: Steps without a new best candidate until it is done.
        **options: Those of every optimizer.

    Raises:
        TrainerError: A number that cannot be.

    Example:
        >>> Omega(population=6).width
        4

    Source: Synalinks' OMEGA, dominated novelty search; differs: candidates are scored as they run, all paths together.
    """

    def __init__(
        self,
        population: int = 10,
        width: int = 4,
        minibatch: int = 4,
        block: int = 8,
        lcb: float = 0.25,
        temperature: float = 0.3,
        crossover: float = 0.25,
        neighbours: int = 5,
        patience: int = 15,
        **options: Any,
    ) -> None:
        super().__init__(patience=patience, **options)
        self.width, self.minibatch, self.block = whole_numbers(self, width=width, minibatch=minibatch, block=block)
        self.population, self.neighbours = whole_numbers(self, population=population, neighbours=neighbours)
        self.lcb, self.temperature = real_number(self, "lcb", lcb), real_number(self, "temperature", temperature)
        self.crossover = real_number(self, "crossover", crossover, most=1)
        self.pool = self.add_variable([], schema={"type": "array"}, name="pool", type=OptState)

    def step_cost(self, bench: Bench) -> int:
        """Return the rollouts of parents and children, of the first block of each child, and of the growth."""
        rows = min(self.width * self.minibatch, len(bench.train))
        return 2 * rows + (self.width + 4) * min(self.block, len(bench.validation))

    async def update(self, state: State, feedback: Any, bench: Bench) -> State:  # noqa: ARG002  (of every optimizer)
        """Take one step; return the candidate with the highest bound."""
        pool, first = Pool(self.pool, bench, self.lcb), bench.validation[: self.block]
        await bench.evaluate(bench.seed, first)
        incumbent = pool.best_first()[0]
        mixed, parents = self._draw(bench, pool)
        batches = minibatches(bench, parents, self.minibatch)
        pairs = [(parent, rows) for parent, rows in zip(parents, batches, strict=True) if rows]
        evidences = await bench.gather(*(evidence(bench, parent, rows) for parent, rows in pairs))
        mutated = await self.survivors(bench, self.assign_slots(bench, evidences, joint=self.idle.value > 0))
        children = list(dict.fromkeys([*mixed, *(child.state for child in mutated)]))
        await bench.gather(*(bench.evaluate(child, first) for child in children))
        pool.keep([*pool.members(), *children])
        best = pool.best_first()[:3]
        await bench.gather(*(bench.evaluate(member, bench.missing(member)[: self.block]) for member in best))
        pool.keep(self._select_survivors(pool))
        members, leader = pool.members(), pool.best_first()[0]
        for child in mutated:
            self.remember(child, accepted=child.state in members)
        for child in children:
            word = "accepted" if child in members else "worse"
            bench.log("crossover" if child in mixed else "reflect", bench.seed.diff(child), word, rows=len(first))
        self.note(leader != incumbent)
        return leader

    def _draw(self, bench: Bench, pool: Pool) -> tuple[list[State], list[State]]:
        """Return new mixtures of two members, and the parents of the slots that reflect."""
        mixed: list[State] = []
        parents: list[State] = []
        members = pool.members()
        for number in range(self.width):
            rng = bench.rng(f"slots/{number}")
            parent = self._parent(bench, rng, members, pool)
            mates = [member for member in members if member != parent]
            if not mates or len(parent) < 2 or rng.random() >= self.crossover:
                parents.append(parent)
                continue
            mate = self._parent(bench, rng, mates, pool)
            child = crossover(parent, mate, [rng.random() < 0.5 for _ in parent])
            if child in mixed or bench.knows(child):
                bench.log("crossover", bench.seed.diff(child), "duplicate")
                continue
            bench.candidate(child, parent, mate, operator="crossover")
            mixed.append(child)
        return mixed, parents

    def _parent(self, bench: Bench, rng: Random, members: Sequence[State], pool: Pool) -> State:
        """Draw a member, the likelier the higher its bound."""
        bounds = [pool.bound(member) for member in members]
        heat = max(self.temperature * bench.width, 1e-9)
        return rng.choices(members, [exp((bound - max(bounds)) / heat) for bound in bounds])[0]

    def _select_survivors(self, pool: Pool) -> list[State]:
        """Return the members that are furthest from their nearest better ones, oldest first; the best always."""
        ranked = pool.best_first()
        counts = [_features(member) for member in ranked]
        fitness: dict[State, float] = {}
        for place, member in enumerate(ranked):
            near = sorted(_distance(counts[place], better) for better in counts[:place])[: self.neighbours]
            fitness[member] = fsum(near) / len(near) if near else inf
        survivors = set(sorted(ranked, key=lambda member: -fitness[member])[: self.population])
        return [member for member in pool.members() if member in survivors]


def _features(state: State) -> Counter[str]:
    """Count the words and the groups of three letters of the values."""
    text = " ".join(dump_json(leaf.value) for leaf in state.values()).lower()
    return Counter([*_WORD.findall(text), *(text[at : at + 3] for at in range(len(text) - 2))])


def _distance(a: Counter[str], b: Counter[str]) -> float:
    """Return 1 less the cosine of two counts."""
    product = sum(count * b[feature] for feature, count in a.items())
    norms = sum(count * count for count in a.values()) * sum(count * count for count in b.values())
    return 1 - product / sqrt(norms) if norms else 0.0
