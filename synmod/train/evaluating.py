"""evaluate: every example through the program, many at once; one that fails costs one."""

from __future__ import annotations

import contextlib
import math
from collections.abc import AsyncIterable, AsyncIterator, Generator, Iterable, Iterator, Sized
from itertools import count
from typing import TYPE_CHECKING, Any, Literal

from synmod.errors import ArgumentError, EvaluationError
from synmod.flow import Progress, Shown, map_concurrently, shown
from synmod.leaves.aio import close_generator, is_cancellation
from synmod.module import Module
from synmod.scope import keep_partial
from synmod.train.examples import Example, ExampleReader, is_data
from synmod.train.measuring import Metrics
from synmod.train.one_run import OneRun
from synmod.train.scoring import Scorer
from synmod.train.tally import Stop, Tally

if TYPE_CHECKING:
    from synmod.train.evaluation import Evaluation

_Job = tuple[int, Example, int]


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
    seed: int = 0,
    progress: Progress | Literal[False] | None = None,
) -> Evaluation:
    """Run a program on a data set and score what it gives.

    Args:
        program: Any module.
        data: An iterable, sync or async, of `(inputs, target)`, of inputs alone, or of `sm.Example`; inputs are data
            models, or JSON that the program's Input or contract says how to read.
        reward: Function or module of `(y_true, y_pred)`, plain or async; may also name `inputs`, `extra`, `example_id`.
            Gives a number, a bool or a `sm.Feedback`. None for no score.
        metrics: Functions `(y_true, y_pred) -> number`, plain or async, or objects with `update_state`, `result` and
            `reset_state`; fed in input order. A run that one of them cannot count is a failed run; its score stands.
        concurrency: How many runs are under way at once.
        max_errors: How many runs may fail: a number, or a float as share of what has finished (looked at from the 20th
            on); None for any.
        failure_score: What a run that failed scores: `"lowest"` of the reward's range, a number, or None to leave it
            out. A transient failure of a model and a failure of the reward itself are always left out.
        samples: Runs an example, as samples 0 to `samples` - 1; examples count equally.
        keep_results: Whether the Evaluation keeps the results, or means and errors only.
        seed: Seed of the run, a whole number. An evaluation draws nothing, so no result depends on it; the draws of a
            model are seeded by its own `seed` and by the sample.
        progress: An object that is told how far it is; None for a bar on a terminal, False for nothing.

    Returns:
        The Evaluation: results in input order, whatever finished first.

    Raises:
        ArgumentError: No rows, an id that is there twice, plain JSON without a schema, a keyword of the wrong kind.
        Exception: What the data raised, as itself; has the Evaluation so far as `partial`.
        EvaluationError: Too many failures, nothing but failures, or one that is not about its example; has the
            Evaluation so far as `partial`.
        BudgetExceeded, DeadlineExceeded: That of an enclosing block; has the Evaluation so far as `partial`.

    Example:
        >>> import synmod as sm
        >>> class Query(sm.DataModel):
        ...     question: str
        >>> rows = [(Query(question="Who?"), "Who?"), (Query(question="Why?"), "When?")]
        >>> right = lambda y_true, y_pred: y_pred["question"] == y_true
        >>> evaluation = sm.run(evaluate(sm.Identity(), rows, reward=right))
        >>> evaluation
        Evaluation(score 0.5 over 2 of 2 (0 failed))

    Source: DSPy's `Evaluate`, MXNet's `Module.score`; differs: nothing that finished is thrown away.
    """
    _check(program, data, max_errors, failure_score, samples, seed)
    measures = Metrics(metrics)
    tally = Tally(measures, max_errors, samples, keep_results=keep_results)
    run = OneRun(program, _scorer(reward, tally), measures, failure_score, tally, samples)
    bar = shown(progress)
    bar.begin("evaluate", len(data) * samples if isinstance(data, Sized) else None)

    async def one(job: _Job) -> int:
        tally.begin()
        index = await run(*job)
        bar.advance(1, **tally.numbers())
        return index

    with _losing_nothing(tally, bar):
        async with map_concurrently(one, _jobs(data, samples), concurrency=concurrency, progress=False) as finished:
            async for index in finished:
                tally.take(index)
        tally.end()
    return tally.evaluation()


@contextlib.contextmanager
def _losing_nothing(tally: Tally, bar: Shown) -> Generator[None]:
    """Give whatever ends an evaluation what was finished by then."""
    outcome = "stopped"
    try:
        yield
        outcome = "done"
    except Stop:
        outcome = "failed"
        raise _stopped(tally.reason or "", tally) from tally.cause
    except BaseException as error:
        if is_cancellation(error):
            keep_partial(tally.evaluation())
        else:
            error.__dict__["partial"] = tally.evaluation()  # what the data raised is anybody's class
        raise
    finally:
        bar.end(outcome)


def _jobs(data: Any, samples: int) -> Iterator[_Job] | AsyncIterator[_Job]:
    """Every run: its number, its example, its sample."""
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


def _scorer(reward: Any, tally: Tally) -> Scorer | None:
    """What asks the reward, None without one."""
    try:
        return None if reward is None else Scorer(reward)
    except ArgumentError as error:
        raise _stopped(str(error), tally) from error


def _stopped(reason: str, tally: Tally) -> EvaluationError:
    """The error that ends an evaluation, with what was finished."""
    partial = tally.evaluation()
    return EvaluationError(f"evaluate: {reason}; {partial!r}", partial=partial)


def _check(program: Any, data: Any, max_errors: Any, failure_score: Any, samples: Any, seed: Any) -> None:
    """Refuse what cannot be run."""
    if not isinstance(program, Module):
        raise ArgumentError(f"evaluate: the program is a {type(program).__name__}; give a module.")
    if not is_data(data):
        raise ArgumentError(f"evaluate: the data is a {type(data).__name__}; give rows: (inputs, target), or inputs.")
    if not _is_count(samples, 1):
        raise ArgumentError(f"evaluate: samples is {samples!r:.100}; give a whole number of at least 1.")
    if not _is_count(seed, None):
        raise ArgumentError(f"evaluate: seed is {seed!r:.100}; give a whole number.")
    is_number = isinstance(failure_score, (int, float)) and not isinstance(failure_score, bool)
    is_number = is_number and math.isfinite(failure_score)
    if failure_score is not None and failure_score != "lowest" and not is_number:
        raise ArgumentError(f"evaluate: failure_score is {failure_score!r:.100}; give 'lowest', a number or None.")
    right = max_errors is None or _is_count(max_errors, 0) or (isinstance(max_errors, float) and 0 <= max_errors <= 1)
    if not right:
        raise ArgumentError(
            f"evaluate: max_errors is {max_errors!r:.100}; give a number of runs, or a share from 0.0 to 1.0."
        )


def _is_count(value: Any, least: int | None) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and (least is None or value >= least)
