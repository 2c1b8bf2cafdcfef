"""Worker threads for plain code that takes its time."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from .background import background
from .signal import Signal

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
    work = _Work(function, args)
    task = background(work.run, limiter)
    try:
        await work.done.wait()
    except BaseException:
        if work.abandon():
            task.cancel()
        await task.ended()
        raise
    return work.result()


class _Work:
    """One function on its way through a thread. Who waits for it may leave only before it has begun."""

    __slots__ = ("_args", "_error", "_function", "_lock", "_result", "_state", "done")

    def __init__(self, function: Callable[..., Any], args: tuple[object, ...]) -> None:
        self._function = function
        self._args = args
        self._lock = threading.Lock()
        self._state: Literal["waiting", "begun", "abandoned"] = "waiting"
        self._result: Any = None
        self._error: BaseException | None = None
        self.done = Signal()

    async def run(self, limiter: ThreadLimit | None) -> None:
        """Find a thread; anyio shields the waiting only from its own cancellation, hence this task of its own."""
        import anyio.to_thread

        try:
            await anyio.to_thread.run_sync(self._call, limiter=None if limiter is None else limiter.limiter())
        finally:
            self.done.set()

    def _call(self) -> None:
        """In the thread: work, unless nobody waits any more."""
        if not self._enter("begun"):
            return
        try:
            self._result = self._function(*self._args)
        except BaseException as error:  # noqa: BLE001  # kept, and raised where it is waited for
            self._error = error

    def abandon(self) -> bool:
        """Give the work up; False if it has begun."""
        return self._enter("abandoned")

    def _enter(self, state: Literal["begun", "abandoned"]) -> bool:
        """Leave the waiting state, once."""
        with self._lock:
            first = self._state == "waiting"
            if first:
                self._state = state
            return first

    def result(self) -> Any:
        """Give the result, or raise what the function raised."""
        if self._error is None:
            return self._result
        error, self._error = self._error, None
        try:
            raise error
        finally:
            del error
