"""Candidates: States of the Variables that may change, where they came from, and what they scored."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import fsum, inf, sqrt
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from synmod.data import Schema
from synmod.errors import ArgumentError
from synmod.leaves import frozen_dict
from synmod.tree import State

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
        runs = {} if record is None else record.rollouts["validation"]
        return [runs[row][sample] for row in self._validation for sample in sorted(runs.get(row, ()))]

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
