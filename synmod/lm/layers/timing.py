"""Time: `timeout_s` and the nearest `sm.deadline` cover the whole call, waits and repair included.

A call begins in time, and each wait inside it, for the adapter or for the next attempt, is bounded by what is left. A
reply that is there at once needs no limit, and pays for none.
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TypeVar

from synmod.errors import ModelTimeout
from synmod.leaves import aio
from synmod.lm.layers.call import Below, ModelCall
from synmod.lm.layers.failing import ending
from synmod.lm.records import LMReply, LMRequest
from synmod.scope import check_deadline

__all__ = ["bounded", "in_time", "seconds_left"]

T = TypeVar("T")


async def in_time(below: Below, call: ModelCall, request: LMRequest) -> LMReply:
    """Begin a call, unless it is too late.

    Raises:
        DeadlineExceeded: An enclosing `sm.deadline` is over.
    """
    check_deadline(call.frame or "", call.ambient)
    await aio.checkpoint()  # so that every call can be cancelled, also one that is answered without a wait
    return await below(call, request)


async def bounded(call: ModelCall, waiting: Awaitable[T], left: float | None, attempt: float | None = None) -> T:
    """Wait for the adapter, for as long as the call and the attempt may take.

    Args:
        call: The call.
        waiting: What to wait for.
        left: Seconds that the call has left, None for no limit.
        attempt: Seconds that this attempt has, None for no limit.

    Raises:
        ModelTimeout: `timeout_s` or `attempt_timeout_s` is over.
        DeadlineExceeded: An enclosing `sm.deadline` is over.
    """
    limits = [limit for limit in (left, attempt) if limit is not None]
    if not limits:
        return await waiting
    with aio.deadline_scope(min(limits)):
        return await waiting
    # Only a scope that expired leads here: it swallowed its own cancellation.
    check_deadline(call.frame or "", call.ambient)
    if attempt is not None and attempt == min(limits):
        raise ModelTimeout(f"no reply within attempt_timeout_s={attempt:g}")
    raise ending(ModelTimeout(f"no reply within timeout_s={call.timeout_s:g}"))


def seconds_left(call: ModelCall) -> float | None:
    """Tell how long the call may still take; None where nothing limits it."""
    deadline = None if call.ambient is None else call.ambient.deadline
    if call.timeout_s is None:
        return None if deadline is None else deadline.left()
    left = call.timeout_s - call.elapsed_s
    return left if deadline is None else min(left, deadline.left())
