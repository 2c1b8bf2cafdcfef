"""The tally of an evaluation: what has finished, folded in input order, and when it is time to stop."""

from __future__ import annotations

from typing import Any

from synmod.errors import AuthError, BuildError, ConfigError, UnboundModelError
from synmod.scope import Usage
from synmod.train.evaluation import Evaluation
from synmod.train.example_result import ExampleResult
from synmod.train.measuring import Metrics

_LOOKED_AT_FROM = 20
"""How many runs must have finished before a share of failures, or that all of them failed, says something."""

_NOT_ABOUT_THE_EXAMPLE = (AuthError, ConfigError, BuildError, UnboundModelError)


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
        self._waiting: dict[int, tuple[ExampleResult, bool]] = {}  # finished, while one before it has not
        self._results: list[ExampleResult] = []
        self._errors: list[ExampleResult] = []
        self._usage = Usage()
        self._of_example: list[float] = []
        self._sum = 0.0
        self._shown, self._shown_sum, self._shown_cost = 0, 0.0, 0.0
        self._examples = self._folded = self._scored = 0
        self.done = self.failed = 0
        self.cause: Exception | None = None
        self.reason: str | None = None

    def numbers(self) -> dict[str, float]:
        """What a progress object is told beside the count: of what has finished, in whatever order."""
        told = {"failed": float(self.failed), "cost_usd": self._shown_cost}
        return {**told, "score": self._shown_sum / self._shown} if self._shown else told

    def finish(
        self, index: int, result: ExampleResult, error: Exception | None, *, counts: bool, in_build: bool
    ) -> None:
        """Count a run that has finished.

        Args:
            index: Its number.
            result: What became of it.
            error: Why it failed.
            counts: Whether metrics are told of it.
            in_build: Whether it failed while the program was being built.

        Raises:
            Stop: There is a reason to stop; `reason` and `cause` tell.
        """
        self._waiting[index] = (result, counts)
        self.done += 1
        self._shown_cost += result.usage.cost_usd or 0.0
        if result.score is not None:
            self._shown += 1
            self._shown_sum += result.score
        if error is None:
            return
        self.failed += 1
        self.cause = self.cause or error
        if in_build or isinstance(error, _NOT_ABOUT_THE_EXAMPLE):
            self.cause = error
            self.reason = (
                f"example {result.id!r} failed for a reason that is not its own: {type(error).__name__}: {error}"
            )
        elif self.done == self.failed == _LOOKED_AT_FROM:
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
            Stop: All of a set shorter than what `finish` looks at have failed.
        """
        if self.done and self.done == self.failed:
            self.reason = f"all {self.done} runs have failed" if self.done > 1 else "the only run has failed"
            raise Stop

    def take(self, index: int) -> None:
        """Fold the next run in input order."""
        result, counts = self._waiting.pop(index)
        self._folded += 1
        self._usage = self._usage + result.usage
        if result.error is not None:
            self._errors.append(result)
        if self._keep_results:
            self._results.append(result)
        if result.score is not None:
            self._of_example.append(result.score)
            self._scored += 1
        if result.sample == self._samples - 1 and self._of_example:
            self._sum += _mean(self._of_example)
            self._examples += 1
            self._of_example = []
        if counts:
            self._metrics.update(result)

    def evaluation(self, elapsed_s: float) -> Evaluation:
        """Give what there is, also of runs that finished while one before them had not."""
        for index in sorted(self._waiting):
            self.take(index)
        return Evaluation(
            self._metrics.results(),
            score=self._mean_score(),
            results=tuple(self._results),
            errors=tuple(self._errors),
            usage=self._usage,
            elapsed_s=elapsed_s,
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


def _mean(scores: list[float]) -> float:
    return sum(scores) / len(scores)
