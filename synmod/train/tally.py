"""The tally of an evaluation: what has finished, folded in input order, and when it is time to stop."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, TypeAlias

from synmod.errors import ArgumentError, AuthError, BuildError, ConfigError, UnboundModelError
from synmod.leaves.clock import current_clock
from synmod.scope import Usage
from synmod.train.evaluation import Evaluation
from synmod.train.example_result import ExampleError, ExampleResult
from synmod.train.measuring import Metrics

_LOOKED_AT_FROM = 20
"""How many runs must have finished before a share of failures, or that all of them failed, says something."""

_NOT_ABOUT_THE_EXAMPLE = (AuthError, ConfigError, BuildError, UnboundModelError)


Measured: TypeAlias = Mapping[str, float] | None
"""What the functions among the metrics said of a run; None where metrics are not told of it."""


class Stop(Exception):  # not an error: how a run tells its pool that enough is enough
    """The evaluation ends here."""


class Tally:
    """Counts runs as they finish, and folds them in input order, whatever finishes first.

    Args:
        metrics: What is measured beside the reward.
        max_errors: How many runs may fail: a number, or a share of what has finished; None for any.
        samples: Runs an example.
        keep_results: Whether results are kept, not only their sums.
    """

    def __init__(self, metrics: Metrics, max_errors: float | None, samples: int, *, keep_results: bool) -> None:
        self._metrics = metrics
        self._max_errors = max_errors
        self._samples = samples
        self._keep_results = keep_results
        self._waiting: dict[int, tuple[ExampleResult, Measured]] = {}  # finished, while one before it has not
        self._results: list[ExampleResult] = []
        self._errors: list[ExampleResult] = []
        self._usage = Usage()
        self._of_example: list[float] = []
        self._sum = 0.0
        self._shown, self._shown_sum, self._shown_cost = 0, 0.0, 0.0
        self._examples = self._folded = self._scored = 0
        self._clock = current_clock()
        self._started = self._clock.now()
        self._begun = self.done = self.failed = 0
        self.cause: Exception | None = None
        self.reason: str | None = None

    def numbers(self) -> dict[str, float]:
        """What a progress object is told beside the count: of what has finished, in whatever order."""
        told = {"failed": self.failed, "in_flight": self._begun - self.done, "cost_usd": self._shown_cost}
        return {**told, "score": self._shown_sum / self._shown} if self._shown else told

    def begin(self) -> None:
        """Count a run that begins.

        Raises:
            Stop: There was a reason to stop: what has not begun by then never does.
        """
        if self.reason is not None:
            raise Stop
        self._begun += 1

    def finish(
        self, index: int, result: ExampleResult, error: Exception | None, *, measured: Measured, in_build: bool
    ) -> None:
        """Count a run that has finished.

        Args:
            index: Its number.
            result: What became of it.
            error: Why it failed.
            measured: What the functions among the metrics said; None where metrics are not told of it.
            in_build: Whether it failed while the program was being built.

        Raises:
            Stop: There is a reason to stop; `reason` and `cause` tell.
        """
        self._waiting[index] = (result, measured)
        self.done += 1
        self._shown_cost += result.usage.cost_usd or 0.0
        if result.score is not None:
            self._shown += 1
            self._shown_sum += result.score
        if error is None:
            if isinstance(self._max_errors, float):  # of the first twenty the last may be one that did not fail
                self._stop_where_it_is_enough()
            return
        self._count_failure(error)
        if self.reason is None and (in_build or isinstance(error, _NOT_ABOUT_THE_EXAMPLE)):
            self.cause = error
            self.reason = f"example {result.id!r} failed for a reason that is not its own: {_told(result.error)}"
        self._stop_where_it_is_enough()

    def _count_failure(self, error: Exception) -> None:
        """Count a run that failed; the first failure is what a stop is chained to."""
        self.failed += 1
        self.cause = self.cause or error

    def _stop_where_it_is_enough(self) -> None:
        """Look at what has failed so far.

        Raises:
            Stop: It is too much, or there was a reason before.
        """
        if self.reason is not None:
            raise Stop
        if self.done == self.failed == _LOOKED_AT_FROM:
            self.reason = f"the first {_LOOKED_AT_FROM} runs to finish have all failed"
        elif self._are_too_many():
            self.reason = (
                f"{self.failed} of {self.done} runs have failed, more than max_errors={self._max_errors!r} allows"
            )
        if self.reason is not None:
            raise Stop

    def end(self) -> None:
        """Look at the whole set once it has ended.

        Raises:
            ArgumentError: It has no rows.
            Stop: All of a set shorter than what `finish` looks at have failed, or a metric has no result.
        """
        if not self.done:
            raise ArgumentError("there is nothing to evaluate: the data set has no rows.")
        if self.done == self.failed:
            self.reason = f"all {self.done} runs have failed" if self.done > 1 else "the only run has failed"
            raise Stop
        try:
            self._metrics.check()
        except Exception as error:  # the stop is chained to it
            self.cause = error
            self.reason = f"a metric has no result: {_told(ExampleError.of(error, ''))}"
            raise Stop from error

    def take(self, index: int) -> None:
        """Fold the next run in input order.

        Raises:
            Stop: A metric cannot count it, and that is one failure too many.
        """
        failed = self.failed
        self._fold(index)
        if self.failed > failed:
            self._stop_where_it_is_enough()

    def _fold(self, index: int) -> None:
        """Add one run to the sums, and tell the metrics; what one of these cannot count is a failure of that run."""
        result, measured = self._waiting.pop(index)
        if measured is not None:
            try:
                self._metrics.update(result, measured)
            except Exception as error:  # noqa: BLE001  # one example under collection: its failure is its result
                if result.error is None:
                    self._count_failure(error)
                result = replace(result, error=result.error or ExampleError.of(error, ""))
        self._folded += 1
        if result.usage.calls:
            self._usage = self._usage + result.usage
        if result.error is not None:
            self._errors.append(result)
        if self._keep_results:
            self._results.append(result)
        if result.score is not None:
            self._of_example.append(result.score)
            self._scored += result.error is None
        if result.sample == self._samples - 1 and self._of_example:
            self._sum += _mean(self._of_example)
            self._examples += 1
            self._of_example = []

    def evaluation(self) -> Evaluation:
        """Give what there is, also of runs that finished while one before them had not."""
        for index in sorted(self._waiting):
            self._fold(index)
        return Evaluation(
            self._metrics.results(),
            score=self._mean_score(),
            results=tuple(self._results),
            errors=tuple(self._errors),
            usage=self._usage,
            elapsed_s=self._clock.now() - self._started,
            total=self._folded,
            scored=self._scored,
        )

    def _mean_score(self) -> float | None:
        """The mean score, examples counting equally; one that was not finished counts with what there is."""
        total, examples = self._sum, self._examples
        if self._of_example:
            total, examples = total + _mean(self._of_example), examples + 1
        return total / examples if examples else None

    def _are_too_many(self) -> bool:
        """Whether more have failed than may."""
        limit: Any = self._max_errors
        if isinstance(limit, float):
            return self.done >= _LOOKED_AT_FROM and self.failed > limit * self.done
        return limit is not None and self.failed > limit


def _told(error: ExampleError | None) -> str:
    return "" if error is None else f"{error.type}: {error.message}"


def _mean(scores: list[float]) -> float:
    return sum(scores) / len(scores)
