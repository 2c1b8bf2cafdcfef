"""The workers of a pool: they read a stream on demand and keep what is finished until it is taken.

The workers know nothing of the iterator that hands their results out, so an iterator that is dropped is freed, and can
end them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from contextvars import Context
from typing import Any

from synmod.errors import add_note
from synmod.flow.progress import Shown
from synmod.leaves import aio, aio_old

_NO_MORE = object()


class Workers:
    """What a pool shares between its workers and its consumer; all in one loop.

    Attributes:
        news: Where the consumer waits for a result, a failure or the end.
        failure: What ended the pool, if it was not the end of the stream.
        ended: Whether all workers have ended.
        over: Whether the consumer has had everything, or has closed the pool.
        unclosed: What the source raised when it was closed before its end.
    """

    def __init__(
        self,
        fn: Callable[[Any], Any],
        items: Any,
        *,
        concurrency: int,
        room: int,
        ordered: bool,
        failed: Callable[[int, Exception], Any] | None,
        progress: Shown,
        context: Context,
    ) -> None:
        self._fn = fn
        self._is_async = hasattr(items, "__aiter__")
        self._source: Any = aiter(items) if self._is_async else iter(items)
        self._concurrency = concurrency
        self._most = room
        self._ordered = ordered
        self._failed = failed
        self._progress = progress
        self._context = context
        self._to_start: deque[Any] = deque()
        self._starting = False
        self._group: Any = None
        self._started = self._read = self._done = self._taken = self._failures = 0
        self._exhausted = self._reading = False
        self._results: dict[int, Any] = {}
        self._finished: deque[int] = deque()
        self._room = aio.Gate()
        self._turn = aio.Gate()
        self.news = aio.Gate()
        self.failure: BaseException | None = None
        self.ended = False
        self.over = False
        self.unclosed: BaseException | None = None

    def announce(self, total: int | None) -> None:
        """Tell the progress object that work begins."""
        self._progress.begin("map_concurrently", total)

    async def run(self) -> None:
        """Work until the stream ends or something fails; what failed is kept in `failure`, not raised."""
        try:
            async with aio.task_group() as self._group:
                if self._is_async:
                    self._start(None)
                while not self._is_async and self._may_start():
                    self._start(self._read_now())
        except BaseException as error:
            if self.failure is None and not isinstance(error, Exception):
                raise  # closed from outside; a failure that came too late does not count
        finally:
            await self._close_source()
            self.ended = True
            self.news.wake_all()

    async def _close_source(self) -> None:
        """Let an async generator clean up that was not read to its end; what that raises is kept for `aclose`."""
        try:
            await aio.close_generator(self._source)
        except BaseException as error:  # noqa: BLE001  # whoever ends the pool raises it
            self.unclosed = error

    def has_next(self) -> bool:
        """Tell whether the consumer can take a result; after a failure it takes none."""
        if self.failure is not None:
            return False
        return (self._taken in self._results) if self._ordered else bool(self._finished)

    def take(self) -> Any:
        """Hand a result out, and let a worker read in its place."""
        index = self._taken if self._ordered else self._finished.popleft()
        self._taken += 1
        self._room.wake()
        result = self._results.pop(index)
        return result if self._ordered else (index, result)

    def close(self, outcome: str) -> None:
        """Note that the consumer wants no more."""
        if self.over:
            return
        self.over = True
        self._results.clear()
        self._finished.clear()
        self._progress.end(outcome)

    def _may_start(self) -> bool:
        """Tell whether another worker would have something to do."""
        return self._started < self._concurrency and not self._exhausted and self._has_room()

    def _start(self, job: Any) -> None:
        """Start one more worker, with its first item where that was read already."""
        if job is _NO_MORE:
            return
        self._started += 1
        self._to_start.append(job)
        if self._starting:
            return  # an eager worker asks from within the loop below, so that no stack grows
        self._starting = True
        try:
            while self._to_start:
                self._group.start_soon(self._work, self._to_start.popleft())
        finally:
            self._starting = False

    async def _work(self, job: Any) -> None:
        """Be a worker: read, work, hand over, until there is nothing more."""
        while True:
            if job is None:
                job = await self._next()
            if job is _NO_MORE:
                return
            if self._may_start():
                self._start(None if self._is_async else self._read_now())
            await self._finish(*job)
            job = None

    async def _finish(self, index: int, item: Any) -> None:
        """Work on one item and hand its result over."""
        try:
            self._results[index] = await self._result(index, item)
            if not self._ordered:
                self._finished.append(index)
            self._done += 1
            self._progress.advance(1, failed=self._failures, in_flight=self._read - self._done)
        except BaseException as error:
            self._fail(error, index)
            raise
        self.news.wake()

    async def _result(self, index: int, item: Any) -> Any:
        """Give what the function returns, or what stands for its failure."""
        if self._failed is None:
            return await aio_old.InContext(self._context.copy(), self._fn, item)
        try:
            return await aio_old.InContext(self._context.copy(), self._fn, item)
        except Exception as error:  # noqa: BLE001  # one example under collection: its failure is its result
            self._failures += 1
            return self._failed(index, error)

    async def _next(self) -> Any:
        """Read the next item when there is room: (index, item), or that there is no more."""
        while not self._exhausted:
            if not self._has_room():
                await self._room.wait()
            elif not self._is_async:
                return self._read_now()
            elif self._reading:
                await self._turn.wait()
            else:
                return await self._read_later()
        return _NO_MORE

    def _has_room(self) -> bool:
        """Tell whether one more item may be read: those at work and those not yet taken are bounded."""
        return self._read - self._taken < self._most

    def _read_now(self) -> Any:
        """Read one item of an iterable."""
        try:
            item = next(self._source)
        except StopIteration:
            return self._exhaust()
        except BaseException as error:
            self._fail(error, self._read)
            raise
        self._read += 1
        return self._read - 1, item

    async def _read_later(self) -> Any:
        """Read one item of an async iterable; one worker at a time."""
        self._reading = True
        try:
            item = await anext(self._source)
        except StopAsyncIteration:
            return self._exhaust()
        except BaseException as error:
            self._fail(error, self._read)
            raise
        finally:
            self._reading = False
            self._turn.wake()
        self._read += 1
        return self._read - 1, item

    def _exhaust(self) -> Any:
        """Note the end of the stream; workers that wait to read need not."""
        self._exhausted = True
        self._room.wake_all()
        self._turn.wake_all()
        return _NO_MORE

    def _fail(self, error: BaseException, index: int) -> None:
        """Keep the first failure. A cancellation counts unless the pool was closed: nobody else would tell of it."""
        if self.over or self.failure is not None:
            return
        if aio.is_cancellation(error):
            self._group.cancel()
        else:
            add_note(error, f"item {index} of map_concurrently")
        self.failure = error
        self.news.wake_all()
