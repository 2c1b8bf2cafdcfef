"""Limits on waiting: a scope that ends at a time, and a shield for clean-up."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Generator
from types import TracebackType
from typing import Any, Self

from .asyncio_group import shielded_child
from .kind import running_trio


def _loop_time() -> float:
    """Read the clock of the running loop."""
    trio = running_trio()
    return asyncio.get_running_loop().time() if trio is None else trio.current_time()


def _current_task() -> object:
    """Give the running task, None where no task runs."""
    trio = running_trio()
    if trio is not None:
        return trio.lowlevel.current_task() if trio.lowlevel.in_trio_task() else None
    return asyncio.current_task() if asyncio._get_running_loop() is not None else None


def _scope(ends: float, *, shield: bool) -> Any:
    """Make a cancel scope of the running library: alike in use, but of no common type."""
    trio = running_trio()
    if trio is not None:
        return trio.CancelScope(deadline=ends, shield=shield)
    import anyio  # its cancellation is level-triggered, asyncio's is not

    return anyio.CancelScope(deadline=ends, shield=shield)


class DeadlineScope:
    """A plain `with` block in a task whose waiting code is cancelled when its time is over.

    Attributes:
        expired: Whether the block was ended by it (after leaving).
    """

    __slots__ = ("_scope", "_seconds", "_task", "expired")

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self.expired = False

    def __enter__(self) -> Self:
        ends = _loop_time() + self._seconds  # before anyio may be imported: that time counts too
        self._task = _current_task()
        self._scope = _scope(ends, shield=False)
        self._scope.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        if _current_task() is not self._task:  # closed by the collector or another task: only stop the time
            with contextlib.suppress(RuntimeError):
                self._scope.deadline = float("inf")
            return False
        swallowed = self._scope.__exit__(kind, error, trace)
        self.expired = self._scope.cancelled_caught
        return bool(swallowed)


def deadline_scope(seconds: float) -> DeadlineScope:
    """Limit the waiting of a block, which is told afterwards by `scope.expired` whether it was cut short.

    Args:
        seconds: Time from entry; zero or less ends the block at its first wait.

    Returns:
        A block for code in a task; it swallows its own cancellation, and each wait in it raises again until it is left.

    Example:
        >>> async def main():
        ...     with deadline_scope(0.01) as scope:
        ...         await asyncio.sleep(1)
        ...     return scope.expired
        >>> asyncio.run(main())
        True

    Source: trio.move_on_after.
    """
    return DeadlineScope(seconds)


def in_task() -> bool:
    """Tell whether a task runs this code, so that a scope can cancel it."""
    return _current_task() is not None


@contextlib.contextmanager
def shield(seconds: float) -> Generator[None, None, None]:
    """Protect the clean-up in a block from cancellation, for at most some seconds; then it is cut off silently."""
    if not in_task():
        yield
        return
    with shielded_child(), _scope(_loop_time() + seconds, shield=True):
        yield
