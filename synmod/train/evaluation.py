"""Evaluation: what a program is worth on a data set, as far as it was run, and what became of each example.

Metrics that are functions are called inside each run; objects are fed row by row, in the order of the inputs.
"""

from __future__ import annotations

import csv
import io
import math
import os
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, Self, cast

from synmod.data import dump_json
from synmod.errors import ArgumentError, CallError, notes_of
from synmod.leaves import html_table, is_object, rng, thaw, write_atomic
from synmod.module import Module
from synmod.scope import BoundReward, Feedback, Usage, message_of
from synmod.tree import state, update

from .metrics import metrics_from
from .rewards import OFFERED

# -- metrics -----------------------------------------------------------------------------------------------------------

_FED: Final = ("inputs", "outputs", "target", "example_id", "rollout")
"""What objects that are fed row by row may ask for by name."""


class Metrics:
    """The metrics of one evaluation, by name.

    Args:
        metrics: Those of `sm.metrics` or their names, functions that return a number, plain or async, or objects with
            `update_state`, `result()` and `reset_state()`. Functions and `update_state` ask by parameter name for what
            they judge, the latter also for `rollout`, the result of the row.

    Raises:
        TrainerError: There is no metric of a name.
        ArgumentError: It is not a list of them, one is neither or asks for something else, or two have one name.
    """

    def __init__(self, metrics: Iterable[Any]) -> None:
        self.given = metrics_from(metrics)
        self._metrics: dict[str, _Mean | _Stateful] = {}
        for metric in self.given:
            name = str(getattr(metric, "name", None) or getattr(metric, "__name__", type(metric).__name__))
            if name in self._metrics:
                raise ArgumentError(f"two metrics are called {name!r}; give one of them another name.")
            is_stateful = callable(getattr(metric, "update_state", None))
            self._metrics[name] = _Stateful(name, metric) if is_stateful else _Mean(name, metric)

    @property
    def functions(self) -> list[Any]:
        """Those that measure a run inside of it."""
        return [metric for metric in self.given if not callable(getattr(metric, "update_state", None))]

    async def measure(self, offered: Mapping[str, Any]) -> dict[str, float]:
        """Return the value of each function for one output.

        Args:
            offered: A value for each name of `OFFERED`.

        Raises:
            CallError: One returned something other than a finite number.
            Exception: What it raised.
        """
        return {
            name: await metric.value(offered) for name, metric in self._metrics.items() if isinstance(metric, _Mean)
        }

    def update(self, result: ExampleResult, values: Mapping[str, float]) -> None:
        """Take in one run; a function counts 0 where the program failed.

        Raises:
            Exception: What an object raised; the others have taken the run in.
        """
        failures: list[Exception] = []
        for name, metric in self._metrics.items():
            try:
                metric.add(values.get(name, 0.0), result)
            except Exception as error:  # noqa: BLE001  # one example under collection: its failure is its result
                failures.append(error)
        if failures:
            raise failures[0]

    def results(self) -> tuple[dict[str, float], Exception | None]:
        """Return the value of each metric that has one, and what the first of the others raised."""
        found: dict[str, float] = {}
        failure: Exception | None = None
        for name, metric in self._metrics.items():
            try:
                value = metric.result()
            except Exception as error:  # noqa: BLE001  # of a part of the data it may have none
                failure = failure or error
                continue
            found |= {f"{name}/{key}": each for key, each in value.items()} if is_object(value) else {name: value}
        return found, failure


class _Mean:
    """The mean of what a function returns."""

    def __init__(self, name: str, function: Any) -> None:
        self._name = name
        self._function = BoundReward(function, OFFERED[:-1], what=f"metric {name!r}")
        self._sum, self._rows = 0.0, 0

    async def value(self, offered: Mapping[str, Any]) -> float:
        """Return the value for one output."""
        value = (await self._function(**offered)).score
        if value is None:
            raise CallError(f"metric {self._name!r} has no score; a metric is a finite number, or a bool.")
        return value

    def add(self, value: float, _: ExampleResult) -> None:
        """Count one row."""
        self._rows += 1
        self._sum += value

    def result(self) -> float:
        """Return the mean so far."""
        return self._sum / self._rows if self._rows else 0.0


def feed(metric: Any, results: Iterable[ExampleResult]) -> None:
    """Feed an object that counts, a `Metric` or one of one's own, with results in order.

    Raises:
        ArgumentError: Its `update_state` asks for something else.
        Exception: What it raised.
    """
    name = getattr(metric, "name", type(metric).__name__)
    update = BoundReward(metric.update_state, _FED, what=f"metric {name!r}")
    for result in results:
        _feed(metric, update, result)


def _feed(metric: Any, update: BoundReward, result: ExampleResult) -> None:
    """Feed one row, unless it failed and the metric leaves such rows out."""
    if result.error is None or not getattr(metric, "skip_failed", False):
        fed = {"inputs": result.inputs, "outputs": result.outputs, "target": result.target}
        update.call(**fed, example_id=result.id, rollout=result)


class _Stateful:
    """An object that is fed row by row; a module counts in a copy, so that evaluations side by side do not mix."""

    def __init__(self, name: str, metric: Any) -> None:
        self._given: Any = metric
        self._metric: Any = metric.clone() if isinstance(metric, Module) else metric
        self._update = BoundReward(self._metric.update_state, _FED, what=f"metric {name!r}")
        self._metric.reset_state()

    def add(self, _: float, result: ExampleResult) -> None:
        """Feed one row."""
        _feed(self._metric, self._update, result)

    def result(self) -> Any:
        """Return its result so far; a module then holds the counts."""
        if self._given is not self._metric:
            update(self._given, state(self._metric))
        return self._metric.result()


# -- evaluations -------------------------------------------------------------------------------------------------------

_COLUMNS: Final = ("id", "sample", "score", "error", "elapsed_s", "call_id", "inputs", "target", "outputs")
_ROWS_SHOWN: Final = 50


@dataclass(frozen=True, slots=True)
class ExampleError:
    """Why one example failed, without what holds memory.

    Attributes:
        type: Name of the exception's class.
        message: Its text.
        path: The module in which it was raised; "" for the program itself, or outside of it.
        notes: Its notes.
    """

    type: str
    message: str
    path: str
    notes: tuple[str, ...]

    @classmethod
    def of(cls, error: BaseException, path: str) -> Self:
        """Return the record of an exception."""
        return cls(type(error).__name__, message_of(error), path, tuple(notes_of(error)))

    def record(self) -> dict[str, Any]:
        """Return the record as plain JSON."""
        return {**asdict(self), "notes": list(self.notes)}

    def __str__(self) -> str:
        return f"{self.type}: {self.message}"


@dataclass(frozen=True, slots=True)
class ExampleResult:
    """One run of the program on one example.

    Attributes:
        id: The example's id.
        inputs: The example's inputs.
        target: What should have come out.
        outputs: What came out; None where the run failed.
        score: The reward, or what stands in for it where the run failed; None for no score.
        feedback: What the reward returned.
        error: Why it failed; None where it did not.
        usage: What the model calls of run and reward used.
        elapsed_s: Seconds.
        call_id: Id of the entry call; None where none began.
        sample: Number of the run among those of the example.

    Example:
        >>> import synmod as sm
        >>> class Query(sm.DataModel):
        ...     question: str
        >>> evaluation = sm.run(sm.evaluate(sm.Identity(), [Query(question="Why?")]))
        >>> evaluation.results[0].outputs["question"]
        'Why?'

    Source: DSPy's evaluation results; differs: keeps call id, usage and sample.
    """

    id: str
    inputs: Any
    target: Any
    outputs: Any
    score: float | None
    feedback: Feedback | None
    error: ExampleError | None
    usage: Usage
    elapsed_s: float
    call_id: str | None
    sample: int

    def to_json(self) -> dict[str, Any]:
        """Return the result as plain JSON.

        Raises:
            DataError: Inputs, target or outputs are not JSON.
        """
        return thaw(self.record())

    def record(self) -> dict[str, Any]:
        """Return the result by name of its fields, data models as they are."""
        record = {name: _listed(getattr(self, name)) for name in ExampleResult.__slots__}
        return {
            **record,
            "feedback": None if self.feedback is None else self.feedback.record(),
            "error": None if self.error is None else self.error.record(),
            "usage": asdict(self.usage),
        }


@dataclass(frozen=True, slots=True, repr=False)
class Evaluation:
    """The result of `evaluate`.

    Attributes:
        score: Mean of the rewards over the runs that have one; None without a reward, or where nothing was scored.
        metrics: The value of each metric, by name; a metric of several values gives `name/key`.
        results: What became of each example, in input order; empty where results are not kept.
        errors: The results of those that failed, in input order.
        usage: What all model calls used.
        elapsed_s: Seconds from beginning to end.
        total: How many runs were made: examples times samples.
        scored: How many of them have a score of their own; one that failed is in the mean by `failure_score` alone.

    Example:
        >>> Evaluation(score=0.9, metrics={"accuracy": 0.9}, total=10, scored=10)
        Evaluation(score 0.9 over 10 of 10 (0 failed), accuracy 0.9)

    Source: DSPy's `Evaluate`; differs: failures are kept apart from scores.
    """

    score: float | None = None
    metrics: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))
    results: tuple[ExampleResult, ...] = ()
    errors: tuple[ExampleResult, ...] = ()
    usage: Usage = field(default_factory=Usage)
    elapsed_s: float = 0.0
    total: int = 0
    scored: int = 0

    def __repr__(self) -> str:
        failed = len(self.errors)
        well = self.total - failed if self.score is None else self.scored
        score = f"score {self.score:.4g}" if self.score is not None and well else "no score"
        metrics = "".join(f", {name} {value:.4g}" for name, value in self.metrics.items())
        first = f", first: {self.errors[0].error!s:.300}" if failed else ""
        return f"Evaluation({score} over {well} of {self.total} ({failed} failed{first}){metrics})"

    def compare(self, other: Evaluation, *, seed: int = 0) -> Comparison:
        """Return how this evaluation differs from another one, on the examples that both have scored.

        Args:
            other: An evaluation of the same examples, by id.
            seed: What the resamples are drawn from.

        Raises:
            ArgumentError: No example has a score in both; or results were not kept.

        Example:
            >>> import synmod as sm
            >>> class Answer(sm.DataModel):
            ...     answer: str
            >>> rows = [Answer(answer=text) for text in ("a", "bb", "ccc")]
            >>> short = sm.run(sm.evaluate(sm.Identity(), rows, reward=lambda y_pred: len(y_pred["answer"]) < 3))
            >>> long = sm.run(sm.evaluate(sm.Identity(), rows, reward=lambda y_pred: len(y_pred["answer"]) > 1))
            >>> short.compare(long)
            Comparison(difference=0.0, low=-1.0, high=1.0, won=1, lost=1, rows=3)

        Source: paired bootstrap (Efron), as Koehn (2004) compares translations.
        """
        ours, theirs = self._scores(), other._scores()
        gains = [ours[example] - theirs[example] for example in ours if example in theirs]
        if not gains:
            raise ArgumentError("compare: no example has a score in both evaluations (keep_results=True keeps them).")
        n, draw = len(gains), rng(seed, 0, "compare")
        means = sorted(math.fsum(draw.choices(gains, k=n)) / n for _ in range(_RESAMPLES))
        cut = int(_RESAMPLES * _TAIL)
        won, lost = sum(gain > 0 for gain in gains), sum(gain < 0 for gain in gains)
        return Comparison(math.fsum(gains) / n, means[cut], means[-1 - cut], won, lost, n)

    def _scores(self) -> dict[str, float]:
        """Return the mean score of each example that has one, by id."""
        found: dict[str, list[float]] = {}
        for result in self.results:
            if result.score is not None:
                found.setdefault(result.id, []).append(result.score)
        return {example: math.fsum(scores) / len(scores) for example, scores in found.items()}

    def to_json(self) -> dict[str, Any]:
        """Return everything as plain JSON.

        Raises:
            DataError: A target, an output or the result of a metric is not JSON; names its place.
        """
        record = {
            **{name: getattr(self, name) for name in self.__slots__},
            "metrics": dict(self.metrics),
            "results": [result.record() for result in self.results],
            "errors": [result.record() for result in self.errors],
            "usage": asdict(self.usage),
        }
        return thaw(record)

    def to_csv(self, path: str | os.PathLike[str]) -> Path:
        """Write one line per run; cells with data hold JSON.

        Without results, the lines are those of the runs that failed.

        Args:
            path: Where to; replaced atomically.

        Returns:
            The path.

        Raises:
            DataError: Inputs, a target or an output is not JSON.
            OSError: The file cannot be written.
        """
        text = io.StringIO()
        writer = csv.writer(text)
        writer.writerow(_COLUMNS)
        for result in self.results or self.errors:
            record = result.record()
            cells = ["" if record[name] is None else dump_json(thaw(record[name])) for name in _COLUMNS[6:]]
            plain = (result.id, result.sample, _text(result.score), _text(result.error), f"{result.elapsed_s:.6f}")
            writer.writerow([*plain, _text(result.call_id), *cells])
        return write_atomic(path, text.getvalue().encode("utf-8", "backslashreplace"))

    def _repr_html_(self) -> str:
        """Return a table of the first results for notebooks."""
        shown = (self.results or self.errors)[:_ROWS_SHOWN]
        names = ("id", "score", "error", "inputs", "target", "outputs")
        rows = ([_text(getattr(result, name)) for name in names] for result in shown)
        more = max(0, len(self.results or self.errors) - len(shown))
        return html_table(names, rows, above=repr(self), below=f"and {more} more" if more else "")


_RESAMPLES: Final = 1_000
_TAIL: Final = 0.025


@dataclass(frozen=True, slots=True)
class Comparison:
    """How one evaluation differs from another on the examples that both have scored.

    Attributes:
        difference: Mean of the differences of scores; above 0 where the first one is better.
        low: Lower end of its 95 % interval, by a seeded paired bootstrap.
        high: Upper end.
        won: On how many examples the first one scores more.
        lost: On how many it scores less.
        rows: How many examples both have scored.

    Example:
        >>> Comparison(0.25, 0.125, 0.375, won=10, lost=0, rows=40).low > 0
        True

    Source: paired bootstrap (Efron).
    """

    difference: float
    low: float
    high: float
    won: int
    lost: int
    rows: int

    def to_json(self) -> dict[str, Any]:
        """Return the comparison as plain JSON."""
        return asdict(self)


def _listed(nest: Any) -> Any:
    """Return a nest with lists in place of tuples, which are not JSON."""
    if is_object(nest):
        return {key: _listed(value) for key, value in nest.items()}
    if isinstance(nest, (list, tuple)):
        return [_listed(value) for value in cast("list[Any]", nest)]
    return nest


def _text(value: object) -> str:
    """Return the text of a cell; nothing for None."""
    return "" if value is None else str(value)
