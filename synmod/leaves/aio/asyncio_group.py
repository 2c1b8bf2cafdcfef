"""A task group on asyncio whose cancellation is level-triggered.

`asyncio.TaskGroup` would cancel each child once, and leave a count of cancellations on its host that is not zero when
a child fails while the block waits; both would make later cancellations look like something else.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar
from types import TracebackType
from typing import Any


class AsyncioGroup:
    """Children of one block; see `task_group`."""

    __slots__ = (
        "_before",
        "_cancelled",
        "_children",
        "_errors",
        "_fatal",
        "_host",
        "_idle",
        "_loop",
        "_pressed",
        "given_up",
    )

    def __init__(self) -> None:
        self._children: set[asyncio.Task[None]] = set()
        self._errors: list[BaseException] = []
        self._fatal: BaseException | None = None  # KeyboardInterrupt or SystemExit of a child
        self._idle: asyncio.Future[None] | None = None  # set while the block waits for its children
        self._cancelled = False  # by `cancel`, which is no failure
        self._pressed = False  # whether the block itself was cancelled by us
        self.given_up = False

    async def __aenter__(self) -> AsyncioGroup:
        self._loop = asyncio.get_running_loop()
        self._host = _current_task()
        self._before = self._host.cancelling()
        return self

    def start_soon(self, function: Callable[..., Awaitable[object]], *args: object) -> None:
        if self.given_up:
            return  # it would be cancelled at its first wait
        task = self._loop.create_task(self._child(function, args))
        if not task.done():  # an eager task may have ended already
            self._children.add(task)
            task.add_done_callback(self._ended)
        else:
            self._ended(task)

    async def _child(self, function: Callable[..., Awaitable[object]], args: tuple[object, ...]) -> None:
        """Run one child; the group gives up at the moment of its failure, before the loop does anything else."""
        child = _Child(function, args, self)
        _CHILD.set((child, _current_task()))
        try:
            await child
        except Exception as error:  # noqa: BLE001  # kept as it is, and raised when the block is left
            self._errors.append(error)
            self._give_up()

    def _ended(self, task: asyncio.Task[None]) -> None:
        """Forget a child; wake the block after the last."""
        self._children.discard(task)
        if not task.cancelled() and (fatal := task.exception()) is not None:
            self._fatal = self._fatal or fatal
            self._give_up()
        if not self._children and self._idle is not None and not self._idle.done():
            self._idle.set_result(None)

    def cancel(self) -> None:
        self._cancelled = True
        self._give_up()

    def _give_up(self) -> None:
        """Cancel all children, and the block if it is still in its body."""
        if self.given_up:
            return
        self.given_up = True
        for task in self._children:
            task.cancel()
        if self._idle is None:
            self._pressed = self._host.cancel()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        ours = await self._unpressed(error) if self._pressed else False
        if error is not None and not ours:
            self._idle = self._loop.create_future()  # the body is over: `_give_up` need not cancel it
            self._give_up()
        late = await self._waited()
        if self._fatal is not None:
            raise self._fatal
        if error is not None and not isinstance(error, asyncio.CancelledError):
            self._errors.append(error)
        outside = late or (None if ours or not isinstance(error, asyncio.CancelledError) else error)
        if self._errors:
            if outside is not None:
                self._host.uncancel()
                self._host.cancel()  # both matter: the failure is raised, the cancellation arrives at the next wait
            raise BaseExceptionGroup("failures of concurrent tasks", self._errors) from None
        if outside is not None:
            raise outside
        return True

    async def _unpressed(self, error: BaseException | None) -> bool:
        """Take our cancellation of the body back; tell whether it is what ended the body."""
        if error is None:
            try:
                await asyncio.sleep(0)  # it has not arrived yet
            except asyncio.CancelledError:
                pass
        left = self._host.uncancel()
        return isinstance(error, asyncio.CancelledError) and left <= self._before

    async def _waited(self) -> asyncio.CancelledError | None:
        """Wait until the last child has ended, come what may; give a cancellation that arrived meanwhile."""
        late: asyncio.CancelledError | None = None
        with shielded_child():  # an outer group that gave up need not repeat it: our children know
            while self._children:
                self._idle = self._loop.create_future()
                try:
                    await self._idle
                except asyncio.CancelledError as cancellation:
                    late = cancellation
                    self._give_up()
        return late


class _Child:
    """Hands each wait of a child to the loop; once the group has given up, each further wait is cancelled.

    asyncio delivers a cancellation once. A child that swallows it would go on working, and spending, for a result that
    nobody wants.
    """

    __slots__ = ("_args", "_function", "_group", "shields")

    def __init__(
        self, function: Callable[..., Awaitable[object]], args: tuple[object, ...], group: AsyncioGroup
    ) -> None:
        self._function = function
        self._args = args
        self._group = group
        self.shields = 0

    def __await__(self) -> Generator[Any, Any, None]:
        coroutine = _called(self._function, self._args)
        step: Callable[[Any], Any] = coroutine.send
        value: Any = None
        cancelled = False  # whether the child has had its first cancellation
        while True:
            try:
                awaited = step(value)
            except StopIteration:
                return
            if cancelled and self._group.given_up and not self.shields:
                if asyncio.isfuture(awaited):
                    awaited.cancel()
                _current_task().cancel()
                awaited = None  # one turn of the loop, then it arrives
            try:
                value = yield awaited
                step = coroutine.send
            except GeneratorExit:
                coroutine.close()
                raise
            except BaseException as error:  # noqa: BLE001  # all that the loop throws in belongs to the child
                cancelled = cancelled or isinstance(error, asyncio.CancelledError)
                step, value = coroutine.throw, error


async def _called(function: Callable[..., Awaitable[object]], args: tuple[object, ...]) -> None:
    """Make a coroutine of whatever awaitable the function gives."""
    await function(*args)


def _current_task() -> asyncio.Task[Any]:
    """Give the running task, which is there wherever this file is used."""
    task = asyncio.current_task()
    assert task is not None
    return task


_CHILD: ContextVar[tuple[_Child, asyncio.Task[Any]] | None] = ContextVar("synmod_child", default=None)
"""The child that a context was made for, and its task: tasks started by it inherit the context but not the role."""


@contextmanager
def shielded_child() -> Generator[None, None, None]:
    """Let the waits of a block be, although the group of this task has given up."""
    known = _CHILD.get()
    if known is None or known[1] is not asyncio.current_task():
        yield
        return
    child = known[0]
    child.shields += 1
    try:
        yield
    finally:
        child.shields -= 1
