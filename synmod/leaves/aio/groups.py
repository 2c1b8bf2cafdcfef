"""Task groups: children that never outlive their block, on asyncio and trio alike."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from types import ModuleType, TracebackType
from typing import Any, NoReturn, Protocol, Self

from .asyncio_group import AsyncioGroup
from .kind import is_cancellation, running_trio

_CONTEXT: Any = vars(BaseException)["__context__"]

AsyncFunction = Callable[..., Awaitable[object]]


class TaskGroup(Protocol):
    """What a task group offers inside its block."""

    def start_soon(self, function: AsyncFunction, *args: object) -> None:
        """Start `await function(*args)` as a child, in a copy of this context."""

    def cancel(self) -> None:
        """Cancel all children, and the block while it waits; the group then ends without an error."""


def task_group() -> AbstractAsyncContextManager[TaskGroup]:
    """Open a group of tasks for an `async with` block.

    Leaving waits for all children. The first failure, and a cancellation of the block, cancels the children; every
    further wait of a cancelled child raises again. Never hold one open across a `yield`.

    Returns:
        An async context manager that gives the group.

    Raises:
        BaseExceptionGroup: Children or the block failed (on leaving), in the order in which they did; see
            `unwrap_single` and `first_failure`.

    Example:
        >>> import asyncio
        >>> async def main():
        ...     async with task_group() as group:
        ...         group.start_soon(asyncio.sleep, 0)
        >>> asyncio.run(main())

    Source: trio's nursery, asyncio.TaskGroup; differs: cancellation is level-triggered on both.
    """
    trio = running_trio()
    return AsyncioGroup() if trio is None else _TrioGroup(trio)


class _TrioGroup:
    """A nursery."""

    __slots__ = ("_manager", "_nursery")

    def __init__(self, trio: ModuleType) -> None:
        self._manager: Any = trio.open_nursery(strict_exception_groups=True)

    async def __aenter__(self) -> Self:
        self._nursery: Any = await self._manager.__aenter__()
        return self

    def start_soon(self, function: AsyncFunction, *args: object) -> None:
        self._nursery.start_soon(_called, function, args)

    def cancel(self) -> None:
        self._nursery.cancel_scope.cancel()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        return bool(await self._manager.__aexit__(kind, error, trace))


async def _called(function: AsyncFunction, args: tuple[object, ...]) -> None:
    """Make a coroutine function of one that gives any awaitable, which trio would refuse."""
    await function(*args)


def unwrap_single(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """Give the one failure of a group of one, else the group: for `reraise`."""
    return group.exceptions[0] if len(group.exceptions) == 1 else group


def first_failure(group: BaseExceptionGroup[BaseException]) -> tuple[BaseException, tuple[BaseException, ...]]:
    """Give the first failure of a task group and the others; a cancellation counts only if there is nothing else."""
    failures = [error for error in group.exceptions if not is_cancellation(error)] or list(group.exceptions)
    return failures[0], tuple(failures[1:])


def reraise(error: BaseException) -> NoReturn:
    """Raise an exception as itself: its traceback is kept, its context and cause stay what they were."""
    context = error.__context__
    try:
        raise error
    finally:
        _CONTEXT.__set__(error, context)  # an exception may refuse attributes
        del error, context  # else the traceback's frame and the exception hold each other
