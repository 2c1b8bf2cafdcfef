"""Ctrl-C and SIGTERM while `sm.run` runs in the main thread: the first cancels, the second leaves at once."""

from __future__ import annotations

import asyncio
import signal
from types import FrameType, TracebackType
from typing import Any, Final, Self

TERMINATED: Final = 128 + signal.SIGTERM
"""The exit code of a process that SIGTERM ended."""

_DEFAULTS: Final = {signal.SIGINT: signal.default_int_handler, signal.SIGTERM: signal.SIG_DFL}


class Interrupts:
    """A `with` block that turns the two signals into a cancellation of one task.

    A signal that the user handles already is left alone; what was there is put back.

    Attributes:
        torn: Whether a second signal tore the loop, which then holds half-done work.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, task: asyncio.Task[Any]) -> None:
        self._loop = loop
        self._task = task
        self._first: int | None = None
        self._installed: list[signal.Signals] = []
        self.torn = False

    def __enter__(self) -> Self:
        for number, default in _DEFAULTS.items():
            if signal.getsignal(number) is default:
                signal.signal(number, self._received)
                self._installed.append(number)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number in self._installed:
            if signal.getsignal(number) == self._received:
                signal.signal(number, _DEFAULTS[number])

    def _received(self, number: int, _frame: FrameType | None) -> None:
        """Cancel at the first signal, raise at the second."""
        if self._first is None and not self._task.done():
            self._first = number
            self._task.cancel()
            self._loop.call_soon_threadsafe(_wake)
            return
        self.torn = True
        raise _ending(number)

    def ending(self, error: asyncio.CancelledError | None) -> BaseException | None:
        """Give what the caller must raise now that the task has ended, cancelled (`error`) or with a result.

        A task that caught Ctrl-C and returned goes on, as in asyncio.run; SIGTERM is an order to the process.
        """
        if self._first == signal.SIGTERM:
            return SystemExit(TERMINATED)
        if error is not None and self._first is not None and self._task.uncancel() == 0:
            return _ending(self._first)
        return error


def _ending(number: int) -> BaseException:
    """The exception that ends a process for a signal."""
    return KeyboardInterrupt() if number == signal.SIGINT else SystemExit(TERMINATED)


def _wake() -> None:
    """Do nothing, in the loop, so that it looks at its tasks."""
