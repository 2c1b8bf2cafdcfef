"""Telling hooks of module calls. Hot where somebody listens: traces take the call as it is, others get a record."""

from __future__ import annotations

from collections.abc import Mapping
from time import perf_counter
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from synmod.scope.frame import CallFrame
from synmod.scope.hooks import Listeners
from synmod.scope.notify import begin, end, tell_in_place, tell_plain

if TYPE_CHECKING:
    from synmod.scope.events import CallBegin, CallEnd


async def begin_call(
    listeners: Listeners,
    frame: CallFrame,
    inputs: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    started: float,
    method: str | None = None,
) -> None:
    """Tell that a call begins.

    Args:
        listeners: Who is told.
        frame: That of the call.
        inputs: Positional arguments, as `call` gets them.
        kwargs: Keywords, likewise; nobody else writes to them.
        started: The call's `perf_counter`.
        method: Another entry point than `call`.
    """
    if listeners.in_place:
        tell_in_place(listeners.in_place, "open_call", frame, inputs, kwargs, started, method)
    elif listeners.want("on_call_begin"):
        await begin(listeners, "on_call_begin", _begun(listeners, frame, inputs, kwargs, method))


async def end_call(
    listeners: Listeners,
    frame: CallFrame,
    outputs: Any,
    failure: BaseException | None,
    started: float,
    method: str | None = None,
) -> None:
    """Tell that a call ended; see `begin_call`."""
    elapsed_s = perf_counter() - started
    if listeners.in_place:
        tell_in_place(reversed(listeners.in_place), "close_call", frame, outputs, failure, elapsed_s)
    elif listeners.want("on_call_end"):
        await end(listeners, "on_call_end", _ended(listeners, frame, outputs, failure, elapsed_s, method), failure)


def begin_call_plain(
    listeners: Listeners,
    frame: CallFrame,
    inputs: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    started: float,
    method: str,
) -> None:
    """Tell plain hooks that a plain method begins, which cannot wait for async ones."""
    if listeners.in_place:
        tell_in_place(listeners.in_place, "open_call", frame, inputs, kwargs, started, method)
        return
    event = _begun(listeners, frame, inputs, kwargs, method)
    for hook in listeners.hooks:
        if "on_call_begin" in hook.told:
            tell_plain(hook, "on_call_begin", event)


def end_call_plain(
    listeners: Listeners, frame: CallFrame, outputs: Any, failure: BaseException | None, started: float, method: str
) -> None:
    """Tell plain hooks that a plain method ended."""
    elapsed_s = perf_counter() - started
    if listeners.in_place:
        tell_in_place(reversed(listeners.in_place), "close_call", frame, outputs, failure, elapsed_s)
        return
    event = _ended(listeners, frame, outputs, failure, elapsed_s, method)
    for hook in reversed(listeners.hooks):
        if "on_call_end" in hook.told:
            tell_plain(hook, "on_call_end", event)


def _begun(
    listeners: Listeners, frame: CallFrame, inputs: tuple[Any, ...], kwargs: Mapping[str, Any], method: str | None
) -> CallBegin:
    """The record of a call that begins; the call of another method has the name of that."""
    call_id, above, path, name, phase, training = listeners.place_of(frame, frame.phase)
    told: type[CallBegin] = Listeners.records.CallBegin
    return told(call_id, above, path, method or name, phase, training, inputs, MappingProxyType(dict(kwargs)), method)


def _ended(
    listeners: Listeners,
    frame: CallFrame,
    outputs: Any,
    failure: BaseException | None,
    elapsed_s: float,
    method: str | None,
) -> CallEnd:
    """The record of an ended call; that of an entry call carries usage and rewards of the whole run."""
    call_id, above, path, name, phase, training = listeners.place_of(frame, frame.phase)
    usage, rewards = None, ()
    if frame.parent is None:
        usage = frame.usage
        rewards = frame.rewards if failure is None else ()  # those of a failed call are gone
    told: type[CallEnd] = Listeners.records.CallEnd
    return told(call_id, above, path, method or name, phase, training, outputs, failure, elapsed_s, usage, rewards)
