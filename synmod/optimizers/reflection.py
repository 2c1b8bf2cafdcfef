"""Reflection: better values from a model, the cheap test that a child must pass, and the pool of those that did."""

from collections.abc import Iterable, Mapping, Sequence
from math import fsum, sqrt
from typing import Any, ClassVar, Final, NamedTuple

from synmod.leaves import Json
from synmod.module import Module
from synmod.train import Bench, FeedbackItem, Optimizer, Proposer, TargetKind
from synmod.tree import OptState, State, Variable

_REMEMBERED: Final = 6


class Evidence(NamedTuple):
    """What a parent did on some train rows.

    Attributes:
        parent: The State that was run.
        rows: Ids.
        items: The feedback of each target's module.
        blame: The paths that failures blame, the most blamed first.
    """

    parent: State
    rows: Sequence[str]
    items: Mapping[str, Sequence[FeedbackItem]]
    blame: Sequence[str]


class Child(NamedTuple):
    """A State with better values, and what became of it.

    Attributes:
        state: Values of the targets.
        found: The evidence that it was made from.
        gain: Its gain over the parent on the rows of `found`.
    """

    state: State
    found: Evidence
    gain: float

    @property
    def changes(self) -> dict[str, Json]:
        """Its values that are not its parent's, by path."""
        leaves = self.found.parent.diff(self.state)
        return {path: leaf.value for path, (_, leaf) in leaves.items() if leaf is not None}


async def evidence(bench: Bench, parent: State, rows: Sequence[str]) -> Evidence:
    """Run a State on train rows, and return what it did there and which targets its failures blame.

    Args:
        bench: Runs the rows.
        parent: Values of the targets.
        rows: Ids of train rows.

    Raises:
        BudgetExceeded: The rows do not fit into the room.
    """
    rollouts = await bench.evaluate(parent, rows, split="train", calls=True)
    items = await bench.feedback(rollouts)
    counts = bench.count_blame(items, rollouts)
    return Evidence(parent, rows, items, sorted(counts, key=lambda path: -counts[path]))


def minibatches(bench: Bench, parents: Sequence[State], size: int, purpose: str = "minibatches") -> list[list[str]]:
    """Draw disjoint train rows for each parent: half of them known to fail under it, as far as there are such.

    Args:
        bench: Knows the scores, and draws.
        parents: States, one per minibatch.
        size: Rows per minibatch; the last ones may be shorter.
        purpose: Names the draw among those of a step.
    """
    rows = bench.rng(purpose).sample(bench.train, len(bench.train))
    batches: list[list[str]] = []
    for parent in parents:
        scores = bench.scores(parent, "train")
        failing = {row: None for row in rows if scores.get(row, bench.best_score) < bench.best_score}
        first = list(failing)[: size // 2]
        rest = [row for row in rows if row not in failing] + list(failing)[size // 2 :]
        batches.append(first + rest[: size - len(first)])
        rows = [row for row in rows if row not in batches[-1]]
    return batches


async def minibatch_gain(bench: Bench, child: State, found: Evidence) -> float:
    """Return what a child gains on the rows of its parent; rows that cannot gain run only if others did.

    Args:
        bench: Runs the rows.
        child: Values of the targets.
        found: The evidence of its parent.

    Raises:
        BudgetExceeded: The rows do not fit into the room.

    Source: the minibatch test of GEPA; differs: exact for less than half of its price.
    """
    old = bench.scores(found.parent, "train")
    open_rows = [row for row in found.rows if row in old and old[row] < bench.best_score]
    closed_rows = [row for row in found.rows if row in old and row not in open_rows]
    gain = 0.0
    for rows in (open_rows, closed_rows):
        await bench.evaluate(child, rows, split="train")
        new = bench.scores(child, "train")
        gain += fsum(new[row] - old[row] for row in rows if row in new)
        if gain <= 0:
            break
    return gain


# -- optimizers that reflect -------------------------------------------------------------------------------------------


class Reflective(Optimizer):
    """An optimizer that gets better values from a model, and remembers what was accepted and tried.

    Args:
        patience: Steps without an accepted candidate until it is done.
        **options: Those of every optimizer.

    Raises:
        TrainerError: A setting that cannot be; names it.

    Example:
        >>> class Climb(Reflective):
        ...     async def update(self, state, feedback, bench):
        ...         found = await evidence(bench, state, minibatches(bench, [state], 4)[0])
        ...         child = await self.child(bench, found, found.blame)
        ...         race = None if child is None else await bench.race(child, state, block=8)
        ...         self.note(race is not None and race.won)
        ...         return child if race is not None and race.won else state
        >>> Climb(patience=3).ends
        True

    Source: GEPA's reflection; differs: the checks of a proposal are the bench's.
    """

    kinds: ClassVar[tuple[TargetKind, ...]] = ("instruction", "value")
    ends: ClassVar[bool] = True

    def __init__(self, patience: int = 10, **options: Any) -> None:
        super().__init__(patience=patience, **options)
        self.proposer: Module = self.proposer or Proposer(self.language_model)
        self.accepted, self.tried = (
            self.add_variable({}, schema={"type": "object"}, name=name, type=OptState) for name in ("accepted", "tried")
        )

    def assign_slots(
        self, bench: Bench, found: Sequence[Evidence], *, joint: bool
    ) -> list[tuple[Evidence, Sequence[str]]]:
        """Return what each slot mends: its most blamed path that no earlier slot took; where none is left, all of them.

        Args:
            bench: Takes a line for each slot that has nothing to mend.
            found: The evidence of each slot.
            joint: Whether every second slot mends all its blamed paths in one child.
        """
        assigned: set[str] = set()
        slots: list[tuple[Evidence, Sequence[str]]] = []
        for number, each in enumerate(found):
            if not each.blame:
                bench.log("reflect", [], "perfect", rows=len(each.rows))
            else:
                free = [] if joint and number % 2 else [path for path in each.blame if path not in assigned][:1]
                assigned.update(free)
                slots.append((each, free or each.blame))
        return slots

    async def survivors(self, bench: Bench, slots: Sequence[tuple[Evidence, Sequence[str]]]) -> list[Child]:
        """Make a child for each slot at once, and return those that gain on their rows."""

        async def test(found: Evidence, paths: Sequence[str]) -> Child | None:
            state = await self.child(bench, found, paths)
            return None if state is None else Child(state, found, await minibatch_gain(bench, state, found))

        tested = await bench.gather(*(test(*slot) for slot in slots))
        children = [child for child in tested if child is not None]
        for child in children:
            if child.gain <= 0:
                bench.log("reflect", child.changes, "no_gain", child.gain, len(child.found.rows))
                self.remember(child, accepted=False)
        return [child for child in children if child.gain > 0]

    async def wins(self, bench: Bench, child: Child, block: int, ids: Sequence[str] | None = None) -> bool:
        """Whether a child wins a race against its parent; remember it."""
        race = await bench.race(child.state, child.found.parent, block=block, ids=ids)
        bench.log("reflect", child.changes, "accepted" if race.kept else "worse", race.gain, race.rows)
        self.remember(child, accepted=race.kept)
        return race.kept

    async def child(self, bench: Bench, found: Evidence, paths: Sequence[str], hint: str = "") -> State | None:
        """Return a State with better values at some paths; None where the model gave none that can be used."""
        state = found.parent
        for path in paths:
            accepted, tried = (memory.value.get(path, []) for memory in (self.accepted, self.tried))
            value = await bench.propose(
                state, path, found.items[path], rows=found.rows, accepted=accepted, tried=tried, hint=hint
            )
            state = state if value is None else state.replace({path: value})
        if state == found.parent:
            return None
        bench.candidate(state, found.parent, operator="reflect")
        return state

    def remember(self, child: Child, *, accepted: bool) -> None:
        """Note the values of a child that are not its parent's, for the next questions."""
        for memory in (self.tried, self.accepted) if accepted else (self.tried,):
            values = dict(memory.value)
            for path, value in child.changes.items():
                values[path] = [*values.get(path, []), value][-_REMEMBERED:]
            memory.assign(values)


# -- the candidates that an optimizer keeps ----------------------------------------------------------------------------


class Pool:
    """Candidates with their bounds, over a Variable of an optimizer.

    Args:
        kept: The changes of each candidate to the seed.
        bench: Knows the scores.
        lcb: How many standard errors of a score in the whole range a bound lies below the mean.
    """

    def __init__(self, kept: Variable, bench: Bench, lcb: float) -> None:
        self._kept, self._bench, self._lcb = kept, bench, lcb

    def members(self) -> list[State]:
        """Return the candidates, oldest first: the seed alone, before others are kept."""
        values: list[dict[str, Json]] = self._kept.value or [{}]
        return [self._bench.seed.replace(changes) for changes in values]

    def keep(self, members: Iterable[State]) -> None:
        """Keep these candidates, each once, and no others."""
        changes = (self._bench.seed.diff(state) for state in dict.fromkeys(members))
        self._kept.assign([{path: leaf.value for path, (_, leaf) in change.items() if leaf} for change in changes])

    def bound(self, state: State) -> float:
        """Return the lower bound of a candidate's mean score on validation rows; without rows that of the worst."""
        bench = self._bench
        scores = list(bench.scores(state).values()) or [bench.best_score - bench.width]
        return fsum(scores) / len(scores) - self._lcb * bench.width / sqrt(len(scores))

    def best_first(self) -> list[State]:
        """Return the candidates by their bounds, the highest first; of equal ones the older."""
        return sorted(self.members(), key=self.bound, reverse=True)
