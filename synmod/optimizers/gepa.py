"""Gepa: reflective evolution on a Pareto pool."""

from collections.abc import Sequence
from typing import Any

from synmod.leaves import Json
from synmod.registry import register_own
from synmod.train import Bench, real_number, whole_number, whole_numbers
from synmod.tree import OptState, State

from .reflection import Child, Evidence, Pool, Reflective, evidence, minibatch_gain, minibatches


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
        patience: Steps without a new best candidate until it is done.
        **options: Those of every optimizer.

    Raises:
        TrainerError: A number that cannot be.

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
        self.width, self.minibatch, self.block = whole_numbers(self, width=width, minibatch=minibatch, block=block)
        self.front = None if front is None else whole_number(self, "front", front)
        steps = {"joint_after": joint_after, "wide_after": wide_after}
        self.joint_after, self.wide_after = whole_numbers(self, 0, **steps)
        self.lcb = real_number(self, "lcb", lcb)
        self.pool = self.add_variable([], schema={"type": "array"}, name="pool", type=OptState)

    def step_cost(self, bench: Bench) -> int:
        """Return the rollouts of parents, children, the joint child, the race and the growth."""
        rows = min(self.width * self.minibatch, len(bench.train))
        return 3 * rows + 2 * len(self._front(bench)) + self.block

    def _front(self, bench: Bench) -> tuple[str, ...]:
        """Return the validation rows on which candidates are compared."""
        rows = bench.validation
        return rows[: min(50, max(10, len(rows) // 2)) if self.front is None else self.front]

    async def update(self, state: State, feedback: Any, bench: Bench) -> State:  # noqa: ARG002  (of every optimizer)
        """Take one step; return the candidate with the highest bound."""
        front, pool = self._front(bench), Pool(self.pool, bench, self.lcb)
        await bench.evaluate(bench.seed, front)
        parent = self._parent(bench, pool, front)
        batches = [rows for rows in minibatches(bench, [parent] * self.width, self.minibatch) if rows]
        evidences = await bench.gather(*(evidence(bench, parent, rows) for rows in batches))
        slots = self.assign_slots(bench, evidences, joint=self.idle.value >= self.joint_after)
        child = await self._fuse(bench, await self.survivors(bench, slots))
        if child is not None and await self.wins(bench, child, self.block, front):
            pool.keep([*pool.members(), child.state])
        best = await self._grow(bench, pool, front)
        self.note(child is not None and best == child.state)
        return best

    def _parent(self, bench: Bench, pool: Pool, front: Sequence[str]) -> State:
        """Draw a parent: weighted by the rows of the front on which it is the best; sometimes from the whole pool."""
        members, rng = pool.members(), bench.rng("parent")
        waited = self.idle.value - self.wide_after
        if waited > 0 and waited % 2:
            return rng.choice(members)
        scores = [bench.scores(member) for member in members]
        fronts: list[set[int]] = []
        for row in front:
            column = {index: of[row] for index, of in enumerate(scores) if row in of}
            fronts.append({index for index, score in column.items() if score == max(column.values())})
        survivors = set[int]().union(*fronts)
        for index in sorted(survivors, key=lambda index: pool.bound(members[index])):
            if all(len(leaders & survivors) > 1 for leaders in fronts if index in leaders):
                survivors.discard(index)
        weights = [
            sum(index in leaders for leaders in fronts) if index in survivors else 0 for index in range(len(members))
        ]
        return rng.choices(members, weights)[0] if survivors else members[0]

    async def _fuse(self, bench: Bench, survivors: Sequence[Child]) -> Child | None:
        """Return the survivors of disjoint paths as one child, unless the best of them alone gains more."""
        ranked = sorted(survivors, key=lambda child: -child.gain)
        if not ranked:
            return None
        changes: dict[str, Json] = {}
        joined = [child for child in ranked if _add_others(changes, child.changes)]
        best, parent = ranked[0], ranked[0].found.parent
        if len(joined) == 1:
            return best
        state = parent.replace(changes)
        bench.candidate(state, *(child.state for child in joined), operator="fusion")
        joint = Evidence(parent, [row for child in survivors for row in child.found.rows], {}, ())
        fused = Child(state, joint, await minibatch_gain(bench, state, joint))
        return fused if fused.gain >= best.gain else best

    async def _grow(self, bench: Bench, pool: Pool, front: Sequence[str]) -> State:
        """Return the candidate with the highest bound; once it has the whole front it gets one more block."""
        best = pool.best_first()[0]
        missing = bench.missing(best)
        if not any(row in missing for row in front):
            await bench.evaluate(best, missing[: self.block])
        return pool.best_first()[0]


def _add_others(changes: dict[str, Json], more: dict[str, Json]) -> bool:
    """Add values of other paths to changes; whether the paths are other ones."""
    if changes.keys() & more.keys():
        return False
    changes.update(more)
    return True
