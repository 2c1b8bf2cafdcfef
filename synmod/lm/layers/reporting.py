"""The layer of events and counters: each call is told once when it begins and once when it ends, however it ends."""

from __future__ import annotations

from synmod.errors import ModelError
from synmod.leaves.aio import is_cancellation
from synmod.lm.layers.call import Below, ModelCall
from synmod.lm.layers.failing import complete
from synmod.lm.records import LMReply, LMRequest
from synmod.scope import (
    Listeners,
    Usage,
    add_usage,
    begin_lm,
    end_lm,
    hooks_inside,
    note_waiting,
    open_meters,
    place_of,
)

__all__ = ["reported"]


async def reported(below: Below, call: ModelCall, request: LMRequest) -> LMReply:
    """Tell hooks, counters and usage meters of a call; what it raises is told, completed and raised on."""
    listeners = hooks_inside(call.ambient, call.frame)
    meters = open_meters(call.frame)
    try:
        if listeners is not None and listeners.want("on_lm_begin"):
            from synmod.scope import LMBegin

            place, secrets = place_of(call.frame, call.phase), call.model.known_secrets
            await begin_lm(listeners, LMBegin(*place, request, request.model, secrets))
        reply = await below(call, request)
    except BaseException as error:
        if isinstance(error, ModelError):
            complete(error, call)
        cancelled = is_cancellation(error) or isinstance(error, GeneratorExit)
        usage = call.usage(calls=0 if cancelled else 1)
        add_usage(meters, usage, call.phase)
        if cancelled:
            note_waiting(call.frame or "")
            call.model.counters.count_cancelled(call.phase, call.requests)
        else:
            call.model.counters.count(call.phase, usage, failed=True)
        await _tell_end(listeners, call, request, None, error, usage)
        raise
    add_usage(meters, reply.usage, call.phase)
    call.model.counters.count(call.phase, reply.usage, failed=False)
    await _tell_end(listeners, call, request, reply, None, reply.usage)
    return reply


async def _tell_end(
    listeners: Listeners | None,
    call: ModelCall,
    request: LMRequest,
    reply: LMReply | None,
    error: BaseException | None,
    usage: Usage,
) -> None:
    """Tell hooks how a call ended; no record is made that nobody reads."""
    if listeners is None or not listeners.want("on_lm_end"):
        return
    from synmod.scope import LMEnd

    elapsed = call.elapsed_s if reply is None else reply.elapsed_s
    place = place_of(call.frame, call.phase)
    ended = LMEnd(*place, request, request.model, reply, error, call.requests, usage, elapsed, cached=False)
    await end_lm(listeners, ended)
