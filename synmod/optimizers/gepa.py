"""Gepa: reflective evolution on a Pareto pool."""

from __future__ import annotations

from collections.abc import Sequence
from math import fsum
from random import Random
from typing import Any, TypeAlias

from synmod.registry import register_own
from synmod.train import Bench, positive
from synmod.tree import OptState, State

from .pool import Pool
from .reflection import Evidence, Reflective, evidence, gain_in_two_waves

Survivor: TypeAlias = tuple[State, Evidence, float]
"""A child, the evidence that it was made on, and what it gained there."""


@register_own()
class Gepa(Reflective):
    """Mends what failing rows blame, several paths at once; a child must gain on its rows, then win a race.

    Parents are drawn from the candidates that are best on some row. Children of disjoint paths are joined, so that a
    step of several slots costs little more than one.

    Args:
        width: Slots per step.
        minibatch: Train rows per slot.
        front: Validation rows on which candidates are compared; None for half of them, 10 to 50.
        block: Rows per round of a race.
        joint_after: Steps without success after which every second slot mends all its blamed paths in one child.
        wide_after: Steps without success after which every second parent is drawn from the whole pool.
        lcb: How many standard errors a bound lies below the mean.
        patience: Steps without an accepted candidate until it is done.
        **options: Those of every optimizer.

    Raises:
        ArgumentError: A number below 1.

    Example:
        >>> Gepa(width=2).patience
        10

    Source: GEPA; differs: paths in parallel, exact two-wave tests, races, fusion of survivors.
    """

    def __init__(
        self,
        width: int = 4,
        minibatch: int = 4,
        front: int | None = None,
        block: int = 10,
        joint_after: int = 1,
        wide_after: int = 2,
        lcb: float = 0.25,
        patience: int = 10,
        **options: Any,
    ) -> None:
        super().__init__(patience=patience, **options)
        self.width = positive(self, "width", width)
        self.minibatch = positive(self, "minibatch", minibatch)
        self.front = None if front is None else positive(self, "front", front)
        self.block = positive(self, "block", block)
        self.joint_after, self.wide_after, self.lcb = joint_after, wide_after, lcb
        self.pool = self.add_variable([], schema={"type": "array"}, name="pool", type=OptState)

    def _pool(self, bench: Bench) -> Pool:
        """Return the candidates."""
        return Pool(self.pool, bench, self.lcb)

    def step_cost(self, bench: Bench) -> int:
        """Return the rollouts of parents, children, the joint child, the race and the growth."""
        rows = min(self.width * self.minibatch, len(bench.train))
        return 3 * rows + 2 * len(self._front(bench)) + self.block

    def _front(self, bench: Bench) -> tuple[str, ...]:
        """Return the validation rows on which candidates are compared."""
        rows = bench.validation
        most = min(50, max(10, len(rows) // 2)) if self.front is None else self.front
        return rows[:most]

    async def update(self, state: State, feedback: Any, bench: Bench) -> State:  # noqa: ARG002  (of every optimizer)
        """Take one step; return the candidate with the highest bound."""
        front = self._front(bench)
        if not self._pool(bench).members()[1:]:
            await bench.evaluate(bench.seed, front)
        parent = self._parent(bench, front)
        found = await self._evidence(bench, parent)
        children = await bench.gather(
            *(self._tested(bench, each, paths) for each, paths in self._assigned(bench, found))
        )
        accepted = await self._accept(bench, parent, [child for child in children if child is not None], front)
        self.end_step(accepted)
        return await self._grown(bench, front)

    def _parent(self, bench: Bench, front: Sequence[str]) -> State:
        """Draw a parent: weighted by the rows of the front on which it is the best; sometimes from the whole pool."""
        pool, rng = self._pool(bench), bench.rng("parent")
        members = pool.members()
        idle = self.idle.value
        if idle > self.wide_after and (idle - self.wide_after) % 2 == 1:
            return members[int(rng.random() * len(members))]
        fronts = [set(row) for row in self._fronts(bench, members, front) if row]
        survivors = {index for each in fronts for index in each} or {0}
        for index in sorted(survivors, key=lambda index: pool.bound(members[index])):
            mine = [each for each in fronts if index in each]
            if all(len(each & survivors) > 1 for each in mine):
                survivors.discard(index)
        weights = {index: sum(index in each for each in fronts) for index in sorted(survivors)}
        return members[_weighted(rng, weights)]

    def _fronts(self, bench: Bench, members: Sequence[State], front: Sequence[str]) -> list[list[int]]:
        """Return for each row of the front which members are best there."""
        scores = [bench.scores(member) for member in members]
        fronts: list[list[int]] = []
        for row in front:
            known = {index: of[row] for index, of in enumerate(scores) if row in of}
            fronts.append([index for index, score in known.items() if score == max(known.values())])
        return fronts

    async def _evidence(self, bench: Bench, parent: State) -> list[Evidence]:
        """Run the parent on disjoint minibatches, half of each known to fail under it."""
        known = bench.scores(parent, "train")
        rng = bench.rng("minibatches")
        order = rng.sample(bench.train, len(bench.train))
        failing = [row for row in order if row in known and known[row] < bench.best_score]
        others = [row for row in order if row not in failing]
        batches: list[list[str]] = []
        for _ in range(self.width):
            half, failing = failing[: self.minibatch // 2], failing[self.minibatch // 2 :]
            rest, others = others[: self.minibatch - len(half)], others[self.minibatch - len(half) :]
            batch = half + rest
            if len(batch) < self.minibatch:
                more, failing = failing[: self.minibatch - len(batch)], failing[self.minibatch - len(batch) :]
                batch += more
            if batch:
                batches.append(batch)
        return await bench.gather(*(evidence(bench, parent, batch) for batch in batches))

    def _assigned(self, bench: Bench, found: Sequence[Evidence]) -> list[tuple[Evidence, list[str]]]:
        """Return for each slot what it mends: its most blamed path that no earlier slot took, or all of them."""
        taken: set[str] = set()
        slots: list[tuple[Evidence, list[str]]] = []
        joint = self.idle.value >= self.joint_after
        for number, each in enumerate(found):
            if not each.blame:
                bench.log("reflect", [], "perfect", rows=len(each.rows))
                continue
            if joint and number % 2:
                slots.append((each, list(each.blame)))
                continue
            path = next((path for path in each.blame if path not in taken), each.blame[0])
            taken.add(path)
            slots.append((each, [path]))
        return slots

    async def _tested(
        self, bench: Bench, found: Evidence, paths: Sequence[str]
    ) -> tuple[State, Evidence, float] | None:
        """Return a child that gains on its minibatch."""
        child = await self.child(bench, found, paths)
        if child is None:
            return None
        gain = await gain_in_two_waves(bench, child, found)
        if gain > 0:
            return child, found, gain
        bench.log("reflect", paths, "no_gain", gain, len(found.rows))
        self.remember(child, found.parent, accepted=False)
        return None

    async def _accept(self, bench: Bench, parent: State, survivors: Sequence[Survivor], front: Sequence[str]) -> bool:
        """Join the survivors, race the result, and keep it; return whether it was kept."""
        if not survivors:
            return False
        child, _, gain = max(survivors, key=lambda each: each[2])
        joint = self._joined(bench, parent, survivors)
        if joint is not None and joint != child:
            rows = tuple(dict.fromkeys(row for _, found, _ in survivors for row in found.rows))
            await bench.evaluate(joint, rows, split="train")
            old, new = bench.scores(parent, "train"), bench.scores(joint, "train")
            total = fsum(new[row] - old[row] for row in rows if row in new and row in old)
            if total >= gain:
                child, gain = joint, total
        race = await bench.race(child, parent, block=self.block, ids=front)
        paths = list(parent.diff(child))
        bench.log("reflect", paths, "accepted" if race.kept else "worse", race.gain, race.rows)
        self.remember(child, parent, accepted=race.kept)
        if race.kept:
            self._pool(bench).add(child)
        return race.kept

    def _joined(self, bench: Bench, parent: State, survivors: Sequence[Survivor]) -> State | None:
        """Return what survivors of disjoint paths make together; None for less than two."""
        changes: dict[str, Any] = {}
        joined: list[State] = []
        for child, _, _ in sorted(survivors, key=lambda each: -each[2]):
            mine = {path: leaf.value for path, (_, leaf) in parent.diff(child).items() if leaf is not None}
            if not set(mine) & set(changes):
                changes |= mine
                joined.append(child)
        if len(joined) < 2:
            return None
        state = parent.replace(changes)
        bench.candidate(state, *joined, operator="fusion")
        return state

    async def _grown(self, bench: Bench, front: Sequence[str]) -> State:
        """Return the candidate with the highest bound; once it has the whole front it gets one more block."""
        best = self._pool(bench).best()
        known = bench.scores(best)
        if all(row in known for row in front):
            await bench.evaluate(best, [row for row in bench.validation if row not in known][: self.block])
        return self._pool(bench).best()


def _weighted(rng: Random, weights: dict[int, int]) -> int:
    """Draw a key with probability proportional to its weight."""
    at = rng.random() * sum(weights.values())
    for key, weight in weights.items():
        at -= weight
        if at < 0:
            return key
    return next(iter(weights))
