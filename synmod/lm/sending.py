"""The lowest layer: one request to the adapter, timed, recorded and counted."""

from __future__ import annotations

from synmod.errors import ModelError, ModelTimeout
from synmod.leaves import aio
from synmod.lm.call import ModelCall
from synmod.lm.records import Attempt, LMReply, LMRequest

__all__ = ["send"]


async def send(call: ModelCall, request: LMRequest) -> LMReply:
    """Send one request.

    Raises:
        ModelTimeout: `attempt_timeout_s` is over.
        ModelError: What the adapter raised.
    """
    model = call.model
    waited, call.waited_s = call.waited_s, 0.0
    call.requests += 1
    began = model.clock.now()
    try:
        reply = await _one_attempt(call, request)
    except ModelError as error:
        said = call.model.scrub(f"{type(error).__name__}: {error}")
        call.attempts.append(Attempt(error.status, said, model.clock.now() - began, waited))
        raise
    if not isinstance(reply, LMReply):
        raise TypeError(f"adapter {model.adapter.name!r} returned {type(reply).__name__}, wanted an LMReply")
    call.attempts.append(Attempt(200, None, model.clock.now() - began, waited))
    return reply


async def _one_attempt(call: ModelCall, request: LMRequest) -> LMReply:
    """Ask the adapter, for at most `attempt_timeout_s`."""
    limit = call.model.settings.attempt_timeout_s
    if limit is None:
        return await call.model.adapter.send(request)
    with aio.deadline_scope(limit) as scope:
        return await call.model.adapter.send(request)
    if scope.expired:
        raise ModelTimeout(f"no reply within attempt_timeout_s={limit:g}")
