"""A one-shot signal for tasks of any loop, any thread and either library."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable

from .kind import running_trio


class Signal:
    """Something that happens once, and that tasks of any loop or thread may wait for.

    Example:
        >>> signal = Signal()
        >>> signal.set()
        >>> signal.is_set
        True

    Source: trio.Event; differs: belongs to no loop, and `set` may be called from anywhere.
    """

    __slots__ = ("_lock", "_set", "_waiters")

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiters: set[Callable[[], object]] = set()
        self._set = False

    @property
    def is_set(self) -> bool:
        """Whether it has happened."""
        return self._set

    def set(self) -> None:
        """Wake all who wait, now and later; a plain call, from any thread, as often as one likes."""
        with self._lock:
            self._set = True
            waiters, self._waiters = self._waiters, set()
        for wake in waiters:
            # A loop that has ended (RuntimeError; trio's RunFinishedError is one) has nobody left to wake.
            with contextlib.suppress(RuntimeError):
                wake()

    async def wait(self) -> None:
        """Wait until it has happened; at once if it has. A cancelled waiter leaves nothing behind."""
        if self._set:
            return
        waiter = _AsyncioWaiter() if running_trio() is None else _TrioWaiter()
        with self._lock:
            if self._set:
                return
            self._waiters.add(waiter.wake)
        try:
            await waiter.woken()
        finally:
            with self._lock:
                self._waiters.discard(waiter.wake)


class _AsyncioWaiter:
    """A future of the running loop."""

    __slots__ = ("_future", "_loop")

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._future: asyncio.Future[None] = self._loop.create_future()

    def wake(self) -> None:
        """Set the future, in its own loop."""
        self._loop.call_soon_threadsafe(self._set)

    def _set(self) -> None:
        """Set the future, unless its waiter was cancelled."""
        if not self._future.done():
            self._future.set_result(None)

    async def woken(self) -> None:
        """Wait for `wake`."""
        await self._future


class _TrioWaiter:
    """An event of the running trio."""

    __slots__ = ("_event", "_token")

    def __init__(self) -> None:
        import trio

        self._event = trio.Event()
        self._token = trio.lowlevel.current_trio_token()

    def wake(self) -> None:
        """Set the event, in its own run."""
        self._token.run_sync_soon(self._event.set)

    async def woken(self) -> None:
        """Wait for `wake`."""
        await self._event.wait()
