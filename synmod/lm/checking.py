"""The layer that refuses what can be known at once: a missing key needs no time, no price and no connection."""

from __future__ import annotations

from synmod.lm.call import Below, ModelCall
from synmod.lm.records import LMReply, LMRequest

__all__ = ["checked"]


async def checked(below: Below, call: ModelCall, request: LMRequest) -> LMReply:
    """Ask the adapter's `check`, where it has one, before anything else.

    Raises:
        ModelError: The adapter knows that it cannot send the request.
    """
    check = getattr(call.model.adapter, "check", None)
    if check is not None:
        check(request)
    return await below(call, request)
