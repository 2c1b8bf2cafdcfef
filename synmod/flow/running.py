"""Async code run from plain code, and plain code from async code.

From the main thread one event loop serves all calls until the process ends, so that connections stay open from call to
call. Nothing is patched. In a notebook, whose own loop runs, the code runs in a worker thread with a loop of its own.
"""

from __future__ import annotations

import asyncio
import atexit
import contextvars
import functools
import inspect
import selectors
import signal
import sys
import threading
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import nullcontext
from types import FrameType
from typing import Any, Final, NoReturn, ParamSpec, Self, TypeVar, overload

from synmod.errors import ArgumentError, RunError, shorten_traceback
from synmod.leaves import aio
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
    async def run_in_thread(*args: P.args, **kwargs: P.kwargs) -> T:
        return await aio.to_thread(functools.partial(fn, *args, **kwargs), limiter=_THREADS)

    return run_in_thread


# -- what is run -----------------------------------------------------------------------------------------------------


def _entry(main: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Coroutine[Any, Any, Any]:
    """Return a coroutine that makes the awaitable of `main` inside the loop and the context, and awaits it."""
    if inspect.isawaitable(main):
        if args or kwargs:
            _close_coroutine(main)
            raise ArgumentError("run(awaitable) takes no further arguments: write run(function, *args).")
    elif not callable(main):
        raise ArgumentError(f"run takes a coroutine function, a module or an awaitable; got {main!r:.100}.")
    return _await_main(main, args, kwargs)


async def _await_main(main: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call `main` unless it is an awaitable; then await within the deadline of the caller."""
    awaitable = main if inspect.isawaitable(main) else main(*args, **kwargs)
    if not inspect.isawaitable(awaitable):
        raise ArgumentError(
            f"run takes a coroutine function; {getattr(main, '__name__', main)!r:.100} returned "
            f"{type(awaitable).__name__}: a plain function needs no loop, call it."
        )
    with plain_limit(ambient()) or nullcontext():
        return await awaitable


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
            failure = interrupts.exit_after(cancelled)
        if failure is not None:
            raise failure
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
                signal.signal(number, self._on_signal)
                self._installed.append(number)
        return self

    def __exit__(self, *_: object) -> None:
        for number in self._installed:
            if signal.getsignal(number) == self._on_signal:
                signal.signal(number, _DEFAULTS[number])

    def _on_signal(self, number: int, _frame: FrameType | None) -> None:
        """Cancel at the first signal, raise at the second."""
        if self._first is None and not self._task.done():
            self._first = number
            self._task.cancel()
            self._loop.call_soon_threadsafe(_wake)
            return
        self.was_forced = True
        raise _exit_for(number)

    def exit_after(self, error: asyncio.CancelledError | None) -> BaseException | None:
        """Return what the caller must raise now that the task has ended, cancelled (`error`) or with a result.

        If a task catches Ctrl-C and returns, the program continues, as in asyncio.run; SIGTERM always ends the process.
        """
        if self._first == signal.SIGTERM:
            return SystemExit(_TERMINATED)
        if error is not None and self._first is not None and self._task.uncancel() == 0:
            return _exit_for(self._first)
        return error


def _exit_for(number: int) -> BaseException:
    """Return the exception that ends a process for a signal."""
    return KeyboardInterrupt() if number == signal.SIGINT else SystemExit(_TERMINATED)


def _wake() -> None:
    """Do nothing; called in the loop, so that it wakes and runs the cancelled task."""
