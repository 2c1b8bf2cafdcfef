"""Time and chance: the clock that runs here, a block that injects another for tests, and named random generators."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from random import Random
from typing import Protocol

from synmod.errors import ArgumentError
from synmod.leaves.aio import running_trio, sleep


class Clock(Protocol):
    """An object that returns the time and waits."""

    def now(self) -> float:
        """Return the seconds since some moment; never goes back. Readable from any thread."""
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
        """Return the seconds since some moment."""
        return self._read()

    async def sleep(self, seconds: float) -> None:
        """Wait on the running loop."""
        await sleep(seconds)


_MONOTONIC = LoopClock(time.monotonic)
_INJECTED: ContextVar[Clock | None] = ContextVar("synmod_clock", default=None)


def current_clock() -> Clock:
    """Return the clock that is in force here: the injected one, else that of the running loop.

    Returns:
        A clock that may be read from anywhere later.

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
    """Put another clock in force in a block and in the tasks started inside.

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
    """Return the time for what outlives a loop or a process, such as an entry of a cache.

    Returns:
        Seconds since 1970; the time of the injected clock where there is one.

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
        # trio's own clock begins each run at a random moment
        return time.time() if type(clock).__name__ == "SystemClock" else clock.current_time()
    ahead = current_clock().now() - time.monotonic()  # zero, unless the loop has a test clock
    return time.time() + ahead


class _Seeded(Random):
    """A generator that draws from `random()` alone: the one sequence that Python promises to keep."""

    def random(self) -> float:
        return super().random()  # a subclass that defines only this method is read by no other for its bits


def rng(seed: int, step: int, purpose: str) -> Random:
    """Return the generator of one random choice.

    No generator is shared and none is saved: any step can be computed again from its name.

    Args:
        seed: That of the run.
        step: Number of the step.
        purpose: What is chosen, a path-like name such as `"propose/writer/instructions"`.

    Returns:
        A `random.Random` seeded with `f"{seed}/{step}/{purpose}"`. Its choices, shuffles and samples use `random()`
        only, so that they are equal on every version of Python.

    Raises:
        ArgumentError: Seed or step is not an int, or purpose is empty.

    Example:
        >>> rng(7, 0, "minibatch").random() == rng(7, 0, "minibatch").random()
        True

    Source: JAX's split keys; differs: names instead of splits.
    """
    for name, number in (("seed", seed), ("step", step)):
        if not isinstance(number, int) or isinstance(number, bool):  # pyright: ignore[reportUnnecessaryIsInstance]  (users)
            raise ArgumentError(f"rng got {name}={number!r}: write a whole number.")
    if not isinstance(purpose, str) or not purpose:  # pyright: ignore[reportUnnecessaryIsInstance]  (users)
        raise ArgumentError(f"rng got purpose={purpose!r}: write what the choice is for, such as 'minibatch'.")
    return _Seeded(f"{seed}/{step}/{purpose}")
