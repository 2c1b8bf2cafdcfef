"""The layer that refuses early: what can be known before a request leaves costs no request and no second try.

An adapter may have `check(request)`, a plain function for what it knows at once, such as a missing key; and `async
prepare(request)`, for what it must load first.
"""

from __future__ import annotations

from synmod.lm.layers.call import Below, ModelCall
from synmod.lm.layers.timing import bounded, seconds_left
from synmod.lm.records import LMReply, LMRequest

__all__ = ["checked"]


async def checked(below: Below, call: ModelCall, request: LMRequest) -> LMReply:
    """Let the adapter refuse a request before anything is reserved or sent.

    Raises:
        ModelError: The adapter knows that it cannot send the request.
        ModelTimeout, DeadlineExceeded: It was not ready in time.
    """
    adapter = call.model.adapter
    check = getattr(adapter, "check", None)
    if check is not None:
        check(request)
    prepare = getattr(adapter, "prepare", None)
    if prepare is not None:
        await bounded(call, prepare(request), seconds_left(call))
    return await below(call, request)
