"""once: a method that runs once for each instance, however many come at the same time."""

from __future__ import annotations

import functools
import inspect
import threading
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any, Final, TypeVar, cast

from synmod.errors import CallError, ConfigError
from synmod.leaves.aio import Signal
from synmod.module.record import ModuleRecord
from synmod.scope import reset

F = TypeVar("F", bound=Callable[..., Any])

_LOCK: Final = threading.Lock()
"""Guards the runs and the marks; held for a few instructions, never across an await."""

_RUNS: Final[dict[tuple[int, str], _Turn]] = {}
"""The runs under way, by instance and method; each keeps its instance alive."""

_ATTRIBUTE: Final = "_done_once"

_INSIDE: ContextVar[frozenset[tuple[int, str]]] = ContextVar("synmod_once", default=frozenset())
"""The runs that this context is a part of: none of them may wait for itself."""


class _Turn:
    """One run under way, and what others wait for: tasks for the signal, plain code for the event."""

    __slots__ = ("instance", "over", "signal")

    def __init__(self, instance: object) -> None:
        self.instance = instance
        self.signal = Signal()
        self.over = threading.Event()


_DONE: Final = _Turn(None)
_DONE.over.set()
_DONE.signal.set()


def once(method: F) -> F:
    """Run a method once for each instance.

    Callers that come while it runs wait for that run; where it fails or is cancelled, the next one runs it. That it was
    run travels with copies and pickles, not with files: what it made is made again after a load.

    Args:
        method: A method, plain or async, that returns None.

    Returns:
        A method of the same signature, with `__wrapped__`.

    Raises:
        ConfigError: It is no function, or a generator.
        CallError: (of a call) The method returned something (contains 'cannot return values'), or waits for itself.

    Example:
        >>> import synmod as sm
        >>> class Reader(sm.Module):
        ...     @sm.once
        ...     def connect(self):
        ...         print("connected")
        >>> reader = Reader()
        >>> reader.connect(), reader.connect()
        connected
        (None, None)

    Source: Sonnet `once`; differs: async, a failure is no run.
    """
    if not inspect.isfunction(method) or inspect.isgeneratorfunction(method) or inspect.isasyncgenfunction(method):
        raise ConfigError(f"once takes a method, plain or async; not {method!r:.200}.")
    mark = method.__qualname__

    if inspect.iscoroutinefunction(method):

        async def waiting(self: Any, /, *args: Any, **kwargs: Any) -> None:
            while mark not in _marks(self):
                turn, is_mine = _take_turn(self, mark)
                if not is_mine:
                    await turn.signal.wait()
                    continue
                with _running(self, mark, turn):
                    _check_nothing(mark, await method(self, *args, **kwargs))

        return cast("F", functools.wraps(method)(waiting))

    def plain(self: Any, /, *args: Any, **kwargs: Any) -> None:
        while mark not in _marks(self):
            turn, is_mine = _take_turn(self, mark)
            if not is_mine:
                turn.over.wait()
                continue
            with _running(self, mark, turn):
                _check_nothing(mark, method(self, *args, **kwargs))

    return cast("F", functools.wraps(method)(plain))


def _take_turn(instance: object, mark: str) -> tuple[_Turn, bool]:
    """Give the run under way, or a new one, and tell whether it is the caller's to do.

    Raises:
        CallError: It is under way in this very context, and would wait for itself.
    """
    key = id(instance), mark
    if key in _INSIDE.get():
        raise CallError(f"{mark} runs once and waits for itself: it was called inside its own run.")
    with _LOCK:
        turn = _RUNS.get(key)
        if turn is not None:
            return turn, False
        if mark in _marks(instance):  # another thread has done it since the caller looked
            return _DONE, False
        turn = _RUNS[key] = _Turn(instance)
        return turn, True


class _running:  # noqa: N801  # read as a word: `with _running(...):`
    """Run as the one who has the turn; a run that returns is marked, then everybody who waits looks again.

    A class, because what `contextlib` makes of a generator writes to exceptions that pass, which frozen ones refuse.
    """

    __slots__ = ("_instance", "_mark", "_token", "_turn")

    def __init__(self, instance: object, mark: str, turn: _Turn) -> None:
        self._instance = instance
        self._mark = mark
        self._turn = turn

    def __enter__(self) -> None:
        self._token = _INSIDE.set(_INSIDE.get() | {(id(self._instance), self._mark)})

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        reset(_INSIDE, self._token)
        if kind is None:
            _set_mark(self._instance, self._mark)
        with _LOCK:
            del _RUNS[id(self._instance), self._mark]
        self._turn.over.set()
        self._turn.signal.set()


def _check_nothing(mark: str, returned: object) -> None:
    if returned is not None:
        raise CallError(f"{mark} returned {returned!r:.200}: methods that run once cannot return values.")


def _marks(instance: Any) -> frozenset[str]:
    """Tell which methods were run: a module has it in its record, anything else in an attribute."""
    record = getattr(instance, "_record", None)
    if isinstance(record, ModuleRecord):
        return record.done
    marks: frozenset[str] = getattr(instance, _ATTRIBUTE, frozenset())
    return marks


def _set_mark(instance: Any, mark: str) -> None:
    record = getattr(instance, "_record", None)
    with _LOCK:
        if isinstance(record, ModuleRecord):
            record.done |= {mark}
        else:
            object.__setattr__(instance, _ATTRIBUTE, _marks(instance) | {mark})
