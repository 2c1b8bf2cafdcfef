"""The lowest layer: one request to the adapter, timed, recorded and counted."""

from __future__ import annotations

from synmod.errors import ModelError
from synmod.lm.layers.call import ModelCall
from synmod.lm.layers.failing import shortened, was_sent
from synmod.lm.layers.timing import bounded, seconds_left
from synmod.lm.records import Attempt, LMReply, LMRequest

__all__ = ["send"]


async def send(call: ModelCall, request: LMRequest) -> LMReply:
    """Send one request.

    Raises:
        ModelTimeout: No reply in time.
        ModelError: What the adapter raised.
        TypeError: The adapter gave no `LMReply`, or one whose text is no str.
    """
    adapter = call.model.adapter
    waited, call.waited_s = call.waited_s, 0.0
    call.requests += 1
    began = call.clock.now()
    try:
        sent = adapter.send(request)
        if isinstance(sent, LMReply):
            reply = sent
        else:
            reply = await bounded(call, sent, seconds_left(call), call.model.settings.attempt_timeout_s)
    except ModelError as error:
        if was_sent(error):
            said = shortened(call.model.scrub(f"{type(error).__name__}: {error}"))
            call.attempts.append(Attempt(error.status, said, call.clock.now() - began, waited))
        else:
            call.requests -= 1
        raise
    if not isinstance(reply, LMReply):  # pyright: ignore[reportUnnecessaryIsInstance]  # adapters may be untyped
        raise TypeError(f"adapter {adapter.name!r} gave {type(reply).__name__}, wanted an LMReply.")
    if not isinstance(reply.text, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise TypeError(f"adapter {adapter.name!r} gave a reply with a text of {type(reply.text).__name__}.")
    call.attempts.append(Attempt(200, None, call.clock.now() - began, waited))
    return reply
