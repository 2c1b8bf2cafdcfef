"""The sandbox: code that a model wrote runs in a worker process of pydantic-monty, without files and network."""

import atexit
import contextlib
import os
import sys
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextvars import ContextVar
from datetime import datetime
from typing import Any, Final, NamedTuple

from synmod.data import import_for
from synmod.errors import ConfigError
from synmod.leaves import aio, mend

_GRACE_S: Final = 0.25  # after `seconds`, until the worker is killed
_CLOSE_S: Final = 5.0  # for the end of a worker
_EXIT_S: Final = 0.1  # for the end of the library's threads
_MOST_OUTPUT: Final = 1_000_000  # bytes that one piece of code may print
_MOST_MESSAGE: Final = 100_000  # characters of an error
_MOST_SUSPENSIONS: Final = 1_000_000  # calls out of a session, sleeps and looked up names included
_MANNERS: Final = {"datetime": datetime(2000, 1, 1), "sleep": "zero", "random_start": {"seed": 0}}  # noqa: DTZ001  # UTC

_WORKERS: Final = aio.ThreadLimit(os.cpu_count() or 1)  # that run pieces of code one after the other
_RUNS: Final = aio.ThreadLimit(64)  # that have a worker of their own
_IN_RUN: Final = ContextVar("synmod_in_run", default=False)


class Outcome(NamedTuple):
    """What came of a piece of code.

    Attributes:
        value: The value of its last expression.
        output: All that it printed.
        error: The traceback or message of its failure; None if it ended well.
        is_stopped: Whether it was stopped for its time or memory, so that the next piece begins without names.
    """

    value: Any
    output: str
    error: str | None = None
    is_stopped: bool = False


class Sandbox:
    """A session of code whose names live on from piece to piece, until one is stopped.

    Args:
        seconds: How long a piece may compute; waiting for a call takes none of it.
        memory_mb: How much memory it may hold, in megabytes.
        call: The only function that the code can call out to, as `_call`: from text to text.
        prelude: Code that runs at the beginning, and again after a piece was stopped.
        texts: Texts that are bound to names beforehand.
    """

    def __init__(
        self,
        seconds: float,
        memory_mb: float,
        call: Callable[[str], Awaitable[str]] | None = None,
        prelude: str = "",
        texts: Mapping[str, str] | None = None,
    ) -> None:
        self._limits = {
            "max_feed_duration_secs": seconds,
            "max_memory": int(memory_mb * 2**20),
            "max_suspensions": _MOST_SUSPENSIONS,
        }
        self._lookup, self._prelude = ({} if call is None else {"_call": call}), prelude
        self._texts = {name: mend(text) for name, text in (texts or {}).items()}
        self._session: Any = None
        self._stack = contextlib.AsyncExitStack()

    async def run(self, code: str) -> Outcome:
        """Run a piece of code; nothing that it does raises here."""
        monty = _library()
        output = monty.CollectString(_MOST_OUTPUT)
        try:
            if self._session is None:
                await self._begin(monty)
            session: Any = self._session
            value = await session.feed_run(mend(code), external_lookup=self._lookup, print_callback=output)
        except monty.MontyError as error:
            await aio.checkpoint()  # each step with an error takes time where its message is long
            is_crash = isinstance(error, monty.MontyCrashedError)
            text: str = str(error) if is_crash else error.display("type-msg")
            is_stopped = is_crash or text.startswith(("TimeoutError", "MemoryError"))
            if is_stopped:
                await self.aclose()
            elif len(text) <= _MOST_MESSAGE:
                text = error.display()
            return Outcome(None, output.output, text[:_MOST_MESSAGE], is_stopped)
        return Outcome(value, output.output)

    async def _begin(self, monty: Any) -> None:
        """Start a worker, and run the prelude.

        Raises:
            MontyError: The prelude fails, such as for texts that need too much memory.
        """
        pool = monty.AsyncMonty(max_processes=1, feed_duration_limit_grace=_GRACE_S)
        pool = await self._stack.enter_async_context(pool)
        session = pool.checkout(limits=self._limits, os_policy=_MANNERS)
        self._session = await self._stack.enter_async_context(session)
        await self._session.feed_run(f"{self._prelude}\nNone", inputs=self._texts)

    async def aclose(self) -> None:
        """End the worker."""
        stack, self._stack, self._session = self._stack, contextlib.AsyncExitStack(), None
        await stack.aclose()


@contextlib.asynccontextmanager
async def open_sandbox(sandbox: Sandbox, where: str, *, shared: bool) -> AsyncGenerator[Sandbox]:
    """Open a sandbox for a block, as soon as there is room for its worker.

    Args:
        sandbox: The sandbox.
        where: The name of the caller, for messages.
        shared: Whether it is one of as many as the machine has cores, else one of 64; a run inside another needs no
            room, or runs that wait for the runs inside them might take all of it.

    Raises:
        ConfigError: pydantic-monty is not installed, or the event loop is trio's.
    """
    _library()
    if aio.backend() != "asyncio":
        raise ConfigError(f"{where}: the sandbox needs asyncio, and this runs on trio.")
    is_inner = _IN_RUN.get() and not shared
    async with contextlib.AsyncExitStack() as stack:
        if not is_inner:
            await stack.enter_async_context((_WORKERS if shared else _RUNS).limiter())
        token = _IN_RUN.set(True) if not shared else None
        try:
            yield sandbox
        finally:
            if token is not None:
                aio.reset(_IN_RUN, token)
            with aio.shield(_CLOSE_S):
                await sandbox.aclose()


@atexit.register
def _wait_for_threads() -> None:
    """Wait a moment where the library was used: a thread of it that ends while Python does aborts the process."""
    if "pydantic_monty" in sys.modules:
        time.sleep(_EXIT_S)


def _library() -> Any:
    """Return pydantic-monty.

    Raises:
        ConfigError: It is not installed.
    """
    with import_for("the sandbox", "'synmod-lm[code]'"):
        import pydantic_monty
    return pydantic_monty
