"""Telling hooks: in order, in place, and so that a hook can break nothing."""

from __future__ import annotations

import asyncio
import inspect
import logging
import time
from collections.abc import Awaitable, Iterable
from contextvars import Token
from typing import TYPE_CHECKING, Any, Final

from synmod.leaves.aio import backend, being_driven, is_cancellation, shield
from synmod.scope.ambient import AMBIENT, Ambient, Flag, ambient, reset
from synmod.scope.frame import FRAME, TOLD, CallFrame, current_call
from synmod.scope.hook import Hook
from synmod.scope.hooks import Listeners, hooks_inside
from synmod.scope.phase import phase_in
from synmod.scope.place import place_of

if TYPE_CHECKING:
    from synmod.scope.events import BuildBegin, BuildEnd, Event
    from synmod.scope.in_place import InPlace

_LOG: Final = logging.getLogger("synmod.hooks")
_CLEAN_UP_S: Final = 1.0  # how long async hooks may take after a cancellation


async def begin(listeners: Listeners, method: str, event: Event) -> None:
    """Tell of a begin, outermost hook first.

    A cancellation passes; hooks that were not reached are then not told of the end.
    """
    for reached, hook in enumerate(listeners.hooks, 1):
        listeners.begun = reached
        if method in hook.told:
            await _tell(hook, method, event)


async def end(listeners: Listeners, method: str, event: Event, exception: BaseException | None) -> None:
    """Tell of an end, innermost hook first, each hook that was told of the begin.

    After a cancellation async hooks are shielded, at most a second together; while a coroutine is being closed only
    plain ones are called. What interrupts a hook is raised when all have been told.
    """
    waiting = [hook for hook in reversed(listeners.hooks[: listeners.begun]) if method in hook.told]
    if not is_cancellation(exception) and not isinstance(exception, GeneratorExit):
        try:
            while waiting:
                await _tell(waiting.pop(0), method, event)
        except BaseException as interruption:
            await _tell_the_rest(waiting, method, event, interruption)
            raise
    elif waiting:
        await _tell_the_rest(waiting, method, event, exception)


async def _tell_the_rest(waiting: list[Hook], method: str, event: Event, why: BaseException | None) -> None:
    """Tell hooks of an end although the call, or the telling, was cut short."""
    closing = isinstance(why, GeneratorExit)
    if closing or not any(method in hook.told_async for hook in waiting):
        while waiting:
            tell_plain(waiting.pop(0), method, event, silent=closing)
        return
    ends = time.monotonic() + _CLEAN_UP_S
    while waiting:  # when the second is over each of the others still runs up to its first wait
        with shield(max(0.0, ends - time.monotonic())):
            while waiting:
                await _tell(waiting.pop(0), method, event)


def tell_in_place(hooks: Iterable[InPlace], method: str, *call: Any) -> None:
    """Give a call to those who take it as it is; their failure is logged."""
    for hook in hooks:
        try:
            getattr(hook, method)(*call)
        except Exception as error:  # noqa: BLE001  # a hook never breaks a call
            complain(hook, method, error)


async def _tell(hook: Hook, method: str, event: Event) -> None:
    """Tell one hook; its failure is logged, a cancellation of the call passes."""
    call = getattr(hook, method)
    if method in hook.told_async and being_driven():
        complain(hook, method, None, "is async, but plain code drives this build and cannot wait: not called")
        return
    tokens = _set_apart(hook)
    try:
        answer = call(event)
        if answer is not None and isinstance(answer, Awaitable):
            await answer
    except Exception as error:  # noqa: BLE001  # a hook never breaks a call
        complain(hook, method, error)
    except BaseException as interruption:
        if not _is_its_own(interruption):
            raise
        complain(hook, method, interruption)
    finally:
        _set_back(tokens)


def tell_plain(hook: Hook, method: str, event: Event, *, silent: bool = False) -> None:
    """Tell one hook from plain code; an async method is not called, and that is logged unless `silent`."""
    call = getattr(hook, method)
    if method in hook.told_async:
        if not silent:
            complain(hook, method, None, "is async, but comes from plain code, which cannot wait: not called")
        return
    tokens = _set_apart(hook)
    try:
        answer = call(event)
        if inspect.iscoroutine(answer):
            answer.close()
            complain(hook, method, None, "gave a coroutine to plain code, which cannot wait")
    except Exception as error:  # noqa: BLE001  # a hook never breaks a call
        complain(hook, method, error)
    except BaseException as interruption:
        if not _is_its_own(interruption):
            raise
        complain(hook, method, interruption)
    finally:
        _set_back(tokens)


def _is_its_own(interruption: BaseException) -> bool:
    """Tell whether a hook raised a cancellation although nobody cancels the call."""
    if not isinstance(interruption, asyncio.CancelledError):
        return False
    task = asyncio.current_task() if backend() == "asyncio" else None
    return task is None or not task.cancelling()


def _set_apart(hook: Hook) -> tuple[Token[Any], Token[Any], Token[Any]]:
    """Let calls that a hook makes be entry calls of their own, which the hook itself is not told of.

    The flag of the record stays: tasks that the hook starts are apart as well.
    """
    return TOLD.set(FRAME.get()), FRAME.set(None), AMBIENT.set(Ambient(ambient(), ("muted", hook), Flag()))


def _set_back(tokens: tuple[Token[Any], Token[Any], Token[Any]]) -> None:
    """Go back to the call that the hook was told of."""
    for variable, token in zip((TOLD, FRAME, AMBIENT), tokens, strict=True):
        reset(variable, token)


def complain(hook: Hook, method: str, error: BaseException | None, what: str = "failed") -> None:
    """Log a failure of a hook: the first of each method as an error, then for debugging."""
    this = object()
    first = hook._complaints.setdefault(method, this) is this
    _LOG.log(
        logging.ERROR if first else logging.DEBUG, "hook %s.%s %s", type(hook).__qualname__, method, what,
        exc_info=error,
    )  # fmt: skip


async def begin_build(listeners: Listeners, event: BuildBegin) -> None:
    """Tell that a build begins."""
    await begin(listeners, "on_build_begin", event)


async def end_build(listeners: Listeners, event: BuildEnd) -> None:
    """Tell that a build ended."""
    await end(listeners, "on_build_end", event, event.exception)


def notify_skip_dropped(
    frame: CallFrame, names: tuple[str, ...], namespaces: tuple[Any, ...], producer_paths: tuple[str, ...]
) -> None:
    """Tell that an entry call, which has ended, left values that nobody popped."""
    listeners = hooks_inside(ambient(), frame)
    if listeners is None or not listeners.want("on_skip_dropped"):
        return
    from synmod.scope.events import SkipDropped

    event = SkipDropped(*place_of(frame, frame.phase), names, namespaces, producer_paths)
    for hook in listeners.hooks:
        if "on_skip_dropped" in hook.told:
            tell_plain(hook, "on_skip_dropped", event)


def notify_assign(variable: object, name: str, old: Any, new: Any, version: int) -> None:
    """Tell that a Variable got a new value; in a trace nothing is told, since nothing changed.

    Args:
        variable: The Variable, to find its path by.
        name: Its name, told where it has no path below the entry module.
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
    if listeners is None or not listeners.want("on_variable_assign"):
        return
    from synmod.scope.events import VariableAssign

    where = name if frame is None else frame.root.paths.get(id(variable), name)
    event = VariableAssign(*place_of(frame, phase_in(record, frame)), where, old, new, version)
    for hook in listeners.hooks:
        if "on_variable_assign" in hook.told:
            tell_plain(hook, "on_variable_assign", event)
