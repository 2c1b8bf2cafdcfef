"""SingleFlight: equal work under way is done once, by the caller who began first; the others wait for its result."""

import threading
from collections.abc import Awaitable, Callable, Generator, Hashable
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Final, cast

from synmod.errors import CallError, notes_of
from synmod.leaves import aio


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
    """Runs work by key: a caller that comes while equal work runs waits for it, on whatever loop or thread.

    Example:
        >>> flights = SingleFlight()
        >>> async def work():
        ...     return 42
        >>> aio.drive(flights.run("answer", work))
        42

    Source: Go's singleflight; differs: a leader that is cancelled, or stopped by a limit of its own, hands over.
    """

    __slots__ = ("_flights", "_lock")

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._flights: dict[Hashable, _Flight] = {}

    async def run(
        self, key: Hashable, work: Callable[[], Awaitable[Any]], is_own: Callable[[Exception], bool] = lambda _: False
    ) -> Any:
        """Return what `work` returns: run here, or by the caller that began first.

        Args:
            key: What makes work equal.
            work: Runs only where nobody else runs it.
            is_own: Whether a failure is the leader's own, such as a spent budget: then a waiter leads next, as
                after a cancellation. That of the leader counts.

        Raises:
            CallError: The work waits for itself, and would do so for ever.
            Exception: What the work raised; each waiter gets a copy.
        """
        while True:
            with self._lock:
                flight = self._flights.get(key)
                if flight is None:
                    flight = self._flights[key] = _Flight()
                    break
            if flight in _LEADING.get():
                raise CallError("Work in a cache asks for what it is about to return: it would wait for ever.")
            await flight.done.wait()
            if flight.error is not None:
                try:
                    raise _copied(flight.error)
                finally:
                    del flight  # no circle of an exception and the frame that holds it
            if flight.landed:
                return flight.result
        return await self._lead(key, flight, work, is_own)

    async def _lead(
        self, key: Hashable, flight: _Flight, work: Callable[[], Awaitable[Any]], is_own: Callable[[Exception], bool]
    ) -> Any:
        """Do the work; an exit, a cancellation or a limit around it leaves no end, so that another one leads."""
        try:
            with _leading(flight):
                flight.result = result = await work()
            flight.landed = True
        except Exception as error:
            if not is_own(error):
                flight.error = _copied(error)  # as it is now: the leader's callers may add notes to theirs
            raise
        finally:
            with self._lock:
                del self._flights[key]
            flight.done.set()
            del flight  # no circle of an exception and the frame that holds it
        return result


@contextmanager
def _leading(flight: _Flight) -> Generator[None]:
    """Mark the code of a block as a part of this work."""
    token = _LEADING.set((*_LEADING.get(), flight))
    try:
        yield
    finally:
        with suppress(ValueError):  # closed by the collector, in another context
            _LEADING.reset(token)


def _copied(error: Exception) -> Exception:
    """Return a copy of an exception with its traceback; the very object where its class cannot be copied."""
    try:
        make, given, *state = cast("tuple[Any, ...]", error.__reduce_ex__(4))
        own = make(*given)  # not by copy.copy: libraries such as Dask register copies that share their attributes
        for attributes in filter(None, state):
            own.__setstate__(attributes)
        if type(own) is not type(error) or own.args != error.args:
            return error
        own.__notes__ = notes_of(error)
    except Exception:  # noqa: BLE001  # a class of anybody's
        return error
    own.__cause__, own.__suppress_context__ = error.__cause__, error.__suppress_context__
    return own.with_traceback(error.__traceback__)
