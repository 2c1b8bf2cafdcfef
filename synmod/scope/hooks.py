"""Hooks: `sm.hooks`, who listens to what, and the calls of the listeners, which can break nothing.

Hot where somebody listens: a record is made only for a method that a listener overrides.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextvars import ContextVar
from time import perf_counter
from types import MappingProxyType
from typing import Any, TypeAlias

from synmod.errors import ArgumentError

from .ambient import Ambient, Block, ambient
from .events import (
    BuildBegin,
    BuildEnd,
    CallBegin,
    CallEnd,
    Event,
    Hook,
    LMBegin,
    LMEnd,
    SkipDropped,
    VariableAssign,
    check_hook,
    log_failure,
)
from .frame import CallFrame, current_call, phase_in
from .usage import Usage

Place: TypeAlias = tuple[str | None, str | None, str, str, str, bool]
"""The six fields that every event begins with."""

_IN_A_HOOK: ContextVar[bool] = ContextVar("synmod_in_a_hook", default=False)


class hooks(Block):  # noqa: N801  # read as a word: `with sm.hooks(h):`
    """Let hooks see everything that happens in a block.

    Args:
        *hooks: Called in this order at each begin, in reverse at each end; after those of enclosing blocks.

    Raises:
        ArgumentError: No hook, something that is not a hook, or an async method.

    Example:
        >>> class Names(Hook):
        ...     def on_call_begin(self, event):
        ...         names.append(event.name)
        >>> names = []
        >>> with hooks(Names()):
        ...     pass

    Source: structlog's context; differs: no process-wide list, so nobody pays for hooks that are not there.
    """

    field = "hooks"

    def __init__(self, *hooks: Hook) -> None:
        if not hooks:
            raise ArgumentError("hooks() got no hook: write `with sm.hooks(hook):`.")
        super().__init__()
        self._hooks = tuple(map(check_hook, hooks))

    def __enter__(self) -> None:
        self.enter(self._hooks)


def hooks_for(record: Ambient | None, own: tuple[Hook, ...]) -> tuple[Hook, ...]:
    """Return the listeners of a call or build: the hooks of the blocks, then those of the module, each once.

    Args:
        record: The open blocks, from `ambient()`.
        own: The hooks of the module.
    """
    found: tuple[Hook, ...] = () if record is None else record.hooks
    if not (found or own) or _IN_A_HOOK.get():
        return ()
    if own:
        united = list(found)
        for hook in own:
            if not any(hook is one for one in united):
                united.append(hook)
        return tuple(united)
    return found


def hooks_inside(record: Ambient | None, frame: CallFrame | None) -> tuple[Hook, ...]:
    """Return the listeners of what happens inside the call of `frame`: also the modules above, outermost first."""
    own: tuple[Hook, ...] = ()
    while frame is not None:
        if frame.owner.hooks:
            own = (*frame.owner.hooks, *own)
        frame = frame.parent
    return hooks_for(record, own)


def begin_call(
    listeners: tuple[Hook, ...], frame: CallFrame, inputs: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> None:
    """Notify listeners that a module call begins; `inputs` and `kwargs` are as `call` gets them."""
    if _any_overrides(listeners, "on_call_begin"):
        event = CallBegin(*_place(frame, frame.phase), inputs, MappingProxyType(dict(kwargs)))
        _notify(listeners, "on_call_begin", event)


def end_call(
    listeners: tuple[Hook, ...], frame: CallFrame, outputs: Any, exception: BaseException | None, started: float
) -> None:
    """Notify listeners that a module call ended; `started` is the `perf_counter` of its begin."""
    if _any_overrides(listeners, "on_call_end"):
        elapsed_s, usage, rewards = perf_counter() - started, None, ()
        if frame.parent is None:
            usage = frame.usage
            rewards = frame.rewards if exception is None else ()  # those of a failed call are gone
        event = CallEnd(*_place(frame, frame.phase), outputs, exception, elapsed_s, usage, rewards)
        _notify(reversed(listeners), "on_call_end", event)


def begin_build(
    listeners: tuple[Hook, ...], frame: CallFrame, inputs: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> None:
    """Notify listeners that a module is about to be built on symbols, in the call of `frame`."""
    if _any_overrides(listeners, "on_build_begin"):
        event = BuildBegin(*_place(frame, frame.phase), inputs, MappingProxyType(dict(kwargs)))
        _notify(listeners, "on_build_begin", event)


def end_build(
    listeners: tuple[Hook, ...],
    frame: CallFrame,
    inputs: tuple[Any, ...],
    exception: BaseException | None,
    started: float,
) -> None:
    """Notify listeners that a build ended."""
    if _any_overrides(listeners, "on_build_end"):
        event = BuildEnd(*_place(frame, frame.phase), inputs, exception, perf_counter() - started)
        _notify(reversed(listeners), "on_build_end", event)


def begin_lm(listeners: tuple[Hook, ...], frame: CallFrame | None, phase: str, request: Any) -> None:
    """Notify listeners that a model call begins.

    Args:
        listeners: From `hooks_inside`.
        frame: The module call that makes it, None outside of one.
        phase: That of the model call; a block may have set another than the frame's.
        request: The request; `request.model` is the model's name.
    """
    if _any_overrides(listeners, "on_lm_begin"):
        _notify(listeners, "on_lm_begin", LMBegin(*_place(frame, phase), request, request.model))


def end_lm(
    listeners: tuple[Hook, ...],
    frame: CallFrame | None,
    phase: str,
    request: Any,
    reply: Any,
    exception: BaseException | None,
    attempts: int,
    usage: Usage,
    elapsed_s: float,
    cached: bool = False,
) -> None:
    """Notify listeners that a model call ended, with a reply or an exception, after `attempts` requests."""
    if _any_overrides(listeners, "on_lm_end"):
        place = _place(frame, phase)
        event = LMEnd(*place, request, request.model, reply, exception, attempts, usage, elapsed_s, cached)
        _notify(reversed(listeners), "on_lm_end", event)


def notify_skip_dropped(
    frame: CallFrame, names: tuple[str, ...], namespaces: tuple[Any, ...], producer_paths: tuple[str, ...]
) -> None:
    """Notify listeners that an entry call, which has ended, left values that nobody popped."""
    listeners = hooks_inside(ambient(), frame)
    if _any_overrides(listeners, "on_skip_dropped"):
        event = SkipDropped(*_place(frame, frame.phase), names, namespaces, producer_paths)
        _notify(listeners, "on_skip_dropped", event)


def notify_assign(variable: object, name: str, old: Any, new: Any, version: int) -> None:
    """Notify listeners that a Variable got a new value; nobody is notified in a trace, since nothing changed.

    Args:
        variable: The Variable, to find its path by.
        name: Its name, for where it has no path below the entry module.
        old: The value before.
        new: The value now.
        version: Its version now.
    """
    frame, record = current_call(), ambient()
    if frame is None and (record is None or not record.hooks):
        return
    if frame is not None and frame.symbolic:
        return
    listeners = hooks_inside(record, frame)
    if _any_overrides(listeners, "on_variable_assign"):
        path = name if frame is None else frame.root.paths.get(id(variable), name)
        event = VariableAssign(*_place(frame, phase_in(record, frame)), path, old, new, version)
        _notify(listeners, "on_variable_assign", event)


def _place(frame: CallFrame | None, phase: str) -> Place:
    """Return the first six fields of an event that happens in `frame`, and in `phase`: a block may have set another."""
    if frame is None:
        return (None, None, "", "", phase, False)
    return (frame.id, frame.parent_id, frame.path, frame.name, phase, frame.training)


def _any_overrides(listeners: tuple[Hook, ...], method: str) -> bool:
    """Whether a listener overrides a method: if not, no record is made."""
    for hook in listeners:  # noqa: SIM110  # a generator would cost every call that is watched
        if method in hook.overrides:
            return True
    return False


def _notify(listeners: Iterable[Hook], method: str, event: Event) -> None:
    """Call a method of each listener; a failure is logged, an interruption is raised when all have been called."""
    interruption: BaseException | None = None
    token = _IN_A_HOOK.set(True)
    try:
        for hook in listeners:
            if method in hook.overrides:
                try:
                    call: Callable[[Event], object] = getattr(hook, method)
                    call(event)
                except Exception as error:  # noqa: BLE001  # a hook never breaks a call
                    log_failure(hook, method, error)
                except BaseException as error:  # noqa: BLE001  # raised below
                    interruption = interruption or error
    finally:
        _IN_A_HOOK.reset(token)
    if interruption is not None:
        raise interruption
