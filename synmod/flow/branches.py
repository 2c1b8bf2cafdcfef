"""Several calls at once."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from synmod.leaves import aio


async def together(*calls: Callable[[], Awaitable[Any]]) -> list[Any]:
    """Run several calls at once.

    Args:
        *calls: Functions without arguments that return an awaitable.

    Returns:
        The results in the order of `calls`. A single call runs in place, without a task.

    Raises:
        BaseException: The first failure, as itself, after the others were cancelled and have ended; another failure
            is a note on it.

    Example:
        >>> await together(lambda: critic(x), lambda: writer(x))  # doctest: +SKIP

    Source: structured concurrency (trio, anyio).
    """
    if len(calls) == 1:
        return [await calls[0]()]
    results: list[Any] = [None] * len(calls)

    async def run(index: int) -> None:
        results[index] = await calls[index]()

    async with aio.task_group() as group:
        for index in range(len(calls)):
            group.start_soon(run, index)
    return results
