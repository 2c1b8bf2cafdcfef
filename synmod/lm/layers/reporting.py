"""The layer of events and counters: each call is told once when it begins and once when it ends, however it ends."""

from __future__ import annotations

from synmod.errors import ModelError
from synmod.leaves.aio import is_cancellation
from synmod.lm.layers.call import Below, ModelCall
from synmod.lm.layers.failing import complete
from synmod.lm.records import LMReply, LMRequest
from synmod.scope import (
    Listeners,
    LMOutcome,
    Usage,
    add_usage,
    begin_lm,
    end_lm,
    hooks_inside,
    note_waiting,
    open_meters,
)

__all__ = ["reported"]


async def reported(below: Below, call: ModelCall, request: LMRequest) -> LMReply:
    """Tell hooks, counters and usage meters of a call; what it raises is told, completed and raised on."""
    listeners = hooks_inside(call.ambient, call.frame)
    meters = open_meters(call.frame)
    try:
        if listeners is not None:
            await begin_lm(listeners, call.frame, call.phase, request, call.began, call.model.known_secrets)
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
    """Tell hooks how a call ended."""
    if listeners is None:
        return
    elapsed_s = call.elapsed_s if reply is None else reply.elapsed_s
    secrets = call.model.known_secrets
    outcome = LMOutcome(reply, error, call.requests, usage, elapsed_s, secrets=secrets)
    await end_lm(listeners, call.frame, call.phase, request, outcome)
