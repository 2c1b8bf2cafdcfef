"""Telling hooks of model calls: traces take the call as it is, others get a record."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from synmod.scope.ambient import AMBIENT, effective
from synmod.scope.frame import CallFrame, current_call
from synmod.scope.hooks import Listeners, hooks_inside
from synmod.scope.in_place import LMOutcome
from synmod.scope.notify import begin, end, tell_in_place


def lm_listeners() -> Listeners | None:
    """Give those who listen to a model call begun here, None if nobody does."""
    return hooks_inside(effective(AMBIENT.get()), current_call())


async def begin_lm(
    listeners: Listeners,
    frame: CallFrame | None,
    phase: str,
    request: Any,
    started: float,
    secrets: Callable[[], frozenset[str]] | None = None,
) -> None:
    """Tell that a model call begins.

    Args:
        listeners: Who is told; from `lm_listeners`.
        frame: The module call that it is made in.
        phase: That of the model call.
        request: What is asked; `request.model` is who.
        started: The call's `perf_counter`.
        secrets: Gives the texts that the model hides.
    """
    if listeners.in_place:
        tell_in_place(listeners.in_place, "open_lm", frame, phase, request, secrets, started)
    elif listeners.want("on_lm_begin"):
        place = listeners.place_of(frame, phase)
        await begin(listeners, "on_lm_begin", Listeners.records.LMBegin(*place, request, request.model, secrets))


async def end_lm(listeners: Listeners, frame: CallFrame | None, phase: str, request: Any, outcome: LMOutcome) -> None:
    """Tell that a model call ended; see `begin_lm`."""
    if listeners.in_place:
        tell_in_place(reversed(listeners.in_place), "close_lm", request, outcome)
    elif listeners.want("on_lm_end"):
        place = listeners.place_of(frame, phase)
        event = Listeners.records.LMEnd(*place, request, request.model, *outcome)
        await end(listeners, "on_lm_end", event, outcome.exception)
