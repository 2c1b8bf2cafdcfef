"""What the worker pool still needs until it is rebuilt."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Generator
from contextvars import Context, copy_context
from inspect import isawaitable
from types import ModuleType
from typing import Any, Protocol

from synmod.leaves.aio import running_trio


class InContext:
    """`await InContext(context, function, *args)`: calls the function, and runs each step of it, inside `context`.

    What it sets in ContextVars stays in that context. A plain function is welcome too; its result is the result.

    Source: how asyncio runs a task's steps; differs: within a task that has a context of its own.
    """

    __slots__ = ("_args", "_context", "_function")

    def __init__(self, context: Context, function: Callable[..., Any], *args: Any) -> None:
        self._context = context
        self._function = function
        self._args = args

    def __await__(self) -> Generator[Any, Any, Any]:
        run = self._context.run
        result = run(self._function, *self._args)
        if not isawaitable(result):
            return result
        coroutine: Any = result if hasattr(result, "send") else _awaited(result)
        step: Callable[..., Any] = coroutine.send
        value: Any = None
        while True:
            try:
                waited = run(step, value)
            except StopIteration as end:
                return end.value
            try:
                value = yield waited
                step = coroutine.send
            except GeneratorExit:
                run(coroutine.close)
                raise
            except BaseException as error:  # noqa: BLE001  # all that the loop throws in belongs to the coroutine
                step, value = coroutine.throw, error


async def _awaited(awaitable: Awaitable[Any]) -> Any:
    """Make a coroutine of any awaitable."""
    return await awaitable


class Background(Protocol):
    """A running task. What it raises is its owner's to keep: nobody else looks."""

    def cancel(self) -> None:
        """Ask it to end; a plain call, from any thread."""

    async def ended(self) -> None:
        """Wait until it has ended, come what may; a cancellation that arrived meanwhile is raised then."""


def background(function: Callable[..., Awaitable[object]], *args: object) -> Background:
    """Start `await function(*args)` beside the running code, in a copy of its context.

    `function` must not raise (cancellation apart): an owner keeps the failure and raises it where it waits.

    Args:
        function: What to run.
        *args: Its arguments.

    Returns:
        The handle by which to end it and to wait for it.

    Example:
        >>> async def main():
        ...     task = background(asyncio.sleep, 60)
        ...     task.cancel()
        ...     await task.ended()
        >>> asyncio.run(main())

    Source: trio's system tasks; needed where an iterator works ahead of its consumer, between two calls of it.
    """
    trio = running_trio()
    return _AsyncioBackground(function, args) if trio is None else _TrioBackground(trio, function, args)


class _AsyncioBackground:
    """A task of the running loop."""

    __slots__ = ("_loop", "_task")

    def __init__(self, function: Callable[..., Awaitable[object]], args: tuple[object, ...]) -> None:
        self._loop = asyncio.get_running_loop()
        self._task = self._loop.create_task(_called(function, args))

    def cancel(self) -> None:
        if asyncio._get_running_loop() is self._loop:
            self._task.cancel()
            return
        with contextlib.suppress(RuntimeError):  # a loop that is closed has no task left
            self._loop.call_soon_threadsafe(self._task.cancel)

    async def ended(self) -> None:
        late: asyncio.CancelledError | None = None
        if True:
            while not self._task.done():
                try:
                    await asyncio.wait([self._task])
                except asyncio.CancelledError as cancellation:
                    late = cancellation
        if late is not None:
            raise late


class _TrioBackground:
    """A system task of the running trio."""

    __slots__ = ("_ended", "_scope", "_token")

    def __init__(self, trio: ModuleType, function: Callable[..., Awaitable[object]], args: tuple[object, ...]) -> None:
        self._scope: Any = trio.CancelScope()
        self._ended: Any = trio.Event()
        self._token: Any = trio.lowlevel.current_trio_token()
        trio.lowlevel.spawn_system_task(self._run, function, args, context=copy_context())

    async def _run(self, function: Callable[..., Awaitable[object]], args: tuple[object, ...]) -> None:
        try:
            with self._scope:
                await function(*args)
        finally:
            self._ended.set()

    def cancel(self) -> None:
        with contextlib.suppress(RuntimeError):  # a trio that has ended has no task left
            self._token.run_sync_soon(self._scope.cancel)

    async def ended(self) -> None:
        import trio

        with trio.CancelScope(shield=True):
            await self._ended.wait()
        await trio.lowlevel.checkpoint_if_cancelled()


async def _called(function: Callable[..., Awaitable[object]], args: tuple[object, ...]) -> None:
    """Make a coroutine of whatever awaitable the function gives."""
    await function(*args)
