"""The one retry loop: at most `attempts` requests leave for one call, whatever asks for them."""

from __future__ import annotations

import random
from typing import Final

from synmod.errors import ModelError
from synmod.leaves import aio
from synmod.lm.layers.call import Below, ModelCall
from synmod.lm.layers.failing import may_pass, say_more
from synmod.lm.layers.timing import seconds_left
from synmod.lm.records import LMReply, LMRequest

__all__ = ["retried"]

FIRST_WAIT_S: Final = 0.5
LONGEST_JITTER_S: Final = 30.0
LONGEST_WAIT_S: Final = 60.0

_DICE: Final = random.SystemRandom()  # waits never touch a result, so they need no seed and share no state


async def retried(below: Below, call: ModelCall, request: LMRequest) -> LMReply:
    """Send the request again after a transient failure.

    Raises:
        ModelError: A permanent failure; or the last transient one, when no attempt is left or the wait is too long.
    """
    failures = 0
    while True:
        try:
            return await below(call, request)
        except ModelError as error:
            seconds = _wait_after(call, error, failures)
            if seconds is None:
                raise  # as it is, and no variable of this frame holds it: the error goes with who catches it
        await _wait(call, seconds)
        failures += 1


def _wait_after(call: ModelCall, failure: ModelError, failures: int) -> float | None:
    """Tell how long to wait before the next attempt; None where there is none, and the failure says why."""
    if not may_pass(failure) or call.requests >= call.model.attempts:
        return None
    seconds = failure.retry_after_s
    if seconds is None:
        seconds = _DICE.uniform(0.0, min(LONGEST_JITTER_S, FIRST_WAIT_S * 2**failures))
    too_long = _too_long(call, seconds)
    if too_long:
        say_more(failure, too_long)
        return None
    return seconds


async def _wait(call: ModelCall, seconds: float) -> None:
    """Wait before the next attempt."""
    began = call.clock.now()
    await (call.clock.sleep(seconds) if call.model.backoff else aio.checkpoint())
    call.waited_s = call.clock.now() - began


def _too_long(call: ModelCall, seconds: float) -> str:
    """Say why a wait makes no sense, or ""."""
    if seconds > LONGEST_WAIT_S:
        return f"not tried again: that is to wait for {seconds:g} s, longer than {LONGEST_WAIT_S:g} s"
    left = seconds_left(call)
    if left is not None and seconds >= left:
        return (
            f"not tried again: a wait of {seconds:.3g} s would pass the deadline of the call, {max(left, 0):.3g} s away"
        )
    return ""
