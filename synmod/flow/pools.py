"""A worker pool over a stream of items: many at once, in bounded memory; the progress of this and other long work."""

from __future__ import annotations

import contextvars
import inspect
import logging
import sys
from collections import deque
from collections.abc import AsyncIterable, Awaitable, Callable, Iterable, Sized
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Generic, Literal, NoReturn, Protocol, Self, TypeVar

from synmod.errors import ArgumentError, RunError, add_note
from synmod.leaves import aio, check_choice, check_int, checks_keywords

T = TypeVar("T")
R = TypeVar("R")

# -- progress ----------------------------------------------------------------------------------------------------------

_LOG: Final = logging.getLogger("synmod.progress")


class Progress(Protocol):
    """Follows the progress of long work; passed as `progress=`.

    Example:
        >>> import synmod as sm
        >>> class Counted:
        ...     done = 0
        ...
        ...     def begin(self, label: str, total: int | None) -> None: ...
        ...
        ...     def advance(self, n: int, **numbers: float) -> None:
        ...         self.done += n
        ...
        ...     def end(self, outcome: str) -> None: ...
        >>> watched: sm.Progress = Counted()
        >>> report = sm.run(sm.evaluate(sm.Identity(), [sm.ChatMessage(role="user", content="Hi")], progress=watched))
        >>> watched.done
        1

    Source: tqdm; differs: a protocol of three methods, so that any object can implement it.
    """

    def begin(self, label: str, total: int | None) -> None:
        """The work starts; `total` is the number of items, None if unknown."""

    def advance(self, n: int, **numbers: float) -> None:
        """`n` more items are finished; `numbers`: `failed`, `in_flight`, and of an evaluation `score`, `cost_usd`."""

    def end(self, outcome: str) -> None:
        """The work is over; `outcome` is `done`, `failed` or `stopped`."""


class SafeProgress:
    """A wrapper that drops a progress object that raises, with a line in the log."""

    __slots__ = ("_progress",)

    def __init__(self, progress: Progress | None) -> None:
        self._progress = progress

    @property
    def is_seen(self) -> bool:
        """Whether there is a progress object."""
        return self._progress is not None

    def begin(self, label: str, total: int | None) -> None:
        """Pass on that the work starts."""
        self._call("begin", label, total)

    def advance(self, n: int, **numbers: float) -> None:
        """Pass on that `n` more items are finished."""
        self._call("advance", n, **numbers)

    def end(self, outcome: str) -> None:
        """Pass on that the work is over."""
        self._call("end", outcome)

    def _call(self, method: str, *args: Any, **numbers: float) -> None:
        if self._progress is None:
            return
        try:
            getattr(self._progress, method)(*args, **numbers)
        except Exception as error:  # noqa: BLE001  # a progress object never ends the work
            _LOG.error("progress %s.%s failed: dropped", type(self._progress).__qualname__, method, exc_info=error)
            self._progress = None


def open_progress(progress: Progress | bool | None) -> SafeProgress:
    """Return `progress` in a wrapper: nothing for False, and for None a bar if a person is watching.

    Args:
        progress: As `sm.map_concurrently` and `sm.evaluate` take it.

    Raises:
        ArgumentError: It is True.
    """
    if progress is None:
        is_watched = "ipykernel" in sys.modules or (sys.stderr is not None and sys.stderr.isatty())
        return SafeProgress(Bar() if is_watched else None)
    if progress is True:
        raise ArgumentError("progress is True; leave it out for a bar on a terminal, or pass an object.")
    return SafeProgress(None if progress is False else progress)


class Bar:
    """A bar of tqdm on standard error: redrawn at most ten times a second; nested bars appear below each other."""

    def __init__(self) -> None:
        self._bar: Any = None

    def begin(self, label: str, total: int | None) -> None:
        """Draw the bar."""
        from shutil import get_terminal_size  # imports bz2 and lzma

        from tqdm import tqdm

        columns = get_terminal_size().columns
        self._bar = tqdm(total=total, desc=label, file=sys.stderr, mininterval=0.1, ncols=columns)

    def advance(self, n: int, **numbers: float) -> None:
        """Advance the bar, with the numbers beside it; a narrow terminal cuts off the last ones."""
        self._bar.set_postfix({name: f"{number:.4g}" for name, number in numbers.items()}, refresh=False)
        self._bar.update(n)

    def end(self, outcome: str) -> None:  # noqa: ARG002  # the bar shows how far it came
        """Close the bar; it stays on the screen."""
        self._bar.close()


# -- the pool ----------------------------------------------------------------------------------------------------------

_END: Final = object()


_NO_BLOCK: Final = """\
map_concurrently starts tasks, so it needs a block that ends them. Write:
    async with sm.map_concurrently(fn, items) as results:
        async for result in results:
            ..."""


@dataclass(frozen=True, slots=True)
class Failed:
    """Takes the place of an item's result if it failed, with `on_error="collect"`.

    Attributes:
        index: The position of the item.
        error: The exception.
    """

    index: int
    error: Exception


class map_concurrently(Generic[R]):  # noqa: N801  # read as a word
    """Apply an async function to many items, a bounded number at once.

    Entering the block returns an async iterator of results. The block owns the tasks: leaving it cancels them and waits
    for their end.

    Args:
        fn: Takes an item, returns its result; runs in a copy of the caller's context. A plain function runs inline.
        items: An iterable or async iterable, also an endless one; read when there is room. An async generator that is
            left before its end is closed.
        concurrency: How many items may be processed at once.
        buffer: How many results may be finished and not yet taken; default `4 * concurrency`.
        ordered: Results in input order; False gives `(index, result)` in order of completion.
        on_error: `"raise"`: the first failure cancels the rest and the block, and is raised, with its index as a note.
            `"collect"`: a `Failed(index, error)` takes the place of the result.
        progress: An object that follows the pool; None for a bar on a terminal, False for nothing.

    Raises:
        ArgumentError: `concurrency` is below 1, `buffer` negative, `on_error` unknown, or `items` not iterable.
        RunError: While iterating without a block.
        BaseException: On leaving the block: what `fn` (with `"raise"`) or the source raised, as itself.

    Example:
        >>> import asyncio
        >>> async def double(x):
        ...     return 2 * x
        >>> async def main():
        ...     async with map_concurrently(double, range(3), concurrency=2) as results:
        ...         return [y async for y in results]
        >>> asyncio.run(main())
        [0, 2, 4]

    Source: trio and anyio worker pools; differs: bounded on both sides, optionally ordered.
    """

    @checks_keywords
    def __init__(
        self,
        fn: Callable[[T], Awaitable[R]],
        items: Iterable[T] | AsyncIterable[T],
        *,
        concurrency: int = 64,
        buffer: int | None = None,
        ordered: bool = True,
        on_error: Literal["raise", "collect"] = "raise",
        progress: Progress | Literal[False] | None = None,
    ) -> None:
        if not callable(fn):
            raise ArgumentError(f"map_concurrently needs a function; got {fn!r:.100}.")
        check_int("concurrency", concurrency)
        if buffer is not None:
            check_int("buffer", buffer, 0)
        check_choice("on_error", on_error, ("raise", "collect"))
        if not any(hasattr(items, method) for method in ("__aiter__", "__iter__", "__getitem__")):
            raise ArgumentError(f"items must be an iterable or an async iterable; got {type(items).__name__}.")
        self._fn: Callable[[Any], Any] = fn
        self._items: Any = items
        self._concurrency = concurrency
        self._room = concurrency + (4 * concurrency if buffer is None else buffer)
        self._ordered = ordered
        self._collects = on_error == "collect"
        self._progress = open_progress(progress)
        self._context = contextvars.copy_context()
        self._group: aio.task_group | None = None
        self._state: Literal["new", "open", "read", "over"] = "new"  # read: the stream has ended
        self._started = self._done = self._taken = self._failures = 0
        self._results: dict[int, Any] = {}
        self._finished: deque[int] = deque()  # with ordered=False, in order of completion
        self._news = aio.Gate()  # where the consumer waits for a result
        self._space = aio.Gate()  # where the reader waits for room

    async def __aenter__(self) -> Self:
        if self._state != "new":
            raise RunError("map_concurrently can be used only once: make a new one for each block.")
        self._state = "open"
        self._progress.begin("map_concurrently", len(self._items) if isinstance(self._items, Sized) else None)
        self._group = await aio.task_group().__aenter__()
        self._group.start_soon(self._read, self._group)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        group, self._group = self._group, None
        assert group is not None
        outcome = "done" if self._state == "read" and self._taken == self._started else "stopped"
        self._state = "over"
        self._results.clear()
        group.cancel()
        try:
            await group.__aexit__(kind, error, trace)
        except BaseException as raised:
            outcome = "stopped" if aio.is_cancellation(raised) else "failed"
            raise
        finally:
            self._progress.end(outcome)
            del group, error, trace  # else this frame and the traceback form a reference cycle

    if not TYPE_CHECKING:  # type checkers refuse to await it by themselves

        def __await__(self) -> NoReturn:
            raise RunError(_NO_BLOCK)

    def __aiter__(self) -> Self:
        if self._state == "new":
            raise RunError(_NO_BLOCK)
        return self

    async def __anext__(self) -> R:
        """Wait for the next result; always a cancellation point."""
        if self._state == "new":
            raise RunError(_NO_BLOCK)
        await aio.checkpoint()
        while (index := self._next()) is None:
            if self._state == "over" or (self._state == "read" and self._taken == self._started):
                raise StopAsyncIteration
            await self._news.wait()
        self._taken += 1
        self._space.wake()
        result: Any = self._results.pop(index)
        return result if self._ordered else (index, result)  # pyright: ignore[reportReturnType]  # as the caller asked

    def _next(self) -> int | None:
        """Return the index of a result that can be taken, None while nothing is ready."""
        if self._ordered:
            return self._taken if self._taken in self._results else None
        return self._finished.popleft() if self._finished else None

    async def _read(self, group: aio.task_group) -> None:
        """Read the stream while there is room, and start a task per item."""
        is_async = hasattr(self._items, "__aiter__")
        try:
            source: Any = aiter(self._items) if is_async else iter(self._items)
            try:
                while True:
                    while not self._has_room():
                        await self._space.wait()
                    item = await anext(source, _END) if is_async else next(source, _END)
                    if item is _END:
                        break
                    self._started += 1
                    self._context.copy().run(group.start_soon, self._work, self._started - 1, item)
            finally:
                await aio.close_generator(source)
        except Exception as error:
            add_note(error, f"item {self._started} of map_concurrently")
            raise
        self._state = "read"
        self._news.wake_all()

    def _has_room(self) -> bool:
        """Whether one more item may be read."""
        return self._started - self._done < self._concurrency and self._started - self._taken < self._room

    async def _work(self, index: int, item: Any) -> None:
        """Work on one item and keep its result."""
        self._results[index] = await self._result(index, item)
        self._done += 1
        if not self._ordered:
            self._finished.append(index)
        if self._progress.is_seen:
            self._progress.advance(1, failed=self._failures, in_flight=self._started - self._done)
        self._space.wake()
        self._news.wake()

    async def _result(self, index: int, item: Any) -> Any:
        """Return what the function returns, or a `Failed` in its place."""
        try:
            result = self._fn(item)
            return await result if inspect.isawaitable(result) else result
        except Exception as error:
            if not self._collects:
                add_note(error, f"item {index} of map_concurrently")
                raise
            self._failures += 1
            return Failed(index, error)
