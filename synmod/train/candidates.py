"""Candidates: States of the Variables that may change, and what they scored; the ledger of a run on them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from contextvars import ContextVar
from dataclasses import dataclass, field
from itertools import count
from math import fsum, inf, sqrt
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from synmod.data import Schema
from synmod.errors import ArgumentError, BudgetExceeded, TrainerError
from synmod.leaves import Json, frozen_dict, set_in_block
from synmod.scope import Usage
from synmod.tree import State

from . import runs
from .rollouts import Rollout
from .rows import Example

Split: TypeAlias = Literal["train", "validation"]
_SPLITS: Final[tuple[Split, ...]] = ("train", "validation")
OF_THIS_PROCESS: Final = ("elapsed_s",)
"""The costs that are not a function of data, seed and models: in no file."""
_FINALISTS: Final = 3
"""How many candidates are completed on all validation rows at the end."""
LEFT_OUT: Final = "leave out"
"""The operator of a candidate that is its parent without a line or an example."""
ExamplesBySplit: TypeAlias = Mapping[Split, Mapping[str, Example]]
"""The rows of each split by id."""

TargetKind: TypeAlias = Literal["examples", "instruction", "value"]


class Target(NamedTuple):
    """A Variable that an optimizer may change.

    Attributes:
        path: Its path.
        module: Path of the module that owns it.
        schema: The schema of its values.
        description: Its description.
        kind: `examples` (objects with `inputs` and `outputs`), `instruction` (a string) or `value` (any other JSON).
    """

    path: str
    module: str
    schema: Schema
    description: str
    kind: TargetKind


def kind_of(schema: Any) -> TargetKind:
    """Return what kind of target values of a schema are.

    Example:
        >>> kind_of({"type": "string"})
        'instruction'
    """
    match schema:
        case {"enum": _} | {"const": _}:
            return "value"
        case {"type": "string"}:
            return "instruction"
        case {"type": "array", "items": {"properties": {"inputs": _, "outputs": _}}}:
            return "examples"
        case _:
            return "value"


@dataclass(frozen=True, slots=True)
class Candidate:
    """A State of the targets, where it came from, and what it scored.

    Attributes:
        id: `c0` is the seed.
        state: The values.
        parents: Ids of the candidates that it was made of.
        operator: The operation that made it.
        step: In which step.
        scores: `{split: {row id: score}}`.
        costs: `{"cost_usd" | "elapsed_s": {validation row id: mean of its rollouts}}`, with that of the reward; rows of
            unknown cost are left out.

    Example:
        >>> Candidate("c1", State(), scores={"validation": {"a": 1.0, "b": 0.0}}).score
        0.5

    Source: GEPA's pool; differs: a frozen record.
    """

    id: str
    state: State
    parents: tuple[str, ...] = ()
    operator: str = "seed"
    step: int = 0
    scores: Mapping[str, Mapping[str, float]] = frozen_dict({})
    costs: Mapping[str, Mapping[str, float]] = field(default=frozen_dict({}), compare=False)

    def mean(self, split: str = "validation", ids: Iterable[str] | None = None) -> float | None:
        """Return the mean score on the rows of a split that it was run on; None without any.

        Args:
            split: `validation` or `train`.
            ids: Only these rows.
        """
        scores = self.scores.get(split, {})
        return mean([scores[i] for i in (scores if ids is None else ids) if i in scores])

    @property
    def score(self) -> float | None:
        """The mean score on validation rows."""
        return self.mean()

    def to_json(self) -> dict[str, Any]:
        """Return the candidate as plain JSON."""
        fields = {name: getattr(self, name) for name in self.__slots__}
        scores = {split: dict(by_row) for split, by_row in self.scores.items()}
        costs = {name: dict(by_row) for name, by_row in self.costs.items() if name not in OF_THIS_PROCESS}
        plain = {"state": self.state.to_json(), "parents": list(self.parents), "scores": scores, "costs": costs}
        return fields | plain


def mean(numbers: Sequence[float]) -> float | None:
    """Return the mean, whatever the order; None of nothing."""
    return fsum(numbers) / len(numbers) if numbers else None


def row_losses(old: Mapping[str, Mapping[str, float]], new: Mapping[str, Mapping[str, float]]) -> list[float]:
    """Return how much worse the second of two candidates is on each row that both were run on.

    Args:
        old: Scores by split and row.
        new: Those of the other candidate.

    Example:
        >>> row_losses({"validation": {"a": 1.0, "b": 1.0}}, {"validation": {"a": 0.0}})
        [1.0]
    """
    return [
        score - new[split][row]
        for split, scores in old.items()
        for row, score in scores.items()
        if row in new.get(split, ())
    ]


def mean_bounds(numbers: Sequence[float], width: float, z: float = 1.645) -> tuple[float, float]:
    """Return bounds of the mean behind some numbers, either of which holds with a probability of 95 %.

    The variance is at least that of half a row in all which differs by the width, as in Jeffreys' prior of a share:
    that some rows are equal does not prove that all are.

    Args:
        numbers: The numbers; without any nothing is known.
        width: How far apart two scores can be.
        z: The quantile of a normal distribution that the bounds are at.

    Example:
        >>> low, high = mean_bounds([0.0] * 50, 1.0)
        >>> round(high, 3)
        0.023
    """
    count = len(numbers)
    if not count:
        return -inf, inf
    middle = fsum(numbers) / count
    variance = fsum((number - middle) ** 2 for number in numbers) / max(1, count - 1)
    half = z * sqrt(max(variance, width**2 / (2 * count)) / count)
    return middle - half, middle + half


@dataclass(frozen=True, slots=True)
class Race:
    """How a challenger did against an incumbent.

    Attributes:
        kept: Whether it was not retired; a tie is kept.
        gain: Sum of the differences of scores over the rows that both have.
        rows: How many rows that are.

    Example:
        >>> Race(True, 0.0, 12).won
        False
    """

    kept: bool
    gain: float
    rows: int

    @property
    def won(self) -> bool:
        """Whether the challenger is better: it was not retired, and gained something."""
        return self.kept and self.gain > 0

    @property
    def word(self) -> Literal["accepted", "no_gain", "worse"]:
        """The word for `bench.log`."""
        return "accepted" if self.won else "no_gain" if self.kept else "worse"


def crossover(a: State, b: State, mask: Sequence[bool]) -> State:
    """Mix two States path by path.

    Args:
        a: Gives the values where the mask is False.
        b: Gives those where it is True; has the same paths.
        mask: One bool per path, in order.

    Raises:
        ArgumentError: The paths differ, or the mask has another length.

    Example:
        >>> import synmod as sm
        >>> a, b = sm.state({"x": sm.Param(1), "y": sm.Param(2)}), sm.state({"x": sm.Param(3), "y": sm.Param(4)})
        >>> crossover(a, b, [False, True]).to_json()
        {'x': 1, 'y': 4}

    Source: uniform crossover of genetic algorithms.
    """
    if list(a) != list(b) or len(mask) != len(a):
        raise ArgumentError(f"crossover mixes States of the same paths: {len(a)} and {len(b)}, a mask of {len(mask)}.")
    return State.of_leaves({path: (b if is_from_b else a)[path] for path, is_from_b in zip(a, mask, strict=True)})


@dataclass(slots=True, eq=False)
class CandidateRecord:
    """The record of a candidate: how and when it was made, and its rollouts.

    Attributes:
        state: Values of the targets.
        order: The first place where it was noted.
        made_at: The place where its operator was noted; empty until then.
        parents: Fingerprints of the States that it was made from.
        operator: The operation that made it.
        rollouts: The rollouts so far, by split, row and sample.
        scores: The mean score of each row that has one, by split.
        tokens: The tokens that these used.
    """

    state: State
    order: tuple[int, ...]
    made_at: tuple[int, ...] = ()
    parents: tuple[str, ...] = ()
    operator: str = ""
    rollouts: dict[Split, dict[str, dict[int, Rollout]]] = field(default_factory=lambda: {s: {} for s in _SPLITS})
    scores: dict[Split, dict[str, float]] = field(default_factory=lambda: {s: {} for s in _SPLITS})
    tokens: int = 0

    def add(self, split: Split, rollout: Rollout) -> None:
        """Add a rollout."""
        samples = self.rollouts[split].setdefault(rollout.id, {})
        if rollout.sample not in samples:
            samples[rollout.sample] = rollout
            self.tokens += rollout.usage.prompt_tokens + rollout.usage.completion_tokens
            scores = [draw.score for draw in samples.values() if draw.score is not None]
            if scores:
                self.scores[split][rollout.id] = fsum(scores) / len(scores)

    def costs(self) -> dict[str, dict[str, float]]:
        """Return what validation rows took, in dollars and seconds: the mean of their rollouts, where it is known."""
        costs: dict[str, dict[str, float]] = {"cost_usd": {}, "elapsed_s": {}}
        for row, samples in sorted(self.rollouts["validation"].items()):
            dollars = [rollout.usage.cost_usd for rollout in samples.values() if rollout.usage.cost_usd is not None]
            if len(dollars) == len(samples):
                costs["cost_usd"][row] = fsum(dollars) / len(dollars)
            costs["elapsed_s"][row] = fsum(rollout.elapsed_s for rollout in samples.values()) / len(samples)
        return {name: of for name, of in costs.items() if of}

    @property
    def compared(self) -> dict[str, float]:
        """Its scores on validation rows."""
        return self.scores["validation"]

    def rank(self) -> tuple[float, int, int, tuple[int, ...]]:
        """Return the sort key: higher mean first, then more rows, fewer tokens, the older candidate."""
        scores = self.compared
        return -fsum(scores.values()) / len(scores), -len(scores), self.tokens, self.order


class CandidatePool:
    """The candidates of a run: where they came from, what they scored, and how they rank.

    Args:
        seed: The values that the run began with.
        validation: Ids of the validation rows, in order.
    """

    def __init__(self, seed: State, validation: Collection[str]) -> None:
        self._validation = validation
        self._records: dict[str, CandidateRecord] = {}
        self._current: dict[CandidateRecord, None] = {}
        """The States that the program has held, the latest last."""
        self._seed = seed
        self.seed = self.note(seed, (-1, 1), operator="seed")

    def complete(self, state: State) -> State:
        """Return a State with the seed's values where it has none.

        Raises:
            StateError: It has a path that is not a target, or a value misses its schema.
        """
        return state if list(state) == list(self._seed) else self._seed.replace(dict(state.items()))

    def note(
        self, state: State, place: tuple[int, ...], parents: Iterable[State] = (), operator: str = ""
    ) -> CandidateRecord:
        """Note where a State came from; what was noted before is kept.

        Args:
            state: Values of the targets.
            place: Where in the run it is noted.
            parents: The States that it was made of.
            operator: The operation that made it.
        """
        state = self.complete(state)
        record = self._records.setdefault(state.fingerprint, CandidateRecord(state, place))
        record.order = min(record.order, place)
        if operator and (not record.made_at or place < record.made_at):  # whichever came first in place, not in time
            record.made_at, record.operator = place, operator
            record.parents = tuple(self.complete(parent).fingerprint for parent in parents)
        return record

    def note_current(self, state: State, place: tuple[int, ...]) -> None:
        """Note the present State of the program."""
        record = self.note(state, place)
        self._current.pop(record, None)
        self._current[record] = None

    def count_current(self) -> int:
        """Return how many States the program has held, the seed included."""
        return len(self._current) + (self.seed not in self._current)

    def find(self, state: State) -> CandidateRecord | None:
        """Return the record of a State; None for an unknown State."""
        return self._records.get(self.complete(state).fingerprint)

    def order_of(self, fingerprint: str) -> tuple[int, ...]:
        """Return the first place where a State was noted."""
        return self._records[fingerprint].order

    def missing(self, record: CandidateRecord) -> list[str]:
        """Return the validation rows that a candidate was not run on."""
        return [row for row in self._validation if row not in record.rollouts["validation"]]

    def validation_rollouts(self, state: State) -> list[Rollout]:
        """Return a State's rollouts on validation rows, in the order of the rows."""
        record = self.find(state)
        by_row = {} if record is None else record.rollouts["validation"]
        return [by_row[row][sample] for row in self._validation for sample in sorted(by_row.get(row, ()))]

    def best_first(self) -> list[CandidateRecord]:
        """Return the candidates with validation scores, the best one first, in the order of their `rank`."""
        return sorted((record for record in self._records.values() if record.compared), key=CandidateRecord.rank)

    def finalists(self, *, most_rows: bool = False) -> list[CandidateRecord]:
        """Return the candidates to complete at the end: the seed, which the others must beat, then the best ones.

        A State that the program has held and that was not run is second to the best one: it may be better.
        """
        ranked = self.best_first()
        if most_rows:
            ranked.sort(key=lambda record: -len(record.compared))
        unknown = [record for record in reversed(self._current) if not record.compared]
        return list(dict.fromkeys((self.seed, *[*ranked[:1], *unknown, *ranked[1:]][:_FINALISTS])))

    def with_scores(self) -> list[CandidateRecord]:
        """Return the seed and what was run on validation rows."""
        return [record for record in self._records.values() if record.compared or record is self.seed]

    def candidates(self) -> tuple[Candidate, ...]:
        """Return the seed, `c0`, and what was run on validation rows, in the order in which they were made."""
        records = sorted(self.with_scores(), key=lambda record: record.order)
        names = {record.state.fingerprint: f"c{number}" for number, record in enumerate(records)}
        return tuple(
            Candidate(
                names[record.state.fingerprint],
                record.state,
                self._parents_of(record, names),
                record.operator,
                max(0, record.order[0]),
                {split: dict(sorted(scores.items())) for split, scores in record.scores.items() if scores},
                record.costs(),
            )
            for record in records
        )

    def _parents_of(self, record: CandidateRecord, names: Mapping[str, str]) -> tuple[str, ...]:
        """Return the parents by name; in place of one that never ran on validation rows its own parents."""
        ancestors = list(record.parents)
        for ancestor in ancestors:
            if ancestor not in names and ancestor in self._records:
                ancestors += [parent for parent in self._records[ancestor].parents if parent not in ancestors]
        own = record.state.fingerprint
        return tuple(dict.fromkeys(names[name] for name in ancestors if name in names and name != own))


# -- the books of a run ------------------------------------------------------------------------------------------------

_UNLIMITED: Final = 1 << 62
_FAILED_STEPS: Final = 3
_Lane: TypeAlias = tuple[tuple[int, ...], Iterator[int]]
"""The place of running code in its step, a branch of a `gather`, and the numbers of what it notes next."""
_LANE: Final[ContextVar[_Lane | None]] = ContextVar("synmod_lane", default=None)


class Ledger:
    """The books of a run: where it is, what it ran, and what that took. `fit` keeps them, the bench fills them.

    Args:
        runner: Runs its rows.
        limits: The budget of the run.
        examples: The rows of each split by id.

    Attributes:
        batch: Ids of the rows of the present batch.
        lines: The lines of the log, in order: one dict per attempt.
        pool: The candidates.
        runner: Runs its rows.
        step: Number of the present step.
        examples: The rows of each split by id.
        counted: The keys of the rollouts that were needed, those under way included; needed again they are free.
        done: The rollouts that have a result, by key.
    """

    def __init__(self, runner: runs.Runner, limits: runs.Budget, examples: ExamplesBySplit) -> None:
        self.batch: tuple[str, ...] = ()
        self.done: dict[runs.Key, Rollout] = {}
        self.lines: list[dict[str, Json]] = []
        self.runner, self.pool, self.step = runner, CandidatePool(runner.seed, examples["validation"]), 0
        self.examples, self._limits = examples, limits
        self.counted: set[runs.Key] = set()
        self._lm_calls = self._tokens = 0
        self._costs: list[float] = []
        """Of each rollout and proposal; summed exactly, so that what finished first does not matter."""
        self._trained: dict[tuple[str, str, int], Rollout] = {}
        self._unordered: list[tuple[tuple[int, ...], dict[str, Json]]] = []
        self._lane: _Lane = (-1,), count(2)
        self._errors: set[str] = set()
        self._has_answer, self._failed_steps = False, 0
        self._pledged = 0
        """How many rollouts the run has taken when the present step has had all that it may take in any case."""
        self._reserved: set[tuple[str, str]] | None = None
        """Candidates and validation rows that the end will run; None at the end."""
        self._spare = _UNLIMITED
        """How many rollouts are left beside these."""

    # -- steps and places ---------------------------------------------------------------------------------------------

    def begin_epoch(self) -> None:
        """Begin an epoch: no train row has been run in it."""
        self._trained.clear()

    def begin(self, step: int, batch: Sequence[str] = (), *, is_last: bool = False) -> None:
        """Begin a step; what is kept for the end may be spent in the last one."""
        self.step, self.batch = step, tuple(batch)
        self._reserved, self._pledged = None if is_last else set(), 0
        self._lane = (step,), count(1)
        self._errors, self._has_answer = set(), False

    def end(self) -> None:
        """End a step: put what was noted in it into order."""
        self._unordered.sort(key=lambda line: line[0])
        self.lines += [line for _, line in self._unordered]
        self._unordered.clear()

    def next_place(self) -> tuple[int, ...]:
        """Return a new place, after all before it in the lane of the running code."""
        place, numbers = _LANE.get() or self._lane
        return (*place, next(numbers))

    def branch(self, *place: int) -> AbstractContextManager[None]:
        """Return a block whose code has a lane of its own, which begins at a place."""
        return set_in_block(_LANE, (place, count(1)))

    def note_line(self, line: dict[str, Json]) -> None:
        """Note what was tried."""
        self._unordered.append((self.next_place(), line))

    def note_proposal(self, error: str = "") -> None:
        """Note that a proposer has answered in this step, or why it failed."""
        if error:
            self._errors.add(error)
        else:
            self._has_answer = True

    @property
    def proposal_error(self) -> str:
        """Why a proposer failed in this step; "" where none did."""
        return max(self._errors, default="")

    def check_proposals(self, optimizer: str) -> None:
        """Raise where proposers gave nothing but errors for three steps in a row; steps without a call do not count.

        Raises:
            TrainerError: They did.
        """
        if self._has_answer:
            self._failed_steps = 0
        elif self._errors:
            self._failed_steps += 1
        if self._failed_steps >= _FAILED_STEPS:
            raise TrainerError(
                f"{optimizer}: in {self._failed_steps} steps the proposer gave nothing but errors, such as "
                f"{self.proposal_error.rstrip('.')}. Fix the cause, then run the same command again to resume."
            )

    # -- what was run and paid ----------------------------------------------------------------------------------------

    @property
    def rollouts(self) -> int:
        """How many rollouts were needed, recorded ones included and void ones not."""
        return len(self.counted)

    @property
    def pieces(self) -> int:
        """How many rollouts and proposals the run has needed."""
        return len(self._costs)

    @property
    def is_replaying(self) -> bool:
        """Whether the run was begun in an earlier process, and this one has paid for nothing yet."""
        return self.runner.journal.pieces > 0 and not self.runner.journal.live

    def spent(self) -> runs.Budget:
        """Return what the run took so far: every rollout and proposal once, recorded ones included."""
        cost, elapsed = fsum(self._costs), self.runner.journal.elapsed_s
        return runs.Budget(self.rollouts, self._lm_calls, self._tokens, cost, elapsed)

    def pay(self, usage: Usage) -> None:
        """Count what one rollout or proposal used."""
        self._lm_calls += usage.calls
        self._tokens += usage.prompt_tokens + usage.completion_tokens
        self._costs.append(usage.cost_usd or 0.0)

    def note_trained(self, record: CandidateRecord, rollout: Rollout) -> None:
        """Note that a step of this epoch ran a train row."""
        self._trained[record.state.fingerprint, rollout.id, rollout.sample] = rollout

    def train_rollouts(self) -> list[Rollout]:
        """Return what the steps of this epoch ran on train rows, by candidate, row and sample."""
        numbers = {row: number for number, row in enumerate(self.examples["train"])}
        ordered = sorted(
            (self.pool.order_of(fingerprint), numbers[row], sample, rollout)
            for (fingerprint, row, sample), rollout in self._trained.items()
        )
        return [rollout for *_, rollout in ordered]

    # -- what may still be run ----------------------------------------------------------------------------------------

    def pledge(self, cost: int) -> None:
        """Let the present step take some rollouts in any case; what it takes beyond them leaves the end its own."""
        self._pledged = self.rollouts + cost

    def finish_cost(self) -> int:
        """Return the most rollouts that it takes to complete the seed and the best candidate."""
        return len(self._pairs_of_the_end())

    def _pairs_of_the_end(self) -> set[tuple[str, str]]:
        """Return the candidates and validation rows that the end must run."""
        records = [] if self.runner.reward is None else self.pool.finalists()[:2]
        return {(record.state.fingerprint, row) for record in records for row in self.pool.missing(record)}

    @property
    def room(self) -> int:
        """How many rollouts the optimizer may take; those of the end are kept apart."""
        self.reserve()
        return self._spare

    @property
    def is_limited(self) -> bool:
        """Whether the budget limits rollouts."""
        return self._limits.rollouts is not None

    def reserve(self) -> None:
        """Keep apart what the end will cost, by what is known now; not while branches of a step run at once.

        So what fits does not depend on which branch was faster.
        """
        if _LANE.get() is not None or self._limits == runs.Budget():
            return
        if self._reserved is not None:
            self._reserved = self._pairs_of_the_end()
        end_cost, spent, limits = len(self._reserved or ()), self.spent(), self._limits
        left = [_UNLIMITED if limits.rollouts is None else limits.rollouts - self.rollouts]
        for most, used in (
            (limits.lm_calls, spent.lm_calls),
            (limits.tokens, spent.tokens),
            (limits.cost_usd, spent.cost_usd),
        ):
            if most and used and end_cost:  # as far as the average of a rollout foretells it
                left.append(int(self.rollouts * (most / used - 1)))
        self._spare = min(left) - end_cost

    def take(self, keys: set[runs.Key], record: CandidateRecord | None = None, rows: Iterable[str] = ()) -> None:
        """Count rollouts that are about to run.

        Args:
            keys: The rollouts, none of which was counted before.
            record: The candidate that they bring closer to all validation rows; None where they do not.
            rows: On which of these rows.

        Raises:
            BudgetExceeded: They do not fit into the room, or would leave none to complete the candidate at the end.
        """
        self.reserve()
        reserved, early, later = self._reserved or set[tuple[str, str]](), set[tuple[str, str]](), 0
        if record is not None:
            mine = {(record.state.fingerprint, row) for row in rows}
            missing = {(record.state.fingerprint, row) for row in self.pool.missing(record)}
            early = reserved & mine
            if self._reserved is not None and missing.isdisjoint(reserved):  # it may become the best one
                of_best = sum(fingerprint != self.pool.seed.state.fingerprint for fingerprint, _ in reserved)
                later = max(0, len(missing - mine) - of_best)
        fits = len(keys) + later <= self._spare + len(early)
        if not fits and self.rollouts + len(keys) > self._pledged:
            left, end = max(0, self._spare + len(reserved)), len(reserved) + later
            raise BudgetExceeded(f"{len(keys)} rollouts do not fit: {left} are left, and the end needs {end} of them.")
        reserved -= early
        self._spare += len(early) - len(keys)
        self.counted |= keys

    def settle(self, counted: set[runs.Key], ended: Iterable[runs.Key]) -> None:
        """Count no longer what was taken and did not end: it was cancelled, or is void."""
        self.counted -= counted
        self.counted.update(ended)
