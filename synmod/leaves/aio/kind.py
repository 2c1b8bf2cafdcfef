"""Which library runs this code, and the few acts that asyncio and trio spell differently."""

from __future__ import annotations

import asyncio
import sys
from types import ModuleType
from typing import Literal, cast


def running_trio() -> ModuleType | None:
    """Give the trio module where trio runs this code; nobody who does not use trio pays for its import."""
    trio = sys.modules.get("trio")
    lowlevel = getattr(trio, "lowlevel", None)  # absent while another thread is still importing trio
    return trio if lowlevel is not None and lowlevel.in_trio_run() else None


def backend() -> Literal["asyncio", "trio"] | None:
    """Tell which library runs this code.

    Returns:
        `"asyncio"`, `"trio"`, or None outside an event loop.

    Example:
        >>> backend() is None
        True

    Source: sniffio; differs: a plain look at both libraries, without a ContextVar of its own.
    """
    if running_trio() is not None:
        return "trio"
    return "asyncio" if asyncio._get_running_loop() is not None else None


async def sleep(seconds: float) -> None:
    """Wait on the clock of the loop; a cancellation point also for zero seconds."""
    trio = running_trio()
    await (asyncio.sleep(seconds) if trio is None else trio.sleep(seconds))


async def checkpoint() -> None:
    """Let others run, and be cancelled here if somebody asked for it."""
    trio = running_trio()
    await (asyncio.sleep(0) if trio is None else trio.lowlevel.checkpoint())


def cancelled_type() -> type[BaseException]:
    """Give the exception class that a cancellation raises here; that of asyncio outside a loop."""
    trio = running_trio()
    return asyncio.CancelledError if trio is None else trio.Cancelled


def is_cancellation(error: BaseException | None) -> bool:
    """Tell whether an exception is a cancellation of either library, or a group of nothing else (as trio's nursery)."""
    if isinstance(error, asyncio.CancelledError):
        return True
    if isinstance(error, BaseExceptionGroup):
        return all(map(is_cancellation, cast("BaseExceptionGroup[BaseException]", error).exceptions))
    cancelled = getattr(sys.modules.get("trio"), "Cancelled", None)
    return cancelled is not None and isinstance(error, cancelled)
