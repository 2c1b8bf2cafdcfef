"""Worker threads for plain code that takes its time."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from anyio import CapacityLimiter
    from anyio.lowlevel import RunVar

T = TypeVar("T")


class ThreadLimit:
    """How many threads may work at once for one purpose, in each event loop."""

    __slots__ = ("_limiter", "_most")

    def __init__(self, most: int) -> None:
        self._most = most
        self._limiter: RunVar[CapacityLimiter] | None = None

    def limiter(self) -> CapacityLimiter:
        """Give the limiter of the running loop."""
        from anyio import CapacityLimiter
        from anyio.lowlevel import RunVar

        if self._limiter is None:
            self._limiter = RunVar("synmod_thread_limit")
        try:
            return self._limiter.get()
        except LookupError:
            limiter = CapacityLimiter(self._most)
            self._limiter.set(limiter)
            return limiter


async def to_thread(function: Callable[..., T], *args: object, limiter: ThreadLimit | None = None) -> T:
    """Run a plain function in a worker thread, in a copy of this context.

    Args:
        function: What to run. It is not interruptible: a cancellation waits for it.
        *args: Its arguments.
        limiter: Bounds the threads; None leaves it to the library.

    Returns:
        What the function returns.

    Raises:
        BaseException: What the function raises.

    Example:
        >>> import asyncio
        >>> asyncio.run(to_thread(max, 1, 2))
        2

    Source: anyio.to_thread.
    """
    import anyio.to_thread

    return await anyio.to_thread.run_sync(function, *args, limiter=None if limiter is None else limiter.limiter())
