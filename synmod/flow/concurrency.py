"""Async code run from plain code, and plain code from async code; and a worker pool over a stream of items.

From the main thread one event loop serves all calls until the process ends, so that connections stay open from call to
call. Nothing is patched. In a notebook, whose own loop runs, the code runs in a worker thread with a loop of its own.
A worker pool works on many items at once in bounded memory.
"""

from __future__ import annotations

import asyncio
import atexit
import contextvars
import functools
import inspect
import logging
import selectors
import signal
import sys
import threading
from collections import deque
from collections.abc import AsyncIterable, Awaitable, Callable, Coroutine, Iterable, Sized
from contextlib import nullcontext
from dataclasses import dataclass
from types import FrameType, TracebackType
from typing import TYPE_CHECKING, Any, Final, Generic, Literal, NoReturn, ParamSpec, Protocol, Self, TypeVar, overload

from synmod.errors import ArgumentError, RunError, add_note, shorten_traceback
from synmod.leaves import aio, check_int, checks_keywords, did_you_mean
from synmod.scope import ambient, plain_limit

T = TypeVar("T")
R = TypeVar("R")
P = ParamSpec("P")

_THREADS: Final = aio.ThreadLimit(8)
"""How many functions of `in_thread` run at once."""


@overload
def run(main: Callable[P, Awaitable[T]], /, *args: P.args, **kwargs: P.kwargs) -> T: ...
@overload
def run(main: Awaitable[T], /) -> T: ...
def run(main: Any, /, *args: Any, **kwargs: Any) -> Any:
    """Run async code from plain code, to its end.

    For scripts, the command line and notebooks. The caller's ContextVars (default model, phase, overlays, hooks,
    deadline) apply inside. In the main thread the first Ctrl-C or SIGTERM cancels `main`, the second exits at once. In
    a notebook, whose loop is running, `main` runs in a worker thread with its own loop, and the cell waits.

    Args:
        main: A coroutine function, a module, or an awaitable.
        *args: Arguments for `main`, which must then be a function or a module.
        **kwargs: Likewise by keyword.

    Returns:
        What `main` returns.

    Raises:
        RunError: A loop that is not a notebook's runs in this thread; the message has the line to write instead.
        ArgumentError: `main` is none of these, or an awaitable with further arguments.
        DeadlineExceeded: The time of an enclosing `sm.deadline` is over.
        KeyboardInterrupt: Ctrl-C was pressed, and `main` has ended.
        SystemExit: SIGTERM came, and `main` has ended; the code is 143.
        BaseException: Whatever `main` raises, as itself.

    Example:
        >>> async def answer(x):
        ...     return x + 1
        >>> run(answer, 41)
        42

    Source: asyncio.run, anyio.run; differs: one loop for all calls from the main thread.
    """
    loop = aio.backend()
    if loop is not None and not (loop == "asyncio" and _in_notebook()):
        _raise_inside(main)
    coroutine = _entry(main, args, kwargs)
    context = contextvars.copy_context()
    try:
        if loop is not None:
            return _run_beside(coroutine, context)
        if threading.current_thread() is not threading.main_thread():
            with asyncio.Runner() as runner:
                return runner.run(coroutine, context=context)
        return _MAIN.run(coroutine, context)
    except BaseException as error:
        shorten_traceback(error)
        raise


def in_thread(fn: Callable[P, T]) -> Callable[P, Coroutine[Any, Any, T]]:
    """Make an async function that runs a plain one in a worker thread.

    At most 8 run at once, in a copy of the caller's context. A thread cannot be interrupted and runs to its end.
    CPU-heavy work belongs in another process.

    Args:
        fn: A plain function.

    Returns:
        An async function of the same signature.

    Raises:
        ArgumentError: `fn` is a coroutine function, or cannot be called.

    Example:
        >>> async def main():
        ...     return await in_thread(len)("abc")
        >>> run(main)
        3

    Source: anyio.to_thread, asyncio.to_thread.
    """
    if not callable(fn) or inspect.iscoroutinefunction(fn):
        raise ArgumentError(
            f"in_thread takes a plain function; got {fn!r:.100}. An async function needs no thread: await it."
        )

    @functools.wraps(fn)
    async def threaded(*args: P.args, **kwargs: P.kwargs) -> T:
        return await aio.to_thread(functools.partial(fn, *args, **kwargs), limiter=_THREADS)

    return threaded


# -- what is run -----------------------------------------------------------------------------------------------------


def _entry(main: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Coroutine[Any, Any, Any]:
    """Return a coroutine that makes the awaitable of `main` inside the loop and the context, and awaits it."""
    if inspect.isawaitable(main):
        if args or kwargs:
            _close_coroutine(main)
            raise ArgumentError("run(awaitable) takes no further arguments: write run(function, *args).")
        return _awaited(main)
    if not callable(main):
        raise ArgumentError(f"run takes a coroutine function, a module or an awaitable; got {main!r:.100}.")
    return _called(main, args, kwargs)


async def _awaited(awaitable: Awaitable[T]) -> T:
    """Await within the deadline of the caller."""
    with plain_limit(ambient()) or nullcontext():
        return await awaitable


async def _called(main: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call inside the loop, then await."""
    awaitable = main(*args, **kwargs)
    if not inspect.isawaitable(awaitable):
        raise ArgumentError(
            f"run takes a coroutine function; {getattr(main, '__name__', main)!r:.100} returned "
            f"{type(awaitable).__name__}: a plain function needs no loop, call it."
        )
    return await _awaited(awaitable)


def _raise_inside(main: Any) -> NoReturn:
    """Raise RunError with the line to write inside a running loop."""
    _close_coroutine(main)
    name = getattr(main, "__name__", None) or getattr(main, "name", None) or "main"
    raise RunError(
        "sm.run was called inside a running event loop, where it would wait for itself: "
        f"write `await {name}(...)` instead."
    )


def _close_coroutine(x: Any) -> None:
    """Close a coroutine that will not be awaited, so that Python does not warn about it too."""
    if inspect.iscoroutine(x):
        x.close()


# -- notebooks -------------------------------------------------------------------------------------------------------


def _in_notebook() -> bool:
    """Whether this is a cell of an IPython kernel, whose loop runs in the main thread; a terminal has no kernel."""
    if threading.current_thread() is not threading.main_thread():
        return False
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return getattr(shell, "kernel", None) is not None


def _run_beside(coroutine: Coroutine[Any, Any, T], context: contextvars.Context) -> T:
    """Run a coroutine in a worker thread with its own loop, and wait; an interrupt of the cell cancels it."""
    started: list[tuple[asyncio.AbstractEventLoop, asyncio.Task[Any]]] = []

    async def main() -> T:
        task = asyncio.current_task()
        assert task is not None
        started.append((task.get_loop(), task))
        return await coroutine

    def work() -> T:
        with asyncio.Runner() as runner:
            return runner.run(main(), context=context)

    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(1, "synmod.run") as threads:
        future = threads.submit(work)
        try:
            return future.result()
        except KeyboardInterrupt:
            for loop, task in started:
                loop.call_soon_threadsafe(task.cancel)
            raise


# -- the main thread -------------------------------------------------------------------------------------------------


class _MainLoop:
    """The loop of the main thread: made by the first `run`, closed when the process ends."""

    def __init__(self) -> None:
        self._runner: asyncio.Runner | None = None
        self._interrupts: _Interrupts | None = None
        aio.in_forked_child(self._leave_to_parent)

    def run(self, coroutine: Coroutine[Any, Any, T], context: contextvars.Context) -> T:
        """Run a coroutine on the one loop."""
        loop = self._loop()
        task = loop.create_task(coroutine, context=context)
        with _Interrupts(loop, task) as interrupts:
            self._interrupts = interrupts
            cancelled: asyncio.CancelledError | None = None
            try:
                loop.run_until_complete(task)
            except asyncio.CancelledError as error:
                cancelled = error
            finally:
                if self._interrupts is not interrupts:  # this is a child that was forked meanwhile
                    loop.close()
                elif interrupts.was_forced:
                    self._abandon()
                elif not task.done():  # another task raised KeyboardInterrupt or SystemExit through the loop
                    _end(loop, task, interrupts)
                self._interrupts = None
                if task.done() and not task.cancelled():
                    task.exception()  # retrieved: it is raised here, or repeats what is being raised
            ending = interrupts.ending(cancelled)
        if ending is not None:
            raise ending
        return task.result()

    def _loop(self) -> asyncio.AbstractEventLoop:
        """Return the loop."""
        if self._runner is None or self._runner.get_loop().is_closed():
            self._runner = asyncio.Runner(loop_factory=asyncio.new_event_loop)  # with a factory, no current loop is set
            atexit.register(self._runner.close)
        return self._runner.get_loop()

    def _abandon(self) -> None:
        """Abandon a loop that was forced to stop: closing it would wait for the work that should stop at once."""
        if self._runner is not None:
            atexit.unregister(self._runner.close)
            self._runner = None

    def _leave_to_parent(self) -> None:
        """Close the loop in a forked child, which makes its own, without touching what is still the parent's."""
        if self._interrupts is not None:
            self._interrupts.__exit__()
        self._interrupts, runner = None, self._runner
        self._abandon()
        loop: Any = None if runner is None else runner.get_loop()
        if hasattr(loop, "_selector"):
            loop._selector = selectors.DefaultSelector()  # the other one, of the kernel, is shared with the parent
            if not loop.is_running():
                loop.close()


_MAIN: Final = _MainLoop()


def _end(loop: asyncio.AbstractEventLoop, task: asyncio.Task[Any], interrupts: _Interrupts) -> None:
    """Cancel a task and run the loop until the task has ended; the exception that ended the run is already raised."""
    task.cancel()
    waiting = loop.create_task(asyncio.wait([task]))
    while not waiting.done():
        try:
            loop.run_until_complete(waiting)
        except (KeyboardInterrupt, SystemExit):
            if interrupts.was_forced:
                raise


_TERMINATED: Final = 128 + signal.SIGTERM
"""The exit code of a process that SIGTERM ended."""

_DEFAULTS: Final = {signal.SIGINT: signal.default_int_handler, signal.SIGTERM: signal.SIG_DFL}


class _Interrupts:
    """A `with` block that turns SIGINT and SIGTERM into a cancellation of one task.

    A signal for which the user has a handler is left alone; on leaving, the default handlers are restored.

    Attributes:
        was_forced: Whether a second signal stopped the loop, which then holds unfinished work.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, task: asyncio.Task[Any]) -> None:
        self._loop = loop
        self._task = task
        self._first: int | None = None
        self._installed: list[signal.Signals] = []
        self.was_forced = False

    def __enter__(self) -> Self:
        for number, default in _DEFAULTS.items():
            if signal.getsignal(number) is default:
                signal.signal(number, self._received)
                self._installed.append(number)
        return self

    def __exit__(self, *_: object) -> None:
        for number in self._installed:
            if signal.getsignal(number) == self._received:
                signal.signal(number, _DEFAULTS[number])

    def _received(self, number: int, _frame: FrameType | None) -> None:
        """Cancel at the first signal, raise at the second."""
        if self._first is None and not self._task.done():
            self._first = number
            self._task.cancel()
            self._loop.call_soon_threadsafe(_wake)
            return
        self.was_forced = True
        raise _ending(number)

    def ending(self, error: asyncio.CancelledError | None) -> BaseException | None:
        """Return what the caller must raise now that the task has ended, cancelled (`error`) or with a result.

        If a task catches Ctrl-C and returns, the program continues, as in asyncio.run; SIGTERM always ends the process.
        """
        if self._first == signal.SIGTERM:
            return SystemExit(_TERMINATED)
        if error is not None and self._first is not None and self._task.uncancel() == 0:
            return _ending(self._first)
        return error


def _ending(number: int) -> BaseException:
    """Return the exception that ends a process for a signal."""
    return KeyboardInterrupt() if number == signal.SIGINT else SystemExit(_TERMINATED)


def _wake() -> None:
    """Do nothing; called in the loop, so that it wakes and runs the cancelled task."""


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


class Shown:
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


def shown(progress: Progress | bool | None) -> Shown:
    """Return `progress` in a wrapper: nothing for False, and for None a bar if a person is watching.

    Args:
        progress: As `sm.map_concurrently` and `sm.evaluate` take it.

    Raises:
        ArgumentError: It is True.
    """
    if progress is None:
        is_watched = "ipykernel" in sys.modules or (sys.stderr is not None and sys.stderr.isatty())
        return Shown(Bar() if is_watched else None)
    if progress is True:
        raise ArgumentError("progress is True; leave it out for a bar on a terminal, or pass an object.")
    return Shown(None if progress is False else progress)


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


# -- pools -------------------------------------------------------------------------------------------------------------

_ON_ERROR: Final = ("raise", "collect")
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
        error: What it raised.
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
        if on_error not in _ON_ERROR:
            hint = did_you_mean(on_error, _ON_ERROR)
            raise ArgumentError(f"on_error is {on_error!r}; write 'raise' or 'collect'.{hint}")
        if not any(hasattr(items, method) for method in ("__aiter__", "__iter__", "__getitem__")):
            raise ArgumentError(f"items must be an iterable or an async iterable; got {type(items).__name__}.")
        self._fn: Callable[[Any], Any] = fn
        self._items: Any = items
        self._concurrency = concurrency
        self._room = concurrency + (4 * concurrency if buffer is None else buffer)
        self._ordered = ordered
        self._collects = on_error == "collect"
        self._progress = shown(progress)
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
        """Return the index of a result that can be taken, None while there is none."""
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
