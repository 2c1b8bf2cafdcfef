"""Branches: work that runs side by side, of which the first failure is the failure of all.

The first failure cancels the others; when they have ended it is raised as itself, and what failed besides becomes a
note on it. Branches started together begin in the order given, on every kind of loop.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

from synmod.errors import add_note, notes_of
from synmod.leaves import aio


class Branches:
    """One group of tasks. A branch may start further ones; no stack grows however many follow one another.

    Args:
        run: Does one piece of work; it tells `stop` of what it raises, before it raises.
    """

    __slots__ = ("_busy", "_group", "_relay", "_run", "_waiting", "first")

    def __init__(self, run: Callable[[Any], Awaitable[Any]]) -> None:
        self._run = run
        self._group: Any = None
        self._waiting: deque[Any] = deque()
        self._busy = False
        self._relay = aio.backend() != "asyncio"
        self.first: BaseException | None = None
        """The first failure, once there is one."""

    async def finish(self, work: Iterable[Any]) -> None:
        """Run all of `work`, and whatever it starts, to its end.

        Raises:
            BaseException: The first failure of a branch, as itself.
        """
        failure: BaseException | None = None
        try:
            async with aio.task_group() as self._group:
                self.start(work)
        except BaseExceptionGroup as errors:
            failure = self.first or errors
        self._group = None
        failure, self.first = failure or self.first, None  # a branch cancelled by itself ends its group in silence
        if failure is not None:
            try:
                aio.reraise(failure)
            finally:
                del failure  # else the traceback holds this frame, and this frame the failure

    def start(self, work: Iterable[Any]) -> None:
        """Begin a branch for each item, in order; once one has failed nothing new begins."""
        if self.first is not None:
            return
        if self._busy or self._relay:
            self._waiting.extend(work)
            if not self._busy:
                self._busy = True
                self._group.start_soon(self._relayed)
            return  # else an eager task asks from within the loop below: that loop goes on with it
        self._busy = True
        try:
            start, run = self._group.start_soon, self._run
            for item in work:
                start(run, item)
            while self._waiting:
                start(run, self._waiting.popleft())
        finally:
            self._busy = False

    async def _relayed(self) -> None:
        """Start the next branch, then run this one: trio starts tasks that are ready together in any order."""
        if not self._waiting:
            self._busy = False
            return
        item = self._waiting.popleft()
        if self._waiting:
            self._group.start_soon(self._relayed)
        else:
            self._busy = False
        await self._run(item)

    def stop(self, error: BaseException) -> None:
        """Keep the first failure; note the others on it, cancellations apart. Nothing new begins from here on."""
        first = self.first
        if first is None:
            self.first = error
            self._waiting.clear()
            if aio.is_cancellation(error):
                self._group.cancel()  # a group takes a cancelled task for a finished one
        elif aio.is_cancellation(error) or error is first:
            return
        elif aio.is_cancellation(first):
            self.first = error
        else:
            where = "; ".join(notes_of(error))
            add_note(
                first, f"another branch failed too: {type(error).__name__}: {error}{f' ({where})' if where else ''}"
            )


async def together(*calls: Callable[[], Awaitable[Any]]) -> list[Any]:
    """Run several calls at once.

    Args:
        *calls: Functions without arguments that give an awaitable.

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
        try:
            results[index] = await calls[index]()
        except BaseException as error:
            if branches is not None:
                branches.stop(error)
            raise

    branches: Branches | None = None
    if calls:
        branches = Branches(run)
        try:
            await branches.finish(range(len(calls)))
        finally:
            branches = None  # it refers to `run`, and `run` to it: results are freed by counting, not by the collector
    return results
