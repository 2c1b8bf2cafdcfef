"""The lowest layer: one request to the adapter, timed, recorded and counted."""

from __future__ import annotations

from synmod.errors import ModelError, ModelTimeout
from synmod.leaves import aio
from synmod.lm.call import ModelCall
from synmod.lm.failing import was_sent
from synmod.lm.records import Attempt, LMReply, LMRequest

__all__ = ["send"]


async def send(call: ModelCall, request: LMRequest) -> LMReply:
    """Send one request.

    Raises:
        ModelTimeout: `attempt_timeout_s` is over.
        ModelError: What the adapter raised.
        TypeError: The adapter gave no `LMReply`.
    """
    waited, call.waited_s = call.waited_s, 0.0
    call.requests += 1
    began = call.clock.now()
    try:
        reply = await _one_attempt(call, request)
    except ModelError as error:
        if was_sent(error):
            said = call.model.scrub(f"{type(error).__name__}: {error}")
            call.attempts.append(Attempt(error.status, said, call.clock.now() - began, waited))
        else:
            call.requests -= 1
        raise
    if not isinstance(reply, LMReply):  # pyright: ignore[reportUnnecessaryIsInstance]  # adapters may be untyped
        raise TypeError(f"adapter {call.model.adapter.name!r} gave {type(reply).__name__}, wanted an LMReply.")
    call.attempts.append(Attempt(200, None, call.clock.now() - began, waited))
    return reply


async def _one_attempt(call: ModelCall, request: LMRequest) -> LMReply:
    """Ask the adapter, for at most `attempt_timeout_s`."""
    limit = call.model.settings.attempt_timeout_s
    if limit is None:
        return await call.model.adapter.send(request)
    with aio.deadline_scope(limit):
        return await call.model.adapter.send(request)
    raise ModelTimeout(f"no reply within attempt_timeout_s={limit:g}")
