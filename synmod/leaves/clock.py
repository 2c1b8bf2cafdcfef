"""Clocks: the one that runs here, and a block that puts another in its place, so that tests need not sleep."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import Protocol

from synmod.leaves.aio import sleep
from synmod.leaves.aio.kind import running_trio


class Clock(Protocol):
    """Tells the time and waits."""

    def now(self) -> float:
        """Seconds since some moment; never goes back. Readable from any thread."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        ...


class LoopClock:
    """The clock of an event loop (so that a loop's test clock holds), or the monotonic one outside a loop."""

    __slots__ = ("_read",)

    def __init__(self, read: Callable[[], float]) -> None:
        self._read = read

    def now(self) -> float:
        """Seconds since some moment."""
        return self._read()

    async def sleep(self, seconds: float) -> None:
        """Wait on the running loop."""
        await sleep(seconds)


_MONOTONIC = LoopClock(time.monotonic)
_INJECTED: ContextVar[Clock | None] = ContextVar("synmod_clock", default=None)


def current_clock() -> Clock:
    """Give the clock that holds here: the injected one, else that of the running loop.

    Returns:
        A clock that goes on telling the same time wherever it is read.

    Example:
        >>> clock = current_clock()
        >>> clock.now() <= clock.now()
        True

    Source: trio's clocks.
    """
    injected = _INJECTED.get()
    if injected is not None:
        return injected
    trio = running_trio()
    if trio is not None:
        return LoopClock(trio.lowlevel.current_clock().current_time)
    loop = asyncio._get_running_loop()
    return _MONOTONIC if loop is None else LoopClock(loop.time)


@contextmanager
def use_clock(clock: Clock) -> Generator[None, None, None]:
    """Let another clock hold in a block and in the tasks started inside.

    Args:
        clock: Any object with `now()` and `async sleep(seconds)`.

    Example:
        >>> class Frozen:
        ...     def now(self): return 7.0
        >>> with use_clock(Frozen()):
        ...     current_clock().now()
        7.0

    Source: trio.testing.MockClock.
    """
    token = _INJECTED.set(clock)
    try:
        yield
    finally:
        with suppress(ValueError):  # left in another context: there is nothing to set back
            _INJECTED.reset(token)


def wall_time() -> float:
    """Tell the time for what outlives a loop or a process, such as an entry of a cache.

    Returns:
        Seconds since 1970; where a test's clock holds, the time that it tells.

    Example:
        >>> abs(wall_time() - time.time()) < 1
        True

    Source: HTTP's `Age`, which outlives connections; differs: testable without waiting.
    """
    injected = _INJECTED.get()
    if injected is not None:
        return injected.now()
    trio = running_trio()
    if trio is not None:
        clock = trio.lowlevel.current_clock()
        # each run of trio's own clock begins at another moment, to catch who compares runs
        return time.time() if type(clock).__name__ == "SystemClock" else clock.current_time()
    ahead = current_clock().now() - time.monotonic()  # nothing, but where a loop's test clock holds
    return time.time() + ahead
