"""evaluate: run a program on every example concurrently, and score its outputs; a failed example stops no other."""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass, field, replace
from itertools import count
from pathlib import Path
from typing import Any, Final, Literal, NoReturn, TypeAlias

from synmod import errors, flow, leaves, lm, view
from synmod.data import DataModel, JsonDataModel, dump_json, schema_of, symbol
from synmod.journal import Journal, Run, run_from
from synmod.module import Module
from synmod.scope import NO_USAGE, Usage, keep_partial

from .examples import flat_map, is_source, list_faults, rows_to_score
from .history import write_csv
from .metrics import Metric, Metrics
from .rewards import Reward, reward_from, warn_of_zeros
from .rollouts import ExampleError, ExampleResult, Executor, as_plain
from .rows import Example, as_json
from .runs import Job, Runner, models_of, most_at_once

_ENOUGH: Final = 20
"""How many runs must have finished before a share of failures, or the fact that all of them failed, counts."""
_DATA: Final[Any] = (JsonDataModel, DataModel)
_Row: TypeAlias = tuple[int, Example, int]
"""Number of the run, its example, its sample."""
Check: TypeAlias = Callable[[Any], None]
"""Raises for a target that no output can match."""


@leaves.checks_keywords
async def evaluate(
    program: Module,
    data: Any,
    y: Any = None,
    *,
    reward: Any = None,
    metrics: Iterable[Any] = (),
    concurrency: int | None = None,
    max_errors: int | None = None,
    max_error_rate: float | None = None,
    failure_score: float | Literal["lowest"] | None = "lowest",
    samples: int = 1,
    keep_results: bool = True,
    keep_calls: bool = False,
    run: Run | str | os.PathLike[str] | None = None,
    durable_rows: bool = False,
    progress: flow.Progress | Literal[False] | None = None,
    executor: Executor | None = None,
) -> Evaluation:
    """Run a program on a data set and score what it returns.

    Args:
        program: Any module.
        data: The rows, as `sm.load_examples` reads them: a list, a file, a table, or a stream, which is an iterable
            without a length, sync or async. A row is `(inputs, target)`, inputs alone, a `sm.Example`, or a dict whose
            fields are inputs and outputs of the program. Rows, but for those of a stream, are checked before the first
            run.
        y: Names of the target fields, or the targets, as for `sm.load_examples`.
        reward: One of `sm.rewards`, the name of one, or a function or module, plain or async, that takes by parameter
            name: `inputs`, `outputs` (or `y_pred`), `target` (or `y_true`), `example_id`, `extra`.
            Returns a number, a bool or a `sm.Feedback`. Or a module that takes `C(inputs, outputs)` and returns
            `score`, and perhaps `critique`. None for no score.
        metrics: Those of `sm.metrics`, their names, functions like rewards, which return numbers, or objects with
            `update_state`, `result` and `reset_state`; fed in input order. A run that one of them cannot count is a
            failed run, but keeps its score. One that counts no run, or has no result, is left out with a warning.
        concurrency: How many runs are under way at once; None for 64, or 10,000 if a model of the program has batch
            jobs, which rows that wait together share.
        max_errors: How many runs may fail; None for any number.
        max_error_rate: Which share of the finished runs may fail, from 0 to 1, looked at from the 20th run on; None for
            any.
        failure_score: The score of a run that failed: `"lowest"` of the reward's range, a number, or None to leave it
            out. A transient failure of a model and a failure of the reward itself are always left out.
        samples: Runs per example, as samples 0 to `samples` - 1.
        keep_results: Whether the Evaluation keeps the results, or means and errors only.
        keep_calls: Whether each result keeps the model calls of the program, for `Evaluation.to_chat`; not with an
            executor. A row that was recorded in the run without them has none.
        run: A folder, or a `sm.Run`, that keeps each result at once: the same call again resumes. A
            list of rows must be that of the first time; rows that come as a stream are found by their content alone.
        durable_rows: Whether each call of a row is kept in the run, as by `sm.durable`, so that a row that was killed
            pays only for what it had not paid.
        progress: An object that is notified of the progress; None for a bar on a terminal, False for nothing.
        executor: Another place for the runs, such as a `sm.DaskExecutor`; None for this process.

    Returns:
        The Evaluation, with results in input order, whatever finished first.

    Raises:
        ArgumentError: No rows, a repeated id, plain JSON without a schema, a reward that takes
            something else, a keyword of the wrong kind.
        DataError: Rows that cannot be read, or targets that no output can have, or of several fields where a metric
            counts one label; lists all of them.
        TrainerError: A reward or metric of an unknown name.
        SchemaError: A mask of the reward or of a metric names nothing.
        CallError: The mask of a metric of one label leaves several fields.
        Exception: Any error of the data; has the Evaluation so far as `partial`.
        EvaluationError: Too many failures, nothing but failures, or one that is not about its example; has the
            Evaluation so far as `partial`.
        BudgetExceeded, DeadlineExceeded: That of an enclosing block; has the Evaluation so far as `partial`.
        RunError: The folder is of another run, or in use.
        OSError: A result cannot be written to it; has the Evaluation so far as `partial`.

    Example:
        >>> import synmod as sm
        >>> class Query(sm.DataModel):
        ...     question: str
        >>> rows = [(Query(question="Who?"), "Who?"), (Query(question="Why?"), "When?")]
        >>> right = lambda outputs, target: outputs["question"] == target
        >>> evaluation = sm.run(evaluate(sm.Identity(), rows, reward=right))
        >>> evaluation
        Evaluation(score 0.5 over 2 of 2 (0 failed))

    Source: DSPy's `Evaluate`, MXNet's `Module.score`; differs: finished results are never lost.
    """
    limits = max_errors, max_error_rate, failure_score
    options = EvaluationOptions(
        metrics, concurrency, *limits, samples, keep_results, keep_calls, run, durable_rows, progress, executor
    )
    leaves.check_type("evaluate: the program", program, Module, "a module")
    return await evaluate_rows(Runner(program, None if reward is None else reward_from(reward)), data, y, options)


@dataclass
class EvaluationOptions:
    """The keywords of `evaluate` beside the reward, checked.

    Raises:
        ArgumentError: A value of the wrong kind; names it.
    """

    metrics: Iterable[Any] = ()
    concurrency: int | None = None
    max_errors: int | None = None
    max_error_rate: float | None = None
    failure_score: float | Literal["lowest"] | None = "lowest"
    samples: int = 1
    keep_results: bool = True
    keep_calls: bool = False
    run: Run | str | os.PathLike[str] | None = None
    durable_rows: bool = False
    progress: flow.Progress | Literal[False] | None = None
    executor: Executor | None = None

    def __post_init__(self) -> None:
        leaves.check_int("evaluate: samples", self.samples)
        if self.keep_calls and (self.executor is not None or not self.keep_results):
            raise errors.ArgumentError("evaluate: keep_calls needs the rows in this process, and keep_results=True.")
        score = self.failure_score
        if score not in ("lowest", None) and not (type(score) in (int, float) and math.isfinite(score)):
            raise errors.ArgumentError(f"evaluate: failure_score is {score!r:.100}; give 'lowest', a number or None.")
        if self.max_errors is not None:
            leaves.check_int("evaluate: max_errors (max_error_rate is a share)", self.max_errors, 0)
        if self.max_error_rate is not None:
            leaves.check_number("evaluate: max_error_rate", self.max_error_rate, 0, 1)


EvaluationOptions.__init__ = leaves.checks_keywords(EvaluationOptions.__init__)


async def evaluate_rows(runner: Runner, data: Any, y: Any, options: EvaluationOptions) -> Evaluation:
    """Evaluate a program; see `evaluate`.

    Args:
        runner: Runs the rows; its journal and metrics are those of the options.
        data: As for `evaluate`.
        y: As for `evaluate`.
        options: As for `evaluate`.
    """
    if not is_source(data):
        raise errors.ArgumentError(
            f"evaluate: the data is a {type(data).__name__}; give rows: (inputs, target), or inputs."
        )
    program, reward, metrics = runner.program, runner.reward, Metrics(options.metrics)
    rows, output = await rows_to_score(data, y, program, builds=options.executor is None)
    checks = target_checks(output, reward, metrics.metrics)
    folder, bar = run_from(options.run, options.durable_rows), flow.open_progress(options.progress)
    is_list = hasattr(rows, "__len__")  # rather than a stream
    if is_list:
        check_targets(rows, checks, reward)
    block: Any = nullcontext(Journal())
    if folder is not None:
        splits: dict[str, list[Example]] = {"rows": rows} if is_list else {}
        identity = runner.identity(splits, metrics.metrics)
        block = folder.open_journal(identity, "", durable_rows=options.durable_rows)
    async with block as journal:
        runner = replace(runner, journal=journal, metrics=metrics, keep_lm_calls=options.keep_calls)
        under_way = _Evaluator(runner, metrics, options, bar, has_checks=output is not None)
        bar.begin("evaluate", len(rows) * options.samples if is_list else None)
        outcome = "stopped"
        try:
            jobs = _jobs(rows, options.samples, () if is_list else checks)
            most = most_at_once(options.concurrency, models_of(program, reward))
            async with (
                runner.on(options.executor),
                flow.map_concurrently(under_way.run, jobs, concurrency=most, progress=False) as finished,
            ):
                async for index in finished:
                    under_way.fold(index)
                    under_way.check_failures()
            under_way.check_end()
            outcome = "done"
        except _Stop as stop:
            outcome, partial = "failed", under_way.evaluation()
            raise errors.EvaluationError(f"evaluate: {stop}; {partial!r}", partial=partial) from under_way.cause
        except BaseException as error:
            if leaves.is_cancellation(error):
                keep_partial(under_way.evaluation())
            else:
                error.__dict__["partial"] = under_way.evaluation()  # what the data raised is of any class
            raise
        finally:
            bar.end(outcome)
    return under_way.evaluation()


async def predict_rows(
    runner: Runner,
    rows: Iterable[Example],
    *,
    on_error: Literal["raise", "collect"] = "raise",
    concurrency: int | None = None,
    progress: flow.Progress | Literal[False] | None = None,
) -> list[Any]:
    """Return the outputs of a program for each row, in order; see `Program.predict`."""

    async def run(job: tuple[int, Example]) -> Any:
        outcome = await runner.run(Job(job[1], job[0]))
        if outcome.failure is not None:
            raise outcome.failure
        return outcome.outputs

    most = most_at_once(concurrency, models_of(runner.program))
    async with flow.map_concurrently(
        run, enumerate(rows), concurrency=most, on_error=on_error, progress=progress
    ) as results:
        return [result async for result in results]


class _Stop(Exception):  # not an error: how a run ends its pool
    """The evaluation ends here, and why."""


@dataclass(eq=False)
class _Evaluator:
    """One evaluation: its finished runs, added up in input order, and when to stop.

    Attributes:
        cause: The failure that a stop is raised from: its reason, else the first failure.
    """

    runner: Runner
    metrics: Metrics
    options: EvaluationOptions
    bar: flow.SafeProgress
    has_checks: bool
    """Whether reward and metrics were checked against the outputs; otherwise against those of the first run."""

    def __post_init__(self) -> None:
        bound, score = self.runner.bound, self.options.failure_score
        self._score_of_failure = None if bound is None else bound.lowest if score == "lowest" else score
        self._first_sample = lm.current_sample() * self.options.samples
        self._clock = leaves.current_clock()
        self._started = self._clock.now()
        self._finished: dict[int, tuple[ExampleResult, Mapping[str, float] | None]] = {}
        """Finished runs that wait for an earlier one; without values where metrics leave the run out."""
        self._results: list[ExampleResult] = []
        self._errors: list[ExampleResult] = []
        self._usage = NO_USAGE
        self._sum, self._scores = 0.0, 0  # in input order, so that the mean does not depend on what finished first
        self._begun = self._done = self._failed = self._judged = 0
        self._first_zero: ExampleResult | None = None
        """A run with the lowest score, as long as no run has another."""
        self._shown_sum, self._shown_scores = 0.0, 0  # of what has finished, for the bar
        self._reason: str | None = None
        self.cause: Exception | None = None

    async def run(self, job: _Row) -> int:
        """Run one example, score it, and note the result; a failure is a result.

        Raises:
            _Stop: The evaluation ends.
            ArgumentError: The inputs are plain JSON, and the program declares no schema for them.
            SchemaError, CallError: As for `target_checks`.
            BudgetExceeded, DeadlineExceeded: That of an enclosing block.
        """
        if self._reason is not None:
            raise _Stop(self._reason)
        self._begun += 1
        index, example, sample = job
        outcome = await self.runner.run(Job(example, index, sample=self._first_sample + sample))
        if not self.has_checks and isinstance(outcome.outputs, _DATA):
            self.has_checks = True
            outputs = symbol(schema_of(outcome.outputs))
            target_checks(outputs, self.runner.reward, self.metrics.metrics)
        counts = outcome.fault == "program" and self.options.failure_score is not None
        result = outcome.result(ExampleResult, example, outcome.feedback, sample)
        if counts:
            result = replace(result, score=self._score_of_failure)
        self._finished[index] = (result, outcome.values if outcome.error is None or counts else None)
        self._done += 1
        if outcome.feedback is not None and outcome.feedback.score is not None:
            is_zero = self.runner.bound is not None and outcome.feedback.score == self.runner.bound.lowest
            self._first_zero = (self._first_zero if self._judged else result) if is_zero else None
            self._judged += 1
        if result.error is not None:
            self._failed += 1
            self.cause = self.cause or outcome.failure
        if self.bar.is_seen:
            if result.score is not None:
                self._shown_sum, self._shown_scores = self._shown_sum + result.score, self._shown_scores + 1
            score = {"score": self._shown_sum / self._shown_scores} if self._shown_scores else {}
            numbers = {"failed": self._failed, "cost_usd": self._usage.cost_usd or 0.0}
            self.bar.advance(1, **score, **numbers, in_flight=self._begun - self._done)  # a narrow bar has the score
        if outcome.fault == "fatal":
            self.cause = outcome.failure
            self._stop(f"example {result.id!r} failed for a reason that all examples share: {result.error}")
        self.check_failures()
        return index

    def _stop(self, reason: str) -> NoReturn:
        """End the evaluation: no further run begins."""
        self._reason = reason
        raise _Stop(reason)

    def check_failures(self) -> None:
        """Check how many runs have failed.

        Raises:
            _Stop: Too many.
        """
        failed, done, options = self._failed, self._done, self.options
        if failed == done == _ENOUGH and not self._judged:
            self._stop(f"the first {_ENOUGH} runs to finish have all failed")
        if options.max_errors is not None and failed > options.max_errors:
            self._stop(f"{failed} of {done} runs have failed, more than max_errors={options.max_errors} allows")
        rate = options.max_error_rate
        if rate is not None and done >= _ENOUGH and failed > rate * done:
            self._stop(f"{failed} of {done} runs have failed, more than max_error_rate={rate} allows")

    def fold(self, index: int) -> None:
        """Add one run to the sums and metrics; a run that a metric cannot count has failed."""
        result, values = self._finished.pop(index)
        if values is not None:
            try:
                self.metrics.update(result, values)
            except Exception as error:  # noqa: BLE001  # one example under collection: its failure is its result
                if result.error is None:
                    self._failed += 1
                    self.cause = self.cause or error
                    result = replace(result, error=ExampleError.of(error, "", errors.show_own_line(error)))
        if result.usage is not NO_USAGE:
            self._usage = self._usage + result.usage
        if result.error is not None:
            self._errors.append(result)
        if self.options.keep_results:
            self._results.append(result)
        if result.score is not None:
            self._sum += result.score
            self._scores += 1

    def check_end(self) -> None:
        """Check the whole set at its end.

        Raises:
            ArgumentError: It has no rows.
            _Stop: All of a short set have failed, or a metric has no result and nothing has a score.
        """
        if not self._done:
            raise errors.ArgumentError("there is nothing to evaluate: the data set has no rows.")
        if self._done == self._failed and not self._judged:
            self._stop(f"all {self._done} runs have failed" if self._done > 1 else "the only run has failed")
        if self._first_zero is not None and self._judged > 1 and self.runner.reward is not None:
            warn_of_zeros("evaluate", self.runner.reward, self._judged, self._first_zero)
        _, failure = self.metrics.results()
        if failure is not None:
            fault = f"a metric has no result: {ExampleError.of(failure, '', errors.show_own_line(failure))}"
            if not self._judged:
                self.cause = failure
                self._stop(fault)
            warnings.warn(f"evaluate: {fault}", errors.SynmodWarning, stacklevel=3)

    def evaluation(self) -> Evaluation:
        """Return the Evaluation so far, including runs that finished before an earlier one."""
        for index in sorted(self._finished):
            self.fold(index)
        metrics, _ = self.metrics.results()
        score = self._sum / self._scores if self._scores else None
        parts = leaves.frozen_dict(metrics), tuple(self._results), tuple(self._errors), self._usage
        return Evaluation(score, *parts, self._clock.now() - self._started, self._done, self._judged)


def _jobs(rows: Any, samples: int, checks: Sequence[Check]) -> Iterator[_Row] | AsyncIterator[_Row]:
    """Yield the number, example and sample of every run; rows of a stream are checked here."""
    numbers = count()

    def runs(row: Example) -> Iterator[_Row]:
        number = next(numbers)
        for check in checks if row.target is not None else ():
            check(row.target)
        return ((number * samples + sample, row, sample) for sample in range(samples))

    return flat_map(runs, rows)


def target_checks(outputs: Any, reward: Reward | None, metrics: Iterable[Any]) -> list[Check]:
    """Return the functions of a reward and metrics that raise for a target which no output of a program can match."""
    judges = [judge for judge in (reward, *metrics) if isinstance(judge, Reward | Metric)]
    return [check for judge in judges if (check := judge.target_check(outputs)) is not None]


def check_targets(rows: Sequence[Example], checks: Sequence[Check], reward: Reward | None = None) -> None:
    """Check the targets of all rows before the first run.

    Raises:
        DataError: Targets that no output can match, or none where the reward needs them; lists all of them.
    """
    faults: dict[str, list[str]] = {}
    for number, row in enumerate(rows):
        try:
            for check in checks if row.target is not None else ():
                check(row.target)
        except (errors.SchemaError, errors.CallError, errors.DataError) as error:
            place = f"row {number if row.id is None else row.id} ({as_json(row.inputs)!s:.60})"
            faults.setdefault(str(error), []).append(place)
    if faults:
        raise errors.DataError(list_faults(faults, len(rows), "have a target that cannot be scored"))
    if reward is not None and reward.needs_target and rows and all(row.target is None for row in rows):
        no_input = " A program that declares no input takes all columns as inputs: put sm.Input(Query) in front."
        raise errors.DataError(
            f"{reward.name} needs targets, and no row has one: give (inputs, target), fields of the output, or y=."
            + (no_input if leaves.is_object(rows[0].inputs) else "")
        )


# -- evaluations -------------------------------------------------------------------------------------------------------

_COLUMNS: Final = ("id", "sample", "score", "error", "elapsed_s", "call_id")
_DATA_COLUMNS: Final = ("inputs", "target", "outputs")
_ROWS_SHOWN: Final = 50


@dataclass(frozen=True, slots=True, repr=False)
class Evaluation:
    """The result of `evaluate`.

    Attributes:
        score: Mean of the rewards over the runs that have one; None without a reward, or where nothing was scored.
        metrics: The value of each metric, by name; a metric of several values gives `name/key`.
        results: The result of each run, in input order; empty where results are not kept.
        errors: The results of those that failed, in input order.
        usage: The usage of all model calls.
        elapsed_s: Seconds from beginning to end.
        total: How many runs there were: examples times samples.
        scored: How many of them have a score of their own; one that failed is in the mean by `failure_score` alone.

    Example:
        >>> Evaluation(score=0.9, metrics={"accuracy": 0.9}, total=10, scored=10)
        Evaluation(score 0.9 over 10 of 10 (0 failed), accuracy 0.9)

    Source: DSPy's `Evaluate`; differs: failures are kept apart from scores.
    """

    score: float | None = None
    metrics: Mapping[str, float] = leaves.frozen_dict({})
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
            other: An evaluation of the same examples, by id: without ids of their own, by their places.
            seed: The seed of the resamples.

        Raises:
            ArgumentError: It is not an Evaluation; no example has a score in both; or results were not kept.

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
        leaves.check_type("compare: its argument", other, Evaluation, "another Evaluation of the same rows")
        ours, theirs = self._scores(), other._scores()
        gains = [ours[example] - theirs[example] for example in ours if example in theirs]
        if not gains:
            raise errors.ArgumentError(
                "compare: no example has a score in both evaluations (keep_results=True keeps them)."
            )
        n, draw = len(gains), leaves.rng(seed, 0, "compare")
        means = sorted(math.fsum(draw.choices(gains, k=n)) / n for _ in range(_RESAMPLES))
        cut = int(_RESAMPLES * _TAIL)
        won, lost = sum(gain > 0 for gain in gains), sum(gain < 0 for gain in gains)
        return Comparison(math.fsum(gains) / n, means[cut], means[-1 - cut], won, lost, n)

    def _scores(self) -> dict[str, float]:
        """Return the mean score of each example that has one, by id."""
        scores_by_id: dict[str, list[float]] = {}
        for result in self.results:
            if result.score is not None:
                scores_by_id.setdefault(result.id, []).append(result.score)
        return {example: math.fsum(scores) / len(scores) for example, scores in scores_by_id.items()}

    def to_json(self) -> dict[str, Any]:
        """Return everything as plain JSON.

        Raises:
            DataError: A target, an output or the result of a metric is not JSON; names its place.
        """
        fields = {name: as_plain(getattr(self, name)) for name in self.__slots__}
        return leaves.scrub_json(leaves.thaw({**fields, "metrics": dict(self.metrics)}))

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
        lines: list[dict[str, Any]] = []
        for result in self.results or self.errors:
            record = result.record()
            data = {name: dump_json(leaves.thaw(record[name])) for name in _DATA_COLUMNS if record[name] is not None}
            plain = {name: getattr(result, name) for name in _COLUMNS}
            lines.append({**plain, "elapsed_s": f"{result.elapsed_s:.6f}", **data})
        return write_csv(path, lines, (*_COLUMNS, *_DATA_COLUMNS))

    def to_html(self, path: str | os.PathLike[str], baseline: Evaluation | None = None) -> Path:
        """Write a page without a script: the numbers, then every run with its data and critique, the worst first.

        Args:
            path: Where to; replaced atomically.
            baseline: An earlier evaluation of the same examples: both scores are shown, with the interval of their
                difference, and the runs that lost most come first.

        Returns:
            The path.

        Raises:
            ArgumentError: `path` is not a path, or the baseline not an Evaluation.
            DataError: A target or an output is not JSON.
            SaveError: The file cannot be written.

        Source: the reports of promptfoo; differs: one file, which opens offline.
        """
        leaves.check_type("to_html: baseline", baseline, (Evaluation, type(None)), "an Evaluation")
        difference, record = "", None
        if baseline is not None:
            record = baseline.to_json()
            if self._scores().keys() & baseline._scores().keys():
                gain = self.compare(baseline)
                difference = f"{gain.difference:+.4g} (95 % interval {gain.low:+.4g} to {gain.high:+.4g}); "
                difference += f"{gain.won} won, {gain.lost} lost of {gain.rows} rows"
        page = view.evaluation_page(repr(self), self.to_json(), record, difference)
        return leaves.write_atomic(leaves.path_text(path), page)

    def to_chat(self, path: str | os.PathLike[str], *, threshold: float = 1.0, examples: bool = False) -> Path:
        """Write a line per model call of the runs that scored well, as chat completions: data for fine-tuning.

        A line is `{"messages": [...]}`, the answer last, with `tools` where there were some.

        Args:
            path: Where to; replaced atomically.
            threshold: The lowest score of a run whose calls are written.
            examples: Whether the turns of examples stay in the prompts. Those that a template or a prompt function
                writes into a text of its own always stay.

        Returns:
            The path.

        Raises:
            ArgumentError: `path` is not a path, no model call was kept (`evaluate(keep_calls=True)` keeps them), or no
                run scored as much.
            SaveError: The file cannot be written.

        Source: DSPy's `BootstrapFinetune`, OpenAI's format of training data.
        """
        leaves.check_number("to_chat: threshold", threshold)
        if not any(result.lm_calls for result in self.results):
            raise errors.ArgumentError("to_chat: no model call was kept; evaluate(keep_calls=True) keeps them.")
        lines: list[str] = []
        for result in self.results:
            for call in result.lm_calls if result.score is not None and result.score >= threshold else ():
                line: dict[str, Any] = leaves.thaw(dict(call))
                places = line.pop("examples")
                if not examples:
                    line["messages"] = [turn for at, turn in enumerate(line["messages"]) if at not in places]
                lines.append(dump_json(leaves.scrub_json(line)) + "\n")
        if not lines:
            best = max((result.score for result in self.results if result.score is not None), default=None)
            raise errors.ArgumentError(
                f"to_chat: no run scored {threshold:g}; the best score is {best}: give threshold=."
            )
        return leaves.write_atomic(leaves.path_text(path), "".join(lines))

    def _repr_html_(self) -> str:
        """Return a table of the first results for notebooks."""
        rows = self.results or self.errors
        names = ("id", "score", "error", *_DATA_COLUMNS)
        cells_by_row = ([getattr(result, name) for name in names] for result in rows[:_ROWS_SHOWN])
        cells = (["" if value is None else str(value) for value in values] for values in cells_by_row)
        more = len(rows) - _ROWS_SHOWN
        return leaves.html_table(names, cells, above=repr(self), below=f"and {more} more" if more > 0 else "")


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
