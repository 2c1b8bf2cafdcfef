"""Equal work under way is done once: a caller that comes while it runs waits for its result."""

from collections.abc import Awaitable, Callable, Hashable
from contextvars import ContextVar
from copy import copy
from dataclasses import dataclass, field
from typing import Any, Final

from synmod.errors import CallError, notes_of
from synmod.leaves import aio, set_in_block


@dataclass(eq=False)
class _Flight:
    """Work under way, and how it ended."""

    done: aio.Signal = field(default_factory=aio.Signal)
    landed: bool = False
    result: Any = None
    error: Exception | None = None


_LEADING: Final[ContextVar[tuple[_Flight, ...]]] = ContextVar("synmod_flights", default=())
"""The work that this code is a part of."""


class SingleFlight:
    """Runs work by key: a caller that comes while equal work runs waits for its result, on any loop or thread.

    Example:
        >>> flights = SingleFlight()
        >>> async def work():
        ...     return 42
        >>> aio.drive(flights.run("answer", work))
        42

    Source: Go's singleflight; differs: when the leader is cancelled, or stopped by its own limit, or its loop is closed
    under it, a waiter takes over.
    """

    __slots__ = ("_flights", "_lock")

    def __init__(self) -> None:
        self._lock = aio.lock()
        self._flights: dict[Hashable, _Flight] = {}

    async def run(
        self, key: Hashable, work: Callable[[], Awaitable[Any]], is_own: Callable[[Exception], bool] = lambda _: False
    ) -> Any:
        """Return the result of `work`, run here or by an earlier caller with the same key.

        Args:
            key: Work with equal keys is equal.
            work: Called only if no other call is running it.
            is_own: Whether a failure concerns the leader alone, such as a spent budget: then a waiter leads next, as
                after a cancellation. The leader's function decides.

        Raises:
            CallError: The work waits for its own result, which can never come.
            Exception: Raised by the work; each waiter gets a copy.
        """
        while True:
            with self._lock:
                flight = self._flights.get(key)
                if flight is None or flight.done.is_lost:
                    flight = self._flights[key] = _Flight()
                    break
            if flight in _LEADING.get():
                raise CallError("Work in a cache needs its own result: it would wait forever.")
            await flight.done.wait()
            if flight.error is not None:
                try:
                    raise _copy(flight.error)
                finally:
                    del flight  # else the exception and this frame form a reference cycle
            if flight.landed:
                return flight.result
        return await self._lead(key, flight, work, is_own)

    async def _lead(
        self, key: Hashable, flight: _Flight, work: Callable[[], Awaitable[Any]], is_own: Callable[[Exception], bool]
    ) -> Any:
        """Do the work; an exit, a cancellation or a failure of its own sets no outcome, so that a waiter leads next."""
        try:
            with set_in_block(_LEADING, (*_LEADING.get(), flight)):
                flight.result = result = await work()
            flight.landed = True
        except Exception as error:
            if not is_own(error):
                flight.error = _copy(error)  # as it is now: the leader's callers may add notes to theirs
            raise
        finally:
            with self._lock:
                if self._flights.get(key) is flight:  # else another has taken over
                    del self._flights[key]
            flight.done.set()
            del flight  # else the exception and this frame form a reference cycle
        return result


def _copy(error: Exception) -> Exception:
    """Return a copy of an exception with its notes and traceback; the exception itself if it cannot be copied."""
    try:
        own = copy(error)
    except Exception:  # noqa: BLE001  # a user's class may raise anything
        return error
    if own.args != error.args:
        return error
    own.__notes__ = notes_of(error)
    own.__cause__ = error.__cause__
    return own.with_traceback(error.__traceback__)
