"""One run of an evaluation: the program on one example, then the reward, and what became of them."""

from __future__ import annotations

from typing import Any, Final, Literal, cast

from synmod.errors import (
    ModelTimeout,
    RateLimitError,
    SchemaError,
    UnavailableError,
)
from synmod.leaves.clock import current_clock
from synmod.lm import current_sample, drawing
from synmod.module import Module
from synmod.scope import Feedback, hooks, is_of_block_around, track_rewards, track_usage
from synmod.train.example_result import ExampleError, ExampleResult
from synmod.train.examples import Example, UnreadableRow, inputs_for
from synmod.train.measuring import Metrics
from synmod.train.scoring import Scorer
from synmod.train.tally import Tally
from synmod.train.watch import Watch

_TRANSIENT: Final = (RateLimitError, UnavailableError, ModelTimeout)


class OneRun:
    """Runs one example and tells the tally; a failure of the example is its result."""

    def __init__(
        self,
        program: Module,
        scorer: Scorer | None,
        metrics: Metrics,
        failure_score: float | Literal["lowest"] | None,
        tally: Tally,
        samples: int,
    ) -> None:
        self._program = program
        self._scorer = scorer
        self._metrics = metrics
        lowest = None if scorer is None else scorer.lowest
        self._leaves_failures_out = failure_score is None
        self._failure_score = lowest if failure_score == "lowest" else failure_score
        self._tally = tally
        self._samples = samples
        self._first = current_sample() * samples

    async def __call__(self, index: int, example: Example, sample: int) -> int:
        """Run, score, tell; give the number of the run back.

        Raises:
            Stop: There is a reason to stop.
            UnreadableRow: The inputs are plain JSON that nothing says how to read.
            BudgetExceeded, DeadlineExceeded: An enclosing block's.
        """
        clock = current_clock()
        started = clock.now()
        watch = Watch()
        outputs: Any = None
        feedback: Feedback | None = None
        failure: Exception | None = None
        measured: dict[str, float] = {}
        ran = False
        with track_usage() as usage:
            try:
                with drawing(self._first + sample), track_rewards() as given:
                    with hooks(watch):
                        outputs = await self._program(inputs_for(self._program, example))
                    ran = True
                    if self._scorer is not None:
                        feedback = _with_objectives(await self._scorer.score(example, outputs), given)
                    measured = await self._metrics.measure(example.target, outputs)
            except UnreadableRow:
                raise
            except Exception as error:  # one example under collection: its failure is its result
                if is_of_block_around(error):
                    raise
                failure = error
        result = ExampleResult(
            id=cast("str", example.id),  # whoever read the row has named it
            inputs=example.inputs,
            target=example.target,
            outputs=outputs if ran else None,
            score=self._score(feedback, failure, ran=ran),
            feedback=feedback,
            error=None if failure is None else ExampleError.of(failure, watch.path_of(failure)),
            usage=usage.total(),
            elapsed_s=clock.now() - started,
            call_id=watch.call_id,
            sample=sample,
        )
        self._tally.finish(
            index,
            result,
            failure,
            measured=measured if failure is None or self._counts(failure, ran=ran) else None,
            in_build=isinstance(failure, SchemaError) and watch.is_of_build(failure),
        )
        return index

    def _score(self, feedback: Feedback | None, failure: Exception | None, *, ran: bool) -> float | None:
        """The score of a run."""
        if feedback is not None:
            return feedback.score
        if failure is None or self._scorer is None or not self._counts(failure, ran=ran):
            return None
        return self._failure_score

    def _counts(self, failure: Exception, *, ran: bool) -> bool:
        """Whether a failure counts as one of the program: neither the reward's, nor an outage, nor left out."""
        return not ran and not isinstance(failure, _TRANSIENT) and not self._leaves_failures_out


def _with_objectives(feedback: Feedback, given: list[Any]) -> Feedback:
    """The feedback with the rewards that modules gave during the call, by path."""
    if not given:
        return feedback
    told = {path if name is None else f"{path}/{name}".lstrip("/"): value for path, name, value in given}
    return Feedback(feedback.score, feedback.critique, feedback.target, {**told, **feedback.objectives}, feedback.parts)
