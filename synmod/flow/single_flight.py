"""Single flight: equal work that is wanted at the same time is done once."""

from __future__ import annotations

import threading
from collections.abc import Awaitable, Callable, Hashable
from types import TracebackType
from typing import Any

from synmod.errors import CallError
from synmod.leaves import aio
from synmod.scope import CallFrame, current_call, is_of_block_around


class _Flight:
    """Work under way, and how it ended."""

    __slots__ = ("done", "error", "frame", "landed", "result", "traceback")

    def __init__(self) -> None:
        self.frame = current_call()
        self.done = aio.Signal()
        self.landed = False
        self.result: Any = None
        self.error: Exception | None = None
        self.traceback: TracebackType | None = None


class SingleFlight:
    """Runs work by key: a caller that comes while equal work runs waits for it, on whatever loop or thread.

    Example:
        >>> flights = SingleFlight()
        >>> async def work():
        ...     return 42
        >>> await flights.run("answer", work)  # doctest: +SKIP
        42

    Source: Go's singleflight; differs: a leader that is cancelled, or stopped by a limit of its own, hands over.
    """

    __slots__ = ("_flights", "_lock")

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._flights: dict[Hashable, _Flight] = {}

    async def run(self, key: Hashable, work: Callable[[], Awaitable[Any]]) -> Any:
        """Return what `work` returns: run here, or by the caller that began first.

        Args:
            key: What makes work equal.
            work: Runs only where nobody else runs it.

        Raises:
            CallError: The work waits for itself, and would do so for ever.
            Exception: What the work raised, the same object for all who waited.
        """
        while True:
            with self._lock:
                flight = self._flights.get(key)
                if flight is None:
                    self._flights[key] = _Flight()
                    break
            _refuse_circle(flight)
            await flight.done.wait()
            if flight.error is not None:
                try:
                    raise flight.error.with_traceback(flight.traceback)
                finally:
                    del flight  # no circle of an exception and the frame that holds it
            if flight.landed:
                return flight.result
        return await self._lead(key, work)

    async def _lead(self, key: Hashable, work: Callable[[], Awaitable[Any]]) -> Any:
        """Do the work; an exit, a cancellation or a limit around it leaves no end, so that another one leads."""
        flight = self._flights[key]
        try:
            flight.result = result = await work()
            flight.landed = True
        except Exception as error:  # kept for those who wait, and raised here as itself
            if not is_of_block_around(error):  # what the leader may spend binds nobody else
                flight.error, flight.traceback = error, error.__traceback__
            raise
        finally:
            with self._lock:
                del self._flights[key]
            flight.frame = None
            flight.done.set()
            del flight  # no circle of an exception and the frame that holds it
        return result


def _refuse_circle(flight: _Flight) -> None:
    """Raise CallError where the running call is a part of the work that it would wait for."""
    frame: CallFrame | None = current_call()
    while frame is not None:
        if frame is flight.frame:
            raise CallError(f"{frame.path or frame.name!r} asks for what it is about to give: it would wait for ever.")
        frame = frame.parent
