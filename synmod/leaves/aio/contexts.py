"""Running a coroutine in another context than that of its task, without a task of its own."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator
from contextvars import Context
from inspect import isawaitable
from typing import Any

from .asyncio_group import _GROUP


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
        run(_GROUP.set, _GROUP.get())  # a shield inside must find the group that really runs it
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
