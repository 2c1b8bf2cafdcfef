"""The layer of time: `timeout_s` and the nearest `sm.deadline` cover the whole call, waits and repair included."""

from __future__ import annotations

from synmod.errors import ModelTimeout
from synmod.leaves import aio
from synmod.lm.call import Below, ModelCall
from synmod.lm.records import LMReply, LMRequest
from synmod.scope import check_deadline

__all__ = ["in_time", "seconds_left"]


async def in_time(below: Below, call: ModelCall, request: LMRequest) -> LMReply:
    """Ask what is below, until the time of the call is up.

    Raises:
        ModelTimeout: `timeout_s` is over.
        DeadlineExceeded: An enclosing `sm.deadline` is over.
    """
    check_deadline(call.frame or "", call.ambient)
    await aio.checkpoint()  # so that every call can be cancelled, also one that is answered without a wait
    left = seconds_left(call)
    if left is None:
        return await below(call, request)
    with aio.deadline_scope(left):
        return await below(call, request)
    # Only a scope that expired leads here: it swallowed its own cancellation.
    check_deadline(call.frame or "", call.ambient)
    raise ModelTimeout(f"no reply within timeout_s={call.timeout_s:g}")


def seconds_left(call: ModelCall) -> float | None:
    """Tell how long the call may still take; None where nothing limits it."""
    deadline = None if call.ambient is None else call.ambient.deadline
    if call.timeout_s is None:
        return None if deadline is None else deadline.left()
    left = call.timeout_s - call.elapsed_s
    return left if deadline is None else min(left, deadline.left())
