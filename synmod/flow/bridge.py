"""The bridge from plain code to async code, and back: `run` and `in_thread`.

From the main thread one event loop serves all calls until the process ends, so that connections live on from call to
call. Nothing is patched, and inside a running loop nothing is started.
"""

from __future__ import annotations

import asyncio
import atexit
import contextvars
import functools
import inspect
import os
import threading
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import nullcontext
from typing import Any, Final, NoReturn, ParamSpec, TypeVar

from synmod.errors import ArgumentError, RunError
from synmod.flow.interrupts import Interrupts
from synmod.leaves import aio
from synmod.scope import ambient, plain_limit

T = TypeVar("T")
P = ParamSpec("P")

_THREADS: Final = aio.ThreadLimit(8)
"""How many functions of `in_thread` run at once."""


def run(main: Callable[..., Awaitable[T]] | Awaitable[T], *args: Any) -> T:
    """Run async code from plain code, to its end.

    For scripts, the command line and notebooks without top-level await. The caller's ContextVars (default model,
    phase, overlays, hooks, deadline) hold inside. In the main thread the first Ctrl-C or SIGTERM cancels `main`, the
    second leaves at once.

    Args:
        main: A coroutine function, a module, or an awaitable.
        *args: Arguments for `main`, which must then be a function or a module.

    Returns:
        What `main` returns.

    Raises:
        RunError: A loop runs in this thread already; shows the line to write instead.
        ArgumentError: `main` is neither, or an awaitable with further arguments.
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
    if aio.backend() is not None:
        _refuse_inside(main)
    coroutine = _entry(main, args)
    context = contextvars.copy_context()
    if threading.current_thread() is not threading.main_thread():
        with asyncio.Runner() as runner:
            return runner.run(coroutine, context=context)
    return _MAIN.run(coroutine, context)


def in_thread(fn: Callable[P, T]) -> Callable[P, Coroutine[Any, Any, T]]:
    """Make an async function that runs a plain one in a worker thread.

    At most 8 run at once, in a copy of the caller's context. A thread cannot be interrupted: a cancelled caller waits
    for it. CPU-heavy work belongs into another process.

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


class _MainLoop:
    """The loop of the main thread: made by the first `run`, closed when the process ends."""

    def __init__(self) -> None:
        self._runner: asyncio.Runner | None = None
        self._process = 0

    def run(self, coroutine: Coroutine[Any, Any, T], context: contextvars.Context) -> T:
        """Run a coroutine on the one loop."""
        loop = self._loop()
        task = loop.create_task(coroutine, context=context)
        with Interrupts(loop, task) as interrupts:
            cancelled: asyncio.CancelledError | None = None
            try:
                loop.run_until_complete(task)
            except asyncio.CancelledError as error:
                cancelled = error
            finally:
                if interrupts.torn:
                    self._abandon()
                elif not task.done():  # another task raised KeyboardInterrupt or SystemExit through the loop
                    _end(loop, task, interrupts)
            ending = interrupts.ending(cancelled)
        if ending is not None:
            raise ending
        return task.result()

    def _loop(self) -> asyncio.AbstractEventLoop:
        """Give the loop; a forked child makes its own."""
        if self._runner is None or self._process != os.getpid() or self._runner.get_loop().is_closed():
            self._runner = asyncio.Runner(loop_factory=asyncio.new_event_loop)  # and set no loop for others to find
            self._process = os.getpid()
            atexit.register(self._close, self._runner)
        return self._runner.get_loop()

    def _abandon(self) -> None:
        """Leave a torn loop as it is: closing it would wait for the very work that was to be left at once."""
        atexit.unregister(self._close)
        self._runner = None

    def _close(self, runner: asyncio.Runner) -> None:
        """End the loop with the process that made it."""
        if self._process == os.getpid():
            runner.close()


_MAIN: Final = _MainLoop()


def _end(loop: asyncio.AbstractEventLoop, task: asyncio.Task[Any], interrupts: Interrupts) -> None:
    """Cancel a task and run the loop until it has ended; what ended the run is being raised already."""
    task.cancel()
    waiting = loop.create_task(asyncio.wait([task]))
    while not waiting.done():
        try:
            loop.run_until_complete(waiting)
        except (KeyboardInterrupt, SystemExit):
            if interrupts.torn:
                raise
    if not task.cancelled():
        task.exception()  # the same again, out of the group that the task held open


def _entry(main: Any, args: tuple[Any, ...]) -> Coroutine[Any, Any, Any]:
    """Make one coroutine that makes and awaits what is to run, inside the loop and the context."""
    if inspect.isawaitable(main):
        if args:
            _close_coroutine(main)
            raise ArgumentError("run(awaitable) takes no further arguments: write run(function, *args).")
        return _awaited(main)
    if not callable(main):
        raise ArgumentError(f"run takes a coroutine function, a module or an awaitable; got {main!r:.100}.")
    return _called(main, args)


async def _awaited(awaitable: Awaitable[T]) -> T:
    """Await it, where the deadline around the caller holds."""
    with plain_limit(ambient()) or nullcontext():
        return await awaitable


async def _called(main: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    """Call inside the loop, then await."""
    awaitable = main(*args)
    if not inspect.isawaitable(awaitable):
        raise ArgumentError(
            f"run takes a coroutine function; {getattr(main, '__name__', main)!r:.100} returned "
            f"{type(awaitable).__name__}: a plain function needs no loop, call it."
        )
    return await _awaited(awaitable)


def _refuse_inside(main: Any) -> NoReturn:
    """Show the line to write inside a running loop."""
    _close_coroutine(main)
    name = getattr(main, "__name__", None) or getattr(main, "name", None) or "main"
    raise RunError(
        "sm.run was called inside a running event loop, where it would wait for itself: "
        f"write `await {name}(...)` instead."
    )


def _close_coroutine(x: Any) -> None:
    """Close a coroutine that nobody will await, so that Python does not warn of it too."""
    if inspect.iscoroutine(x):
        x.close()
