"""Running a coroutine from plain code: to its end at once, or not at all."""

from __future__ import annotations

from collections.abc import Coroutine
from contextvars import ContextVar
from typing import Any, TypeVar

from .kind import backend

T = TypeVar("T")

# The words of asyncio and trio.
_NO_LOOP = ("no running event loop", "no current event loop", "must be called from async context")


class Suspended(Exception):
    """A coroutine that had to run to its end at once wanted to wait."""


class _Drive:
    """One run of `drive`; a task that outlives it sees that it is over."""

    __slots__ = ("live",)

    def __init__(self) -> None:
        self.live = True


_DRIVE: ContextVar[_Drive | None] = ContextVar("synmod_drive", default=None)


def being_driven() -> bool:
    """Tell whether plain code drives this coroutine, so that nothing here may wait."""
    drive = _DRIVE.get()
    return drive is not None and drive.live


def drive(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine that never waits to its end, without a loop.

    Args:
        coroutine: What to run. It is closed if it wants to wait.

    Returns:
        What it returns.

    Raises:
        Suspended: It wants to wait, or needs a loop where none runs.
        BaseException: Whatever the coroutine raises.

    Example:
        >>> async def answer(): return 42
        >>> drive(answer())
        42

    Source: the sans-IO habit of HTTPX; no thread and no second loop, since a hidden loop deadlocks.
    """
    mark = _Drive()
    token = _DRIVE.set(mark)
    try:
        coroutine.send(None)
    except StopIteration as end:
        return end.value
    except RuntimeError as error:
        if backend() is None and any(words in str(error) for words in _NO_LOOP):
            raise Suspended from error
        raise
    finally:
        mark.live = False
        _DRIVE.reset(token)
        coroutine.close()
    raise Suspended
