"""evaluate: every example through the program, many at once; one that fails costs one."""

import math
import os
from collections.abc import AsyncIterable, AsyncIterator, Iterable, Iterator, Mapping, Sized
from contextlib import nullcontext
from dataclasses import replace
from itertools import count
from types import MappingProxyType
from typing import Any, Final, Literal, NoReturn, TypeAlias

from synmod.data import DataModel, JsonDataModel, SymbolicDataModel, schema_of
from synmod.errors import ArgumentError, EvaluationError
from synmod.flow import Progress, Shown, map_concurrently, shown
from synmod.leaves import checks_keywords, close_generator, current_clock, is_cancellation
from synmod.lm import current_sample
from synmod.module import Module
from synmod.scope import NO_USAGE, keep_partial
from synmod.tree import Memory, State, state

from .batches import Places
from .evaluation import Evaluation, ExampleError, ExampleResult, Metrics
from .examples import Example, ExampleReader, is_data
from .rewards import reward_from
from .rollouts import Executor
from .runs import Journal, Run, Runner, identity_of_run, run_from

_ENOUGH: Final = 20
"""How many runs must have finished before a share of failures, or that all of them failed, says something."""
_DATA: Final = (JsonDataModel, SymbolicDataModel, DataModel)

_Job: TypeAlias = tuple[int, Example, int]
"""Number of the run, its example, its sample."""


@checks_keywords
async def evaluate(
    program: Module,
    data: Any,
    *,
    reward: Any = None,
    metrics: Iterable[Any] = (),
    concurrency: int = 64,
    max_errors: float | None = None,
    failure_score: float | Literal["lowest"] | None = "lowest",
    samples: int = 1,
    keep_results: bool = True,
    run: Run | str | os.PathLike[str] | None = None,
    progress: Progress | Literal[False] | None = None,
    executor: Executor | None = None,
    places: Places | None = None,
    first: State | None = None,
) -> Evaluation:
    """Run a program on a data set and score what it returns.

    Args:
        program: Any module.
        data: An iterable, sync or async, of `(inputs, target)`, of inputs alone, or of `sm.Example`; inputs are data
            models, or JSON that the program's Input or contract wraps.
        reward: One of `sm.rewards`, the name of one, or a function or module, plain or async, that asks by parameter
            name for what it judges: `inputs`, `outputs` (or `y_pred`), `target` (or `y_true`), `example_id`, `extra`.
            Returns a number, a bool or a `sm.Feedback`. None for no score.
        metrics: Those of `sm.metrics`, their names, functions like rewards, which return numbers, or objects with
            `update_state`, `result` and `reset_state`; fed in input order. A run that one of them cannot count is a
            failed run; its score stands.
        concurrency: How many runs are under way at once.
        max_errors: How many runs may fail: a number, or a float as share of what has finished (looked at from the 20th
            on); None for any.
        failure_score: What a run that failed scores: `"lowest"` of the reward's range, a number, or None to leave it
            out. A transient failure of a model and a failure of the reward itself are always left out.
        samples: Runs per example, as samples 0 to `samples` - 1.
        keep_results: Whether the Evaluation keeps the results, or means and errors only.
        run: A folder, or a `sm.Run`, that keeps each result as soon as there is one: the same line again goes on. A
            list of rows must be that of the first time; rows that come as a stream are found by their content alone.
        progress: An object that is notified how far it is; None for a bar on a terminal, False for nothing.
        executor: Another place for the runs, such as a `sm.DaskExecutor`; None for this process.
        places: Where a trainer runs rows.
        first: What its rows begin with; None for the program's memories as they are.

    Returns:
        The Evaluation, with results in input order, whatever finished first.

    Raises:
        ArgumentError: No rows, an id that is there twice, plain JSON without a schema, a reward that asks for
            something else, a keyword of the wrong kind.
        TrainerError: A reward or metric of an unknown name.
        SchemaError: A mask of the reward names nothing.
        Exception: What the data raised, as itself; has the Evaluation so far as `partial`.
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

    Source: DSPy's `Evaluate`, MXNet's `Module.score`; differs: nothing that finished is thrown away.
    """
    _check(program, data, max_errors, failure_score, samples)
    judge, measures = None if reward is None else reward_from(reward), Metrics(metrics)
    memories = state(program, Memory) if first is None else first
    folder, bar = run_from(run), shown(progress)
    opened: Any = nullcontext(Journal())
    if folder is not None:
        jobs, rows = _jobs(data, 1), dict[str, list[Example]]()
        if isinstance(data, Sized) and isinstance(jobs, Iterator):
            rows["rows"] = [row for _, row, _ in jobs]
        opened = folder.opened(identity_of_run(program, rows, judge, measures.given, places), "", program, judge)
    async with opened as journal:
        runner = Runner(program, judge, places=places, journal=journal, metrics=measures, first=memories)
        under_way = _Evaluator(runner, measures, max_errors, failure_score, samples, keep_results, bar)
        bar.begin("evaluate", len(data) * samples if isinstance(data, Sized) else None)
        outcome = "stopped"
        try:
            async with (
                runner.on(executor),
                map_concurrently(
                    under_way.run, _jobs(data, samples), concurrency=concurrency, progress=False
                ) as finished,
            ):
                async for index in finished:
                    under_way.fold(index)
                    under_way.check_failures()
            under_way.check_end()
            outcome = "done"
        except _Stop as stop:
            outcome, partial = "failed", under_way.evaluation()
            raise EvaluationError(f"evaluate: {stop}; {partial!r}", partial=partial) from under_way.cause
        except BaseException as error:
            if is_cancellation(error):
                keep_partial(under_way.evaluation())
            else:
                error.__dict__["partial"] = under_way.evaluation()  # what the data raised is of any class
            raise
        finally:
            bar.end(outcome)
    return under_way.evaluation()


async def predicted(
    program: Module,
    rows: Iterable[Example],
    *,
    on_error: Literal["raise", "collect"] = "raise",
    concurrency: int = 64,
    progress: Progress | Literal[False] | None = None,
    places: Places | None = None,
    first: State | None = None,
) -> list[Any]:
    """Return what a program returns for each row, in order; see `Program.predict` and, for the rest, `evaluate`."""
    runner = Runner(program, places=places, first=state(program, Memory) if first is None else first)

    async def run(row: Example) -> Any:
        ran = await runner.row(row)
        if ran.failure is not None:
            raise ran.failure
        return ran.outputs

    async with map_concurrently(run, rows, concurrency=concurrency, on_error=on_error, progress=progress) as results:
        return [result async for result in results]


class _Stop(Exception):  # not an error: how a run ends its pool
    """The evaluation ends here, and why."""


class _Evaluator:
    """One evaluation under way: what has finished, folded in input order, and when it is time to stop.

    Attributes:
        cause: What a stop is chained to: the failure that is the reason, else the first one.
    """

    def __init__(
        self,
        runner: Runner,
        metrics: Metrics,
        max_errors: float | None,
        failure_score: float | Literal["lowest"] | None,
        samples: int,
        keep_results: bool,
        bar: Shown,
    ) -> None:
        self._runner, self._metrics, self._bar = runner, metrics, bar
        self._unchecked = runner.reward
        """The reward, until its masks were looked at."""
        self._max_errors, self._keep_results = max_errors, keep_results
        self._counts_failures = failure_score is not None
        bound = runner.bound
        self._failure_score = None if bound is None else bound.lowest if failure_score == "lowest" else failure_score
        self._first_sample = current_sample() * samples
        self._clock = current_clock()
        self._started = self._clock.now()
        self._finished: dict[int, tuple[ExampleResult, Mapping[str, float] | None]] = {}
        """What has finished, while a run before it has not; without values where metrics leave the run out."""
        self._results: list[ExampleResult] = []
        self._errors: list[ExampleResult] = []
        self._usage = NO_USAGE
        self._folded = self._scored = 0
        self._sum, self._scores = 0.0, 0  # in input order, so that the mean does not depend on what finished first
        self._begun = self._done = self._failed = 0
        self._shown_sum, self._shown_scores, self._shown_cost = 0.0, 0, 0.0  # of what has finished, for the bar
        self._reason: str | None = None
        self.cause: Exception | None = None

    async def run(self, job: _Job) -> int:
        """Run one example, score it, and note what became of it: its failure is its result.

        Raises:
            _Stop: There is a reason to stop.
            UnreadableRow: The inputs are plain JSON, and the program declares no schema for them.
            MaskError: A mask of the reward names nothing.
            BudgetExceeded, DeadlineExceeded: That of an enclosing block.
        """
        if self._reason is not None:
            raise _Stop(self._reason)
        self._begun += 1
        index, example, sample = job
        if self._unchecked is not None:
            self._check_masks(self._runner.program.output_spec, example.target)
        ran = await self._runner.row(example, sample=self._first_sample + sample)
        if self._unchecked is not None:
            self._check_masks(ran.outputs, example.target)
        counts = ran.fault == "program" and self._counts_failures
        score = ran.feedback.score if ran.feedback else self._failure_score if counts else None
        result = ran.result(ExampleResult, example, ran.feedback, score, sample)
        self._finished[index] = (result, ran.values if ran.error is None or counts else None)
        self._done += 1
        if result.error is not None:
            self._failed += 1
            self.cause = self.cause or ran.failure
        self._show(result)
        if ran.fault == "fatal":
            self.cause = ran.failure
            self._stop(f"example {result.id!r} failed for a reason that is not its own: {result.error}")
        self.check_failures()
        return index

    def _stop(self, reason: str) -> NoReturn:
        """End the evaluation: no run begins any more."""
        self._reason = reason
        raise _Stop(reason)

    def _check_masks(self, outputs: Any, target: Any) -> None:
        """Look at the masks of the reward, once the schema of the outputs is known (MaskError)."""
        if self._unchecked is not None and isinstance(outputs, _DATA):
            self._unchecked.check(schema_of(outputs), schema_of(target) if isinstance(target, _DATA) else None)
            self._unchecked = None

    def _show(self, result: ExampleResult) -> None:
        """Let the bar know of a run that has finished, in whatever order."""
        self._shown_cost += result.usage.cost_usd or 0.0
        if result.score is not None:
            self._shown_scores += 1
            self._shown_sum += result.score
        score = {"score": self._shown_sum / self._shown_scores} if self._shown_scores else {}
        numbers = {"failed": self._failed, "cost_usd": self._shown_cost, "in_flight": self._begun - self._done}
        self._bar.advance(1, **score, **numbers)  # the score first, which a narrow terminal keeps

    def check_failures(self) -> None:
        """Look whether too much has failed.

        Raises:
            _Stop: It has.
        """
        limit, failed, done = self._max_errors, self._failed, self._done
        if failed == done == _ENOUGH:
            self._stop(f"the first {_ENOUGH} runs to finish have all failed")
        if isinstance(limit, float):
            limit = limit * done if done >= _ENOUGH else None
        if limit is not None and failed > limit:
            self._stop(f"{failed} of {done} runs have failed, more than max_errors={self._max_errors!r} allows")

    def fold(self, index: int) -> None:
        """Add one run to the sums and metrics; what one of these cannot count is a failure of that run."""
        result, values = self._finished.pop(index)
        if values is not None:
            try:
                self._metrics.update(result, values)
            except Exception as error:  # noqa: BLE001  # one example under collection: its failure is its result
                if result.error is None:
                    self._failed += 1
                    self.cause = self.cause or error
                    result = replace(result, error=ExampleError.of(error, ""))
        self._folded += 1
        if result.usage is not NO_USAGE:
            self._usage = self._usage + result.usage
        if result.error is not None:
            self._errors.append(result)
        if self._keep_results:
            self._results.append(result)
        if result.score is not None:
            self._sum += result.score
            self._scores += 1
            self._scored += result.error is None

    def check_end(self) -> None:
        """Look at the whole set once it has ended.

        Raises:
            ArgumentError: It has no rows.
            _Stop: All of a short set have failed, or a metric has no result.
        """
        if not self._done:
            raise ArgumentError("there is nothing to evaluate: the data set has no rows.")
        if self._done == self._failed:
            self._stop(f"all {self._done} runs have failed" if self._done > 1 else "the only run has failed")
        _, failure = self._metrics.results()
        if failure is not None:
            self.cause = failure
            self._stop(f"a metric has no result: {ExampleError.of(failure, '')}")

    def evaluation(self) -> Evaluation:
        """Return what there is, also of runs that finished while one before them had not."""
        for index in sorted(self._finished):
            self.fold(index)
        metrics, _ = self._metrics.results()
        return Evaluation(
            self._sum / self._scores if self._scores else None, MappingProxyType(metrics), tuple(self._results),
            tuple(self._errors), self._usage, self._clock.now() - self._started, self._folded, self._scored,
        )  # fmt: skip


def _jobs(data: Any, samples: int) -> Iterator[_Job] | AsyncIterator[_Job]:
    """Yield every run: its number, its example, its sample."""
    reader, numbers = ExampleReader(), count()

    def runs(row: Any) -> Iterator[_Job]:
        example = reader.read(row)
        return ((next(numbers), example, sample) for sample in range(samples))

    async def later() -> AsyncIterator[_Job]:
        try:
            async for row in data:
                for job in runs(row):
                    yield job
        finally:
            await close_generator(data)

    return later() if isinstance(data, AsyncIterable) else (job for row in data for job in runs(row))


def _check(program: Any, data: Any, max_errors: Any, failure_score: Any, samples: Any) -> None:
    """Raise for an argument that cannot be used.

    Raises:
        ArgumentError: Names it.
    """
    if not isinstance(program, Module):
        raise ArgumentError(f"evaluate: the program is a {type(program).__name__}; give a module.")
    if not is_data(data):
        raise ArgumentError(f"evaluate: the data is a {type(data).__name__}; give rows: (inputs, target), or inputs.")
    if type(samples) is not int or samples < 1:
        raise ArgumentError(f"evaluate: samples is {samples!r:.100}; give a whole number of at least 1.")
    if failure_score not in ("lowest", None) and not (
        type(failure_score) in (int, float) and math.isfinite(failure_score)
    ):
        raise ArgumentError(f"evaluate: failure_score is {failure_score!r:.100}; give 'lowest', a number or None.")
    is_count = type(max_errors) is int and max_errors >= 0
    is_share = type(max_errors) is float and 0 <= max_errors <= 1
    if max_errors is not None and not is_count and not is_share:
        raise ArgumentError(
            f"evaluate: max_errors is {max_errors!r:.100}; give a number of runs, or a share from 0.0 to 1.0."
        )
