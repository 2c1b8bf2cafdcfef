"""Worker pools: a function over a stream, many items at once, in bounded memory.

A fixed number of workers reads the stream on demand; never a task per item. What is read and not yet taken by the
consumer is bounded, so a slow consumer stops the pool, and the length of the input does not matter.
"""

from __future__ import annotations

import warnings
from collections.abc import AsyncIterable, Awaitable, Callable, Iterable, Sized
from contextvars import copy_context
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Generic, Literal, TypeVar

from synmod.errors import ArgumentError, SynmodWarning
from synmod.flow.progress import Progress, shown
from synmod.flow.workers import Workers
from synmod.leaves import aio, aio_old
from synmod.leaves.names import did_you_mean

T = TypeVar("T")
R = TypeVar("R")

_BUFFER_PER_WORKER = 4
_ON_ERROR = ("raise", "collect")


@dataclass(frozen=True, slots=True)
class Failed:
    """What stands in the place of an item's result with `on_error="collect"`: which item, and what it raised."""

    index: int
    error: Exception


def map_concurrently(
    fn: Callable[[T], Awaitable[R]],
    items: Iterable[T] | AsyncIterable[T],
    *,
    concurrency: int = 64,
    buffer: int | None = None,
    ordered: bool = True,
    on_error: Literal["raise", "collect"] = "raise",
    progress: Progress | Literal[False] | None = None,
) -> ConcurrentMap[R]:
    """Apply an async function to many items, a bounded number at once.

    Args:
        fn: Takes an item, returns its result; runs in a copy of the caller's context. A plain function runs in line.
        items: An iterable or async iterable, also an endless one; read on demand. An async generator that is left
            before its end is closed.
        concurrency: Number of workers; fewer items than workers start fewer.
        buffer: How many items may be finished and not yet taken, beside those at work; default four per worker.
        ordered: Results in input order; False gives `(index, result)` in order of completion.
        on_error: `"raise"`: the first failure cancels the rest and is raised, its index as a note. `"collect"`: a
            `Failed(index, error)` stands in its place.
        progress: An object that is told how far the pool is; None for a bar on a terminal, False for nothing.

    Returns:
        An async iterator of results, which is also an async context manager. Leaving `async with`, or `aclose()`, ends
        the workers at once.

    Raises:
        ArgumentError: `concurrency` below 1, a negative `buffer`, another word for `on_error`, nothing to iterate.
        BaseException: While iterating: what `fn` (with `"raise"`) or the source raised, as itself.
        RuntimeError: While iterating: `fn` raised StopAsyncIteration, which would pass for the end.

    Example:
        >>> import asyncio
        >>> async def double(x):
        ...     return 2 * x
        >>> async def main():
        ...     return [y async for y in map_concurrently(double, range(3), concurrency=2)]
        >>> asyncio.run(main())
        [0, 2, 4]

    Source: trio and anyio worker pools; differs: bounded on both sides, ordered if wanted.
    """
    if not callable(fn):
        raise ArgumentError(f"map_concurrently needs a function; got {fn!r:.100}.")
    _at_least("concurrency", concurrency, 1)
    if buffer is None:
        buffer = _BUFFER_PER_WORKER * concurrency
    _at_least("buffer", buffer, 0)
    if on_error not in _ON_ERROR:
        raise ArgumentError(f"on_error is {on_error!r}; write 'raise' or 'collect'.{did_you_mean(on_error, _ON_ERROR)}")
    if not any(hasattr(items, method) for method in ("__aiter__", "__iter__", "__getitem__")):
        raise ArgumentError(f"items must be an iterable or an async iterable; got {type(items).__name__}.")
    workers = Workers(
        fn,
        items,
        concurrency=concurrency,
        room=concurrency + buffer,
        ordered=ordered,
        failed=Failed if on_error == "collect" else None,
        progress=shown(progress),
        context=copy_context(),
    )
    return ConcurrentMap(workers, len(items) if isinstance(items, Sized) else None)


def _at_least(name: str, value: Any, least: int) -> None:
    """Refuse what is no whole number from `least` on."""
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise ArgumentError(f"{name} is {value!r}; give a whole number of at least {least}.")


class ConcurrentMap(Generic[R]):
    """The results of `map_concurrently`: an async iterator, and an async context manager that ends the pool."""

    __slots__ = ("__weakref__", "_task", "_total", "_workers")

    def __init__(self, workers: Workers, total: int | None) -> None:
        self._workers = workers
        self._total = total
        self._task: aio_old.Background | None = None

    def __aiter__(self) -> ConcurrentMap[R]:
        return self

    async def __anext__(self) -> R:
        """Wait for the next result. The workers start with the first call."""
        workers = self._workers
        if workers.over:
            raise StopAsyncIteration
        try:
            if self._task is None:
                workers.announce(self._total)
                self._task = aio_old.background(workers.run)
            if workers.has_next():
                await aio.checkpoint()  # a result that is there can be taken, but not without a chance to be cancelled
            while not workers.has_next():
                if workers.ended:
                    return await self._finish()
                await workers.news.wait()
        except BaseException:
            await self._close()
            raise
        return workers.take()

    async def _finish(self) -> R:
        """End the iteration: with the failure, or because there is nothing more."""
        workers, failure = self._workers, self._workers.failure
        workers.close("done" if failure is None else "failed")
        if self._task is not None:
            await self._task.ended()
        if failure is None:
            raise StopAsyncIteration
        workers.failure = None
        try:
            aio.reraise(_no_end(failure))
        finally:
            del failure

    async def aclose(self) -> None:
        """End the workers at once and wait until they have ended. A second call does nothing.

        Raises:
            BaseException: What an async generator that is the source raised when it was closed.
        """
        await self._close()
        error, self._workers.unclosed = self._workers.unclosed, None
        if error is not None:
            aio.reraise(error)

    async def _close(self) -> None:
        """End the workers at once and wait until they have ended."""
        self._workers.close("stopped")
        if self._task is not None:
            self._task.cancel()
            await self._task.ended()

    async def __aenter__(self) -> ConcurrentMap[R]:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await (self.aclose() if kind is None else self._close())

    def __del__(self) -> None:
        """End workers that nobody can reach any more, and say that this was left to the collector."""
        if self._task is not None and not self._workers.over:
            self._workers.close("stopped")
            self._task.cancel()
            warnings.warn(
                "map_concurrently was left before its end and never closed: write `async with map_concurrently(...) "
                "as results:`, which ends the workers at once.",
                SynmodWarning,
                stacklevel=2,
            )


def _no_end(failure: BaseException) -> BaseException:
    """Give what to raise for a failure: StopAsyncIteration would end the loop as if all were done."""
    if not isinstance(failure, StopAsyncIteration):
        return failure
    error = RuntimeError("an item of map_concurrently raised StopAsyncIteration")
    error.__cause__ = failure
    return error
