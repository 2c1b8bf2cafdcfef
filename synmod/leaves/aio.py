"""The one async door: tasks, the clock, scopes, signals, threads and driving coroutines, on asyncio and trio alike.

Floor: 2. On asyncio, tasks end in the manner of `asyncio.TaskGroup`; on trio they run in a task group of anyio.
Cancel scopes, threads and limiters are anyio's, which is imported by the first scope, thread or trio task group.
State: one ContextVar, the clock that a test injects; the locks that a forked child finds free.
Must never know: modules, models, what a call is.
"""

import asyncio
import contextlib
import inspect
import os
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Coroutine, Generator
from contextvars import ContextVar, Token
from functools import wraps
from types import ModuleType
from typing import Any, Final, Literal, NamedTuple, NoReturn, Protocol, Self, TypeVar, cast
from weakref import WeakSet

from synmod.errors import add_note, notes_of

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])

# -- which library runs ----------------------------------------------------------------------------------------------


def current_trio() -> ModuleType | None:
    """Return the trio module if trio runs this code, else None; trio is never imported here."""
    trio = sys.modules.get("trio")
    lowlevel = getattr(trio, "lowlevel", None)  # absent while another thread is still importing trio
    return trio if lowlevel is not None and lowlevel.in_trio_run() else None


def backend() -> Literal["asyncio", "trio"] | None:
    """Return the name of the library that runs this code, None outside an event loop.

    Example:
        >>> backend() is None
        True

    Source: sniffio.
    """
    if current_trio() is not None:
        return "trio"
    return "asyncio" if asyncio._get_running_loop() is not None else None


def in_task() -> bool:
    """Whether a task runs this code, so that a scope can cancel it."""
    return _current_task() is not None


def _current_task() -> Any:
    """Return the running task, None where no task runs."""
    trio = current_trio()
    if trio is not None:
        return trio.lowlevel.current_task() if trio.lowlevel.in_trio_task() else None
    return asyncio.current_task() if asyncio._get_running_loop() is not None else None


async def sleep(seconds: float) -> None:
    """Wait on the clock of the loop; a cancellation point even for zero seconds."""
    trio = current_trio()
    await (asyncio.sleep(seconds) if trio is None else trio.sleep(seconds))


async def checkpoint() -> None:
    """Let other tasks run; a pending cancellation is raised here."""
    trio = current_trio()
    await (asyncio.sleep(0) if trio is None else trio.lowlevel.checkpoint())


def is_cancellation(error: BaseException | None) -> bool:
    """Whether an exception is a cancellation of either library, or a group of nothing else."""
    if isinstance(error, asyncio.CancelledError):
        return True
    if isinstance(error, BaseExceptionGroup):
        return all(map(is_cancellation, cast("BaseExceptionGroup[BaseException]", error).exceptions))
    cancelled = getattr(sys.modules.get("trio"), "Cancelled", None)
    return cancelled is not None and isinstance(error, cancelled)


# -- loops that end, and processes that fork -------------------------------------------------------------------------


class Home(NamedTuple):
    """The event loop and the process in which work runs.

    Attributes:
        loop: The loop of asyncio; None on trio, which ends no run before its tasks, and outside a loop.
        process: The id of the process.

    Example:
        >>> Home.here().has_ended()
        False
    """

    loop: asyncio.AbstractEventLoop | None
    process: int

    @classmethod
    def here(cls) -> Self:
        """Return the loop and the process that run this code."""
        return cls(asyncio._get_running_loop(), os.getpid())

    def has_ended(self) -> bool:
        """Whether its tasks never go on: the loop was closed under them, or stayed in the parent of this process."""
        return self.process != os.getpid() or (self.loop is not None and self.loop.is_closed())


def in_forked_child(function: Callable[[], object]) -> None:
    """Let a function run first in every forked child of this process (Windows never forks)."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=function)


_LOCKS: Final[WeakSet[Any]] = WeakSet()


def lock() -> threading.RLock:
    """Return a lock that a forked child finds free, whichever thread of the parent held it at that moment.

    It is re-entrant, since the collector may close a coroutine, which ends its work, while the lock is held.
    """
    new = threading.RLock()
    _LOCKS.add(new)
    return new


def _free_locks() -> None:
    """Free the locks in a forked child, in the way of the standard library's own locks."""
    for guard in _LOCKS:
        guard._at_fork_reinit()


in_forked_child(_free_locks)

# -- tasks -----------------------------------------------------------------------------------------------------------

_CONTEXT: Final[Any] = vars(BaseException)["__context__"]
_TOO: Final = "another task failed too: "


class task_group:  # noqa: N801  # read as a word
    """A group of tasks that have all ended when its `async with` block is left.

    The first failure, of a task or of the block, cancels the other tasks, and the block while it waits. When all have
    ended, that failure is raised as itself, with its traceback; further failures become notes on it. On asyncio a
    cancellation is delivered once, so the clean-up of a cancelled task runs to its end. Never hold a group open across
    a `yield`.

    Raises:
        BaseException: The first failure, on leaving.

    Example:
        >>> async def main():
        ...     async with task_group() as group:
        ...         group.start_soon(asyncio.sleep, 0)
        >>> asyncio.run(main())

    Source: asyncio.TaskGroup, trio's nursery; differs: the first failure is raised without an ExceptionGroup.
    """

    __slots__ = ("_block_cancelled", "_failure", "_idle", "_is_eager", "_loop", "_owner", "_tasks", "_trio")

    def __init__(self) -> None:
        self._failure: BaseException | None = None
        self._idle: asyncio.Future[None] | None = None  # where the block waits for its tasks
        self._tasks: set[asyncio.Task[Any]] = set()
        self._trio: Any = None
        self._block_cancelled = False  # whether a failure has cancelled the block

    async def __aenter__(self) -> Self:
        if current_trio() is not None:
            import anyio

            self._trio = anyio.create_task_group()
            await self._trio.__aenter__()
            return self
        self._loop = asyncio.get_running_loop()
        self._owner = cast("asyncio.Task[Any]", asyncio.current_task())
        self._is_eager = self._loop.get_task_factory() is not None
        return self

    def start_soon(self, function: Callable[..., Coroutine[Any, Any, object]], *args: object) -> None:
        """Start `await function(*args)` as a task, in a copy of this context; do nothing after a failure. Hot."""
        if self._failure is not None:
            return
        if self._trio is not None:
            self._trio.start_soon(self._run_on_trio, function, args)
            return
        task = self._loop.create_task(_run_later(function, args) if self._is_eager else function(*args))
        self._tasks.add(task)
        task.add_done_callback(self._on_end)

    def _on_end(self, task: asyncio.Task[Any]) -> None:
        """Handle the end of a task: a failure cancels all others, the last task wakes the waiting block."""
        self._tasks.discard(task)
        try:
            error = task.exception()
        except asyncio.CancelledError as cancellation:
            error = None if task.cancelling() else cancellation  # raised by its own code: asyncio would ignore it
        if error is not None:
            self._note_failure(error)
            self.cancel()
            if self._idle is None and not self._block_cancelled:
                self._block_cancelled = self._owner.cancel()
        if not self._tasks and self._idle is not None and not self._idle.done():
            self._idle.set_result(None)

    def cancel(self) -> None:
        """Cancel the tasks of the group; this does not count as a failure."""
        if self._trio is not None:
            self._trio.cancel_scope.cancel()
        for task in self._tasks:
            if not task.cancelling():  # a second cancellation would interrupt its clean-up
                task.cancel()

    async def _run_on_trio(self, function: Callable[..., Coroutine[Any, Any, object]], args: Any) -> None:
        """Run one task on trio."""
        try:
            await function(*args)
        except BaseException as error:
            if not is_cancellation(error):
                self._note_failure(error)
            raise

    def _note_failure(self, error: BaseException) -> None:
        """Keep the first failure; add a further one to it as a note, unless it is the same in words."""
        first = self._failure
        if first is None or is_cancellation(first):
            self._failure = error
        elif error is not first:
            where = "; ".join(notes_of(error))
            text = f"{type(error).__name__}: {error}{f' ({where})' if where else ''}"
            texts = (note.removeprefix(_TOO) for note in notes_of(first))
            if text not in (f"{type(first).__name__}: {first}", *texts):
                add_note(first, f"{_TOO}{text}")

    async def __aexit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if error is not None and not is_cancellation(error):
            self._note_failure(error)
        try:
            if self._trio is None:
                await self._wait(error)
            else:
                await self._trio.__aexit__(kind, error, trace)
        except BaseException as raised:
            if self._failure is None:
                raise  # the block was cancelled
            if isinstance(raised, BaseExceptionGroup):
                raised.__traceback__ = None  # it refers to the frame that raised it, and that frame to the group
        finally:
            failure, self._failure = self._failure, None
            is_own = failure is error
            del error, trace  # else this frame and the traceback form a reference cycle
        if failure is not None and not is_own:
            try:
                reraise(failure)
            finally:
                del failure

    async def _wait(self, error: BaseException | None) -> None:
        """Wait for the tasks on asyncio; a cancellation that arrives meanwhile is raised when they have ended."""
        arrived: asyncio.CancelledError | None = None
        if error is not None:
            self.cancel()
        while self._tasks:
            self._idle = self._loop.create_future()
            try:
                await self._idle
            except asyncio.CancelledError as cancellation:
                arrived = cancellation
                self.cancel()
        if self._block_cancelled:
            self._owner.uncancel()
        if arrived is not None:
            try:
                raise arrived
            finally:
                del arrived  # else this frame and the traceback form a reference cycle


async def _run_later(function: Callable[..., Coroutine[Any, Any, object]], args: tuple[object, ...]) -> None:
    """Run a task of an eager loop in a later iteration: else tasks that start tasks would grow the stack."""
    await asyncio.sleep(0)
    await function(*args)


def reraise(error: BaseException) -> NoReturn:
    """Raise an exception with its traceback, context and cause unchanged."""
    context = error.__context__
    try:
        raise error
    finally:
        _CONTEXT.__set__(error, context)  # an exception class may forbid setting attributes
        del error, context  # else the traceback's frame and the exception form a reference cycle


# -- the clock -------------------------------------------------------------------------------------------------------


class Clock(Protocol):
    """An object that returns the time and waits."""

    def now(self) -> float:
        """Return the seconds since some moment; never goes back. May be called from any thread."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        ...


class LoopClock:
    """The clock of an event loop (so that a loop's test clock applies), or the monotonic clock outside a loop."""

    __slots__ = ("_read",)

    def __init__(self, read: Callable[[], float]) -> None:
        self._read = read

    def now(self) -> float:
        """Return the seconds since some moment."""
        return self._read()

    async def sleep(self, seconds: float) -> None:
        """Wait on the running loop."""
        await sleep(seconds)


_MONOTONIC = LoopClock(time.monotonic)
_INJECTED: ContextVar[Clock | None] = ContextVar("synmod_clock", default=None)


def current_clock() -> Clock:
    """Return the clock that is in force here: the injected one, else that of the running loop.

    Returns:
        A clock that can be read later from anywhere.

    Example:
        >>> clock = current_clock()
        >>> clock.now() <= clock.now()
        True

    Source: trio's clocks.
    """
    injected = _INJECTED.get()
    if injected is not None:
        return injected
    trio = current_trio()
    if trio is not None:
        return LoopClock(trio.lowlevel.current_clock().current_time)
    loop = asyncio._get_running_loop()
    return _MONOTONIC if loop is None else LoopClock(loop.time)


def use_clock(clock: Clock) -> contextlib.AbstractContextManager[None]:
    """Use another clock in a block and in the tasks started inside it.

    Args:
        clock: Any object with `now()` and `async sleep(seconds)`.

    Example:
        >>> class Frozen:
        ...     def now(self): return 7.0
        >>> with use_clock(Frozen()):
        ...     current_clock().now()
        7.0

    Source: trio.testing.MockClock.
    """
    return set_in_block(_INJECTED, clock)


@contextlib.contextmanager
def set_in_block(variable: ContextVar[T], value: T) -> Generator[None, None, None]:
    """Set a ContextVar in a block and in the tasks started inside it."""
    token = variable.set(value)
    try:
        yield
    finally:
        reset(variable, token)


def reset(variable: ContextVar[Any], token: Token[Any]) -> None:
    """Reset a ContextVar; do nothing in a context other than that of the token, as where the collector closes code."""
    try:
        variable.reset(token)
    except ValueError:  # hot: suppress() would cost a microsecond
        return


def wall_time() -> float:
    """Return the time for records that outlive a loop or a process, such as the entries of a cache.

    Returns:
        Seconds since 1970; the time of the injected clock where there is one.

    Example:
        >>> abs(wall_time() - time.time()) < 1
        True

    Source: HTTP's `Age`, which outlives connections; differs: testable without waiting.
    """
    return _time_of_process(time.time)


def steady_time() -> float:
    """Return the time for records that loops and threads of one process share, such as the log of a rate limit.

    Returns:
        Seconds since some moment, the same in every loop; never goes back. The time of the injected clock where there
        is one.

    Example:
        >>> steady_time() <= steady_time()
        True

    Source: time.monotonic; differs: testable without waiting.
    """
    return _time_of_process(time.monotonic)


def _time_of_process(read: Callable[[], float]) -> float:
    """Return the time of a clock of the process, or of the test clock that is in force here."""
    injected = _INJECTED.get()
    if injected is not None:
        return injected.now()
    trio = current_trio()
    if trio is not None:
        clock = trio.lowlevel.current_clock()
        # trio's own clock begins each run at a random moment
        return read() if type(clock).__name__ == "SystemClock" else clock.current_time()
    offset = current_clock().now() - time.monotonic()  # zero, unless the loop has a test clock
    return read() + offset


# -- limits on waiting -----------------------------------------------------------------------------------------------


class deadline_scope:  # noqa: N801  # read as a word
    """A plain `with` block in a task: code that waits in it is cancelled when its time is over.

    It swallows its own cancellation; until it is left, each further wait in it is cancelled again. When another task or
    the collector closes the block, only its timer is stopped.

    Args:
        seconds: Time from entry; zero or less ends the block at its first wait.

    Attributes:
        expired: Whether the time ended the block; set when the block is left.

    Example:
        >>> async def main():
        ...     with deadline_scope(0.01) as scope:
        ...         await asyncio.sleep(1)
        ...     return scope.expired
        >>> asyncio.run(main())
        True

    Source: anyio.move_on_after.
    """

    __slots__ = ("_left", "_scope", "_seconds", "_task", "expired")

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self.expired = False

    def __enter__(self) -> Self:
        ends = _loop_time() + self._seconds  # read first, so that importing anyio counts too
        self._task = _current_task()
        self._scope = _cancel_scope(ends, shield=False)
        self._scope.__enter__()
        return self

    def lift(self) -> None:
        """Let the rest of the block take as long as it needs."""
        self._scope.deadline = float("inf")

    def __exit__(self, *failure: object) -> bool:
        if _current_task() is not self._task:
            with contextlib.suppress(RuntimeError):
                self.lift()
            return False
        swallowed = self._scope.__exit__(*failure)
        self.expired = self._scope.cancelled_caught
        return bool(swallowed)

    def pause(self, since: float = 0.0) -> None:
        """Stop the time of the block until `resume`, from so many seconds ago on."""
        self._left = self._scope.deadline - _loop_time() + since
        self._scope.deadline = float("inf")

    def resume(self) -> None:
        """Let the time of the block go on."""
        self._scope.deadline = _loop_time() + self._left


@contextlib.contextmanager
def shield(seconds: float) -> Generator[None, None, None]:
    """Protect the clean-up in a block from cancel scopes for at most `seconds`; then it is cancelled silently."""
    if not in_task():
        yield
        return
    with _cancel_scope(_loop_time() + seconds, shield=True):
        yield


def _cancel_scope(ends: float, *, shield: bool) -> Any:
    """Return a cancel scope of anyio."""
    import anyio

    return anyio.CancelScope(deadline=ends, shield=shield)


def _loop_time() -> float:
    """Return the time of the running loop's clock."""
    trio = current_trio()
    return asyncio.get_running_loop().time() if trio is None else trio.current_time()


_CLEAN_UP_S: Final = 1.0


async def close_generator(source: Any) -> None:
    """Run the clean-up of an async generator now, shielded for a second; do nothing for any other iterable.

    Args:
        source: The iterable that was read.

    Raises:
        Exception: The clean-up raised it.

    Source: contextlib.aclosing; differs: for generators alone, and shielded.
    """
    if inspect.isasyncgen(source) and source.ag_frame is not None:
        with shield(_CLEAN_UP_S):
            await source.aclose()


# -- signals ---------------------------------------------------------------------------------------------------------


_LOOK_S: Final = 1.0
"""How often a task looks whether a loop other than its own, for which it waits, was closed."""


class Signal:
    """An event that happens once, and that tasks of any loop, thread or library may wait for.

    Attributes:
        is_set: Whether it has happened.
        home: Where it was made, and where what sets it runs.

    Example:
        >>> signal = Signal()
        >>> signal.set()
        >>> signal.is_set
        True

    Source: trio.Event; differs: belongs to no loop, and `set` may be called from anywhere.
    """

    __slots__ = ("_lock", "_waiters", "home", "is_set")

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiters: set[Callable[[], object]] = set()
        self.is_set = False
        self.home = Home.here()

    @property
    def is_lost(self) -> bool:
        """Whether it never happens: the loop of what would set it was closed, or is that of the parent process."""
        return not self.is_set and self.home.has_ended()

    def set(self) -> None:
        """Wake all waiters, present and future; may be called from any thread, any number of times."""
        with self._lock:
            self.is_set = True
            waiters, self._waiters = self._waiters, set()
        for wake in waiters:
            # A loop that has ended (RuntimeError; trio's RunFinishedError is one) has no waiters left.
            with contextlib.suppress(RuntimeError):
                wake()

    async def wait(self) -> None:
        """Wait until it has happened, or is lost; return at once if so. A cancelled waiter leaves nothing behind."""
        if self.is_set or self.is_lost:
            return
        gate, wake_soon = Gate(), call_soon_here()

        def wake() -> None:
            wake_soon(gate.wake)

        with self._lock:
            if self.is_set:
                return
            self._waiters.add(wake)
        try:
            if self.home == Home.here():
                await gate.wait()
            while not (self.is_set or self.is_lost):
                with deadline_scope(_LOOK_S):
                    await gate.wait()
        finally:
            with self._lock:
                self._waiters.discard(wake)


def call_soon_here() -> Callable[..., object]:
    """Return a function that may be called from any thread, to call another one soon in the loop that runs here."""
    trio = current_trio()
    if trio is None:
        return asyncio.get_running_loop().call_soon_threadsafe
    return trio.lowlevel.current_trio_token().run_sync_soon


class Gate:
    """A queue in which tasks of one loop wait; a task that is woken checks its condition again.

    Example:
        >>> Gate().wake()

    Source: the parking lot of trio.
    """

    __slots__ = ("_waiters",)

    def __init__(self) -> None:
        self._waiters: deque[Any] = deque()

    async def wait(self) -> None:
        """Wait to be woken; a waiter that is cancelled at that moment wakes the next one."""
        trio = current_trio()
        waiter: Any = asyncio.get_running_loop().create_future() if trio is None else trio.Event()
        self._waiters.append(waiter)
        try:
            await (waiter if trio is None else waiter.wait())
        except BaseException:
            if waiter in self._waiters:
                self._waiters.remove(waiter)
            else:
                self.wake()
            raise

    def wake(self) -> None:
        """Wake the first waiter."""
        while self._waiters:
            waiter = self._waiters.popleft()
            if not asyncio.isfuture(waiter):
                waiter.set()
                return
            if not waiter.done():
                waiter.set_result(None)
                return

    def wake_all(self) -> None:
        """Wake all present waiters."""
        for _ in range(len(self._waiters)):
            self.wake()


# -- threads and plain code ------------------------------------------------------------------------------------------


class ThreadLimit:
    """A limit on the threads that work at once for one purpose, per event loop."""

    __slots__ = ("_most", "_of_loop")

    def __init__(self, most: int) -> None:
        self._most = most
        self._of_loop: Any = None  # a RunVar of anyio

    def limiter(self) -> Any:
        """Return the limiter of the running loop."""
        import anyio.lowlevel

        of_loop = self._of_loop = self._of_loop or anyio.lowlevel.RunVar[Any]("synmod_thread_limit")
        limiter = of_loop.get(None)
        if limiter is None:
            limiter = anyio.CapacityLimiter(self._most)
            of_loop.set(limiter)
        return limiter


async def to_thread(
    function: Callable[..., T], *args: Any, limiter: ThreadLimit | None = None, abandon: bool = False
) -> T:
    """Run a plain function in a worker thread, in a copy of this context; it is not interruptible.

    Args:
        function: The function to run.
        *args: Its arguments.
        limiter: Limits the number of threads; None for anyio's own limit.
        abandon: Whether a cancelled caller abandons the thread; else it waits for the function to end.

    Returns:
        What the function returns.

    Raises:
        BaseException: The function raises it.

    Example:
        >>> asyncio.run(to_thread(max, 1, 2))
        2

    Source: anyio.to_thread.
    """
    import anyio.to_thread

    bound = None if limiter is None else limiter.limiter()
    return await anyio.to_thread.run_sync(function, *args, limiter=bound, abandon_on_cancel=abandon)


def in_block(function: F, block: Callable[[tuple[Any, ...]], contextlib.AbstractContextManager[Any]]) -> F:
    """Return a function, plain or `async def`, whose body runs in a block that is made for each call.

    Args:
        function: The function.
        block: Takes the positional arguments of a call, and returns the block.

    Example:
        >>> in_block(max, lambda _: contextlib.nullcontext())(1, 2)
        2

    Source: contextlib.ContextDecorator; differs: also for async functions.
    """

    async def call_async(*args: Any, **kwargs: Any) -> Any:
        with block(args):
            return await function(*args, **kwargs)

    def call(*args: Any, **kwargs: Any) -> Any:
        with block(args):
            return function(*args, **kwargs)

    return cast("F", wraps(function)(call_async if inspect.iscoroutinefunction(function) else call))


class Suspended(Exception):
    """A coroutine that must run to its end at once tried to wait."""


_NO_LOOP: Final = (
    "no running event loop",
    "no current event loop",
    "must be called from async context",
    "Not currently running on any async",
    "not in async context",
)
"""Parts of the messages that asyncio, trio, anyio and sniffio raise where there is no loop."""


_DRIVEN: Final[ContextVar[bool]] = ContextVar("synmod_driven", default=False)


def is_driven() -> bool:
    """Whether `drive` runs this code, which therefore cannot wait."""
    return _DRIVEN.get()


def drive(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine that never waits; no loop is needed.

    Args:
        coroutine: The coroutine to run; it is closed if it would wait.

    Returns:
        What it returns.

    Raises:
        Suspended: It would wait, or needs a loop where none runs.
        BaseException: Whatever the coroutine raises.

    Example:
        >>> async def answer(): return 42
        >>> drive(answer())
        42

    Source: HTTPX's sans-IO style; no thread and no second loop, since a hidden loop deadlocks.
    """
    token = _DRIVEN.set(True)
    try:
        coroutine.send(None)
    except StopIteration as end:
        return end.value
    except RuntimeError as error:
        if backend() is None and any(words in str(error) for words in _NO_LOOP):
            raise Suspended from error
        raise
    finally:
        coroutine.close()
        _DRIVEN.reset(token)
    raise Suspended
