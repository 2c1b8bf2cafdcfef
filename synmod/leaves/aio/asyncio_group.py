"""A task group on asyncio whose cancellation is level-triggered.

`asyncio.TaskGroup` would cancel each child once, and leave a count of cancellations on its host that is not zero when
a child fails while the block waits; both would make later cancellations look like something else.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Generator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from types import CoroutineType, TracebackType
from typing import Any, Self, cast


class AsyncioGroup:
    """Children of one block; see `task_group`."""

    __slots__ = (
        "_before",
        "_cancelled",
        "_children",
        "_eager",
        "_errors",
        "_fatal",
        "_host",
        "_idle",
        "_loop",
        "_outer",
        "_pressed",
        "_pressing",
        "_shields",
        "_token",
        "given_up",
    )

    def __init__(self) -> None:
        self._children: set[asyncio.Task[Any]] = set()
        self._errors: list[BaseException] = []
        self._fatal: BaseException | None = None  # KeyboardInterrupt or SystemExit of a child
        self._idle: asyncio.Future[None] | None = None  # set while the block waits for its children
        self._cancelled = False  # by `cancel`, which is no failure
        self._pressed = False  # whether the block itself was cancelled by us
        self._pressing = False  # whether the loop will call `_press`
        self._shields: dict[asyncio.Task[Any], int] = {}
        self.given_up = False

    async def __aenter__(self) -> Self:
        self._loop = asyncio.get_running_loop()
        self._eager = self._loop.get_task_factory() is not None
        self._host = _current_task()
        self._before = self._host.cancelling()
        self._outer = _GROUP.get()
        self._token = _GROUP.set(self)
        return self

    def start_soon(self, function: Callable[..., Awaitable[object]], *args: object) -> None:
        """Start a child; after the group has given up none begins."""
        if self.given_up:
            return  # it would be cancelled at its first wait
        child = function(*args)
        if self._eager or not isinstance(child, CoroutineType):
            child = self._known(child)
        task: asyncio.Task[Any] = self._loop.create_task(cast("Coroutine[Any, Any, Any]", child))
        if task.done():  # an eager task may have ended already
            self._ended(task)
        else:
            self._children.add(task)
            task.add_done_callback(self._ended)

    async def _known(self, child: Awaitable[object]) -> None:
        """Run a child that is no coroutine, or whose eager task runs before `start_soon` has it."""
        self._children.add(_current_task())
        await child

    def _ended(self, task: asyncio.Task[Any]) -> None:
        """Forget a child, in the turn after its end: what fails in one turn is told together; then wake the block."""
        self._children.discard(task)
        error = None if task.cancelled() else task.exception()
        if isinstance(error, Exception):
            self._errors.append(error)
        elif error is not None:
            self._fatal = self._fatal or error
        if error is not None:
            self._give_up()
        if not self._children and self._idle is not None and not self._idle.done():
            self._idle.set_result(None)

    def cancel(self) -> None:
        """Cancel the children, and the block if it is in its body; this is no failure."""
        self._cancelled = True
        self._give_up()

    def _give_up(self) -> None:
        """Cancel all children, and the block if it is still in its body."""
        if self.given_up:
            return
        self.given_up = True
        self._press(*self._children)
        if self._idle is None:
            self._pressed = self._host.cancel()

    def _press(self, *first: asyncio.Task[Any]) -> None:
        """Cancel the children that wait, in each turn of the loop until they have ended.

        asyncio delivers a cancellation once. A child that swallows it would go on working, and spending, for a result
        that nobody wants. Nothing of this is on the way of a group that does not give up.
        """
        self._pressing = False
        for task in first or self._children:
            waiter: asyncio.Future[Any] | None = getattr(task, "_fut_waiter", None)
            if task not in self._shields and (waiter is None or not waiter.done()):
                task.cancel()
        self._press_again()

    def _press_again(self) -> None:
        """Come back in the next turn, unless all that are left are shielded."""
        if self.given_up and not self._pressing and any(task not in self._shields for task in self._children):
            self._pressing = True
            self._loop.call_soon(self._press)

    def of_child(self, task: asyncio.Task[Any]) -> AsyncioGroup | None:
        """Give the group that a task is a child of: this one, or one around it whose child opened this one."""
        group: AsyncioGroup | None = self
        while group is not None and task not in group._children:
            group = group._outer
        return group

    def shield(self, task: asyncio.Task[Any]) -> None:
        """Let the waits of a child be."""
        self._shields[task] = self._shields.get(task, 0) + 1

    def unshield(self, task: asyncio.Task[Any]) -> None:
        """Take one shield of a child away."""
        self._shields[task] -= 1
        if not self._shields[task]:
            del self._shields[task]
            self._press_again()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        with suppress(ValueError):  # left in another context than it was entered in: nothing to set back
            _GROUP.reset(self._token)
        del self._token  # it holds the context of the host, which children that are long gone need not
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
            if outside is not None:  # both matter: the failure is raised, the cancellation comes at the next wait
                self._loop.call_soon(self._cancel_host_again, *outside.args[:1])
            errors, self._errors = self._errors, []  # else frames of their tracebacks hold them, through this group
            raise BaseExceptionGroup("failures of concurrent tasks", errors) from None
        if outside is not None:
            raise outside
        return True

    def _cancel_host_again(self, message: object = None) -> None:
        """Repeat a cancellation beside which a failure was raised, unless the scope that it belongs to is left."""
        if self._host.cancelling() > self._before and not self._host.done():
            self._host.uncancel()
            self._host.cancel(message)

    async def _unpressed(self, error: BaseException | None) -> bool:
        """Take our cancellation of the body back; tell whether it is what ended the body."""
        if error is None:
            with suppress(asyncio.CancelledError):
                await asyncio.sleep(0)  # it has not arrived yet
        left = self._host.uncancel()
        return isinstance(error, asyncio.CancelledError) and left <= self._before

    async def _waited(self) -> asyncio.CancelledError | None:
        """Wait until the last child has ended, come what may; give a cancellation that arrived meanwhile."""
        late = await self._idled()
        if self._children:
            with shielded_child():  # an outer group that gave up need not repeat it: our children know
                while self._children:
                    late = await self._idled() or late
        return late

    async def _idled(self) -> asyncio.CancelledError | None:
        """Wait for the last child until a cancellation arrives; pass it on, and give it."""
        if not self._children:
            return None
        self._idle = self._loop.create_future()
        try:
            await self._idle
        except asyncio.CancelledError as cancellation:
            self._give_up()
            return cancellation
        return None


def _current_task() -> asyncio.Task[Any]:
    """Give the running task, which is there wherever this file is used."""
    task = asyncio.current_task()
    assert task is not None
    return task


_GROUP: ContextVar[AsyncioGroup | None] = ContextVar("synmod_group", default=None)
"""The nearest group around, open or not. Its children inherit it from where they are started."""


@contextmanager
def shielded_child() -> Generator[None, None, None]:
    """Let the waits of a block be, although the group of this task has given up."""
    nearest = _GROUP.get()
    task = None if nearest is None or asyncio._get_running_loop() is None else asyncio.current_task()
    group = None if nearest is None or task is None else nearest.of_child(task)
    if group is None or task is None:
        yield
        return
    group.shield(task)
    try:
        yield
    finally:
        group.unshield(task)
