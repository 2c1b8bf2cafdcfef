"""A gate at which tasks of one loop wait until another task of it lets them through."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Any

from .kind import running_trio


class Gate:
    """A place to wait in turn: `wake` lets the first through, `wake_all` everybody who waits now.

    Whoever is let through looks again at what it waited for. Lighter than `Signal`, for one loop and one thread.

    Example:
        >>> Gate().wake()

    Source: the parking lot of trio.
    """

    __slots__ = ("_waiters",)

    def __init__(self) -> None:
        self._waiters: deque[Any] = deque()

    async def wait(self) -> None:
        """Wait to be let through; a waiter that is cancelled at that moment passes its turn on."""
        trio = running_trio()
        waiter: Any = asyncio.get_running_loop().create_future() if trio is None else trio.Event()
        self._waiters.append(waiter)
        try:
            await (waiter if trio is None else waiter.wait())
        except BaseException:
            if waiter in self._waiters:
                self._waiters.remove(waiter)
            else:
                self.wake()
            raise

    def wake(self) -> None:
        """Let the first waiter through."""
        while self._waiters:
            waiter = self._waiters.popleft()
            if not asyncio.isfuture(waiter):
                waiter.set()
                return
            if not waiter.done():
                waiter.set_result(None)
                return

    def wake_all(self) -> None:
        """Let everybody through who waits now."""
        for _ in range(len(self._waiters)):
            self.wake()
