"""The layer of time: `timeout_s` and the nearest `sm.deadline` cover the whole call, waits and repair included."""

from __future__ import annotations

from synmod.errors import ModelTimeout
from synmod.leaves import aio
from synmod.lm.call import Below, ModelCall
from synmod.lm.records import LMReply, LMRequest
from synmod.scope.limits import check_deadline, time_left

__all__ = ["in_time", "seconds_left"]


async def in_time(below: Below, call: ModelCall, request: LMRequest) -> LMReply:
    """Ask what is below, until the time of the call is up.

    Raises:
        ModelTimeout: `timeout_s` is over.
        DeadlineExceeded: An enclosing `sm.deadline` is over.
    """
    check_deadline(call.path)
    limits = [limit for limit in (call.timeout_s, time_left()) if limit is not None]
    if not limits:
        return await below(call, request)
    with aio.deadline_scope(min(limits)) as scope:
        return await below(call, request)
    check_deadline(call.path)
    raise ModelTimeout(f"no reply within timeout_s={call.timeout_s:g}")


def seconds_left(call: ModelCall) -> tuple[float, str] | None:
    """Tell how long the call may still take, and by which limit; None where there is none."""
    limits: list[tuple[float, str]] = []
    if call.timeout_s is not None:
        limits.append((call.timeout_s - call.elapsed_s, f"timeout_s={call.timeout_s:g}"))
    left = time_left()
    if left is not None:
        limits.append((left, "the enclosing sm.deadline"))
    return min(limits, default=None)
