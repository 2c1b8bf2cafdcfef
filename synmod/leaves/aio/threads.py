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

    __slots__ = ("_most", "_of_loop")

    def __init__(self, most: int) -> None:
        self._most = most
        self._of_loop: RunVar[CapacityLimiter] | None = None

    def limiter(self) -> CapacityLimiter:
        """Give the limiter of the running loop."""
        from anyio import CapacityLimiter
        from anyio.lowlevel import RunVar

        of_loop = self._of_loop or RunVar[CapacityLimiter]("synmod_thread_limit")
        self._of_loop = of_loop
        try:
            return of_loop.get()
        except LookupError:
            limiter = CapacityLimiter(self._most)
            of_loop.set(limiter)
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
