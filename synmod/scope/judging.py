"""`sm.hooks_lib.Judge`: a reward that scores a share of the traffic beside it."""

import zlib
from collections import deque
from contextvars import copy_context
from dataclasses import dataclass
from typing import Any, Final, Self

from synmod import errors, leaves
from synmod.leaves import aio

from .frame import Block
from .hooks import CallEnd, Hook, emit
from .rewards import BoundReward, Feedback
from .tracing import error_text

_MOST_RESULTS: Final = 10_000
_ARGUMENTS: Final = ("inputs", "outputs", "target", "example_id", "extra", "usage", "elapsed_s")


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a judge returned for one entry call.

    Attributes:
        call_id: The id of the call.
        name: The label of its module.
        feedback: The feedback of the reward; None if it failed.
        error: Class and text of the error of the reward; None if it did not fail.
    """

    call_id: str
    name: str
    feedback: Feedback | None
    error: str | None = None


class Judge(Hook, Block):
    """Scores entry calls that end inside the block, beside them: the calls do not wait for the reward.

    The reward runs in the context in which the block was entered: no budget, deadline, hook or stream of the traffic
    applies to it. Its verdicts go to `results` and, as the event `judge`, to the hooks around the block. Leaving the
    block waits for the rewards under way. Calls that fail, and those of other event loops, are not judged.

    Args:
        reward: A function, plain or async, a module, or a reward of `sm.rewards` that needs no target. It takes by
            parameter name: `inputs`, `outputs` (or `y_pred`), `usage`, `elapsed_s`, `example_id` (the id of the call).
        sample: Share of the entry calls to score, chosen by their ids.
        backlog: How many rewards may be under way; calls beyond them are not scored.

    Attributes:
        results: The last 10,000 verdicts, in the order in which they were made.
        dropped: How many calls were not scored because of the backlog.

    Raises:
        ArgumentError: The reward takes something else, or needs a target; `sample` is not a share; `backlog` not a
            whole number above zero.

    Example:
        >>> import synmod as sm
        >>> class Query(sm.DataModel):
        ...     question: str
        >>> async def main():
        ...     async with sm.hooks_lib.Judge(lambda outputs: len(outputs["question"]) < 9) as judge:
        ...         await sm.Identity()(Query(question="Why?"))
        ...     return [verdict.feedback.score for verdict in judge.results]
        >>> sm.run(main())
        [1.0]

    Source: online evaluation of LangSmith; differs: in the process, in a bounded backlog.
    """

    def __init__(self, reward: Any, *, sample: float = 1.0, backlog: int = 100) -> None:
        super().__init__()
        if getattr(reward, "needs_target", False):
            raise errors.ArgumentError(f"Judge: {reward!r:.80} needs a target, and traffic has none.")
        self._reward = BoundReward(reward, _ARGUMENTS, what="Judge: the reward")
        self._sample = float(leaves.check_number("Judge: sample", sample, 0, 1))
        self._backlog = leaves.check_int("Judge: backlog", backlog)
        self._home: aio.Home | None = None
        self._under_way = 0
        self.results: deque[Verdict] = deque(maxlen=_MOST_RESULTS)
        self.dropped = 0

    async def __aenter__(self) -> Self:
        self._context = copy_context()  # without this hook, so that no reward is judged
        self._group = await aio.task_group().__aenter__()
        self._home = aio.Home.here()
        self.enter(hooks=(self,))
        return self

    async def __aexit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        self._home = None
        self.leave()
        await self._group.__aexit__(kind, error, trace)

    def on_call_end(self, event: CallEnd) -> None:
        """Start the reward of an entry call, or drop it."""
        if event.parent_call_id is not None or event.exception is not None or self._home is None:
            return
        if zlib.crc32(str(event.call_id).partition("-")[0].encode()) >= self._sample * 2**32:
            return
        if self._home != aio.Home.here():
            return
        if self._under_way >= self._backlog:
            self.dropped += 1
            return
        self._under_way += 1
        self._context.copy().run(self._group.start_soon, self._judge, event)

    async def _judge(self, event: CallEnd) -> None:
        """Run the reward on a call, and note its verdict."""
        inputs = event.inputs[0] if len(event.inputs) == 1 else event.inputs
        values: dict[str, Any] = {
            "inputs": inputs, "outputs": event.outputs, "target": None, "example_id": event.call_id, "extra": {},
            "usage": event.usage, "elapsed_s": event.elapsed_s,
        }  # fmt: skip
        feedback = error = None
        try:
            feedback = await self._reward(**values)
        except Exception as failure:  # noqa: BLE001  # of a reward, which may raise anything: traffic continues
            error = error_text(failure)
        finally:
            self._under_way -= 1
        self.results.append(Verdict(str(event.call_id), event.name, feedback, error))
        score, critique = (None, None) if feedback is None else (feedback.score, feedback.critique)
        emit("judge", {"call_id": event.call_id, "score": score, "critique": critique, "error": error})
