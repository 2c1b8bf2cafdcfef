"""Deadlines: `sm.deadline`, what is left of the time, and the checks where calls begin."""

from __future__ import annotations

import math
import time
from numbers import Real
from types import TracebackType
from typing import Final

from synmod.errors import ArgumentError, BudgetExceeded, DeadlineExceeded
from synmod.leaves.aio import deadline_scope, in_task
from synmod.leaves.clock import Clock, current_clock

from .ambient import Ambient, Block, ambient
from .frame import CallFrame, current_call, place_name

_TICK_S: Final = time.get_clock_info("monotonic").resolution + 1e-6


class Deadline:
    """A time on the clock of the place where its block was entered.

    Attributes:
        seconds: What the block allowed.
        plain: Whether it was entered where no task ran, so that no scope of its own cancels its waiting code.
        scope: What cancels the waiting code of the block, None for a plain or an endless one.
        waiting: Path of the call that was waiting when the time was over, None while nobody has noted one.
        partial: What was finished when the time was over, for the error.
    """

    __slots__ = ("_clock", "_ends", "partial", "plain", "scope", "seconds", "waiting")

    def __init__(self, seconds: float, *, plain: bool) -> None:
        self.seconds = seconds
        self.plain = plain
        self.waiting: str | None = None
        self.partial: object = None
        self._clock: Clock = current_clock()
        self._ends = self._clock.now() + seconds
        self.scope = None if plain or math.isinf(seconds) else LimitedWait(self)

    def left(self) -> float:
        """Seconds until it comes, negative afterwards; readable from any thread."""
        return self._ends - self._clock.now()

    @property
    def is_over(self) -> bool:
        """Whether it has come; a loop may wake its tasks one tick early."""
        return self.left() <= _TICK_S

    def exceeded(self, where: str) -> DeadlineExceeded:
        """Return the error; `where` is the path that was waiting, or that was not begun any more."""
        place = f"{where!r}" if where else "code outside module calls"
        error = DeadlineExceeded(
            f"the deadline of {self.seconds:g} s is over; waiting was: {place}. "
            "Allow more with sm.deadline(seconds), or do less inside."
        )
        error.partial = self.partial
        return error


class LimitedWait:
    """A `with` block in a task whose waiting code is cancelled at a deadline; it then raises `DeadlineExceeded`."""

    __slots__ = ("_limit", "_scope")

    def __init__(self, limit: Deadline) -> None:
        self._limit = limit
        self._scope = deadline_scope(limit.left())

    def __enter__(self) -> None:
        self._scope.__enter__()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._scope.__exit__(kind, error, trace)
        if self._scope.expired:
            where = place_name(current_call()) if self._limit.waiting is None else self._limit.waiting
            raise self._limit.exceeded(where) from None


class deadline(Block):  # noqa: N801  # read as a word: `with sm.deadline(2):`
    """Limit the time of a block.

    In a task, waiting code of the block is cancelled when the time is over. Where no loop runs, each `sm.run` and
    entry call begun inside is limited alike; plain code is never interrupted. The earliest of nested ones holds.

    Args:
        seconds: Time from entry, zero or more.

    Raises:
        ArgumentError: Not a number, or a negative one.
        DeadlineExceeded: The time is over (on leaving, and where a call would begin afterwards); names the seconds
            and the path that was waiting.

    Example:
        >>> with deadline(10):
        ...     time_left() > 9
        True

    Source: trio.fail_after; differs: calls that other tasks begin after the time raise as well.
    """

    field = "deadline"

    def __init__(self, seconds: float) -> None:
        if isinstance(seconds, bool) or not isinstance(seconds, Real) or not seconds >= 0:
            raise ArgumentError(f"deadline got {seconds!r}: write the seconds as a number, zero or more.")
        super().__init__()
        self._seconds = float(seconds)

    def __enter__(self) -> None:
        limit = Deadline(self._seconds, plain=not in_task())
        self.enter(limit)
        if limit.scope is not None:
            limit.scope.__enter__()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> None:
        limit: Deadline = self.entry().value
        try:
            if limit.scope is not None:
                limit.scope.__exit__(kind, error, trace)
        finally:
            self.leave(keep=limit.is_over)


def plain_limit(record: Ambient | None) -> LimitedWait | None:
    """Return the block that an entry call, or the main code of `sm.run`, must run in; None in the common case.

    A deadline that was set outside any loop has no scope that cancels waiting code; this block is one, and raises
    `DeadlineExceeded` as the deadline's own would.

    Args:
        record: The open blocks, from `ambient()`.
    """
    limit: Deadline | None = None if record is None else record.deadline
    if limit is None or not limit.plain or math.isinf(limit.seconds) or not in_task():
        return None
    return LimitedWait(limit)


def _limit_here() -> Deadline | None:
    """Return the deadline that holds here."""
    record = ambient()
    return None if record is None else record.deadline


def note_waiting(where: CallFrame | str) -> None:
    """Note that a cancellation reached a call, or a wait at a path: the first one names the place in the error."""
    limit = _limit_here()
    if limit is not None and limit.waiting is None and limit.is_over:
        limit.waiting = place_name(where)


def keep_partial(partial: object) -> None:
    """Keep what was finished for the error of the deadline that is cancelling this code, if one is."""
    limit = _limit_here()
    if limit is not None and limit.is_over:
        limit.partial = partial


def check_deadline(where: CallFrame | str, record: Ambient | None = None) -> None:
    """Raise if the time is over, before something is begun.

    Args:
        where: The call, or the path, that would begin.
        record: The open blocks, where the caller has them at hand.

    Raises:
        DeadlineExceeded: A deadline that holds here is over.
    """
    limit: Deadline | None = _limit_here() if record is None else record.deadline
    if limit is not None and limit.is_over:
        raise limit.exceeded(place_name(where))


def time_left() -> float | None:
    """Return how much of the nearest deadline is left.

    Returns:
        Seconds, zero when it is over, None without a deadline.

    Example:
        >>> time_left() is None
        True

    Source: Go's context deadlines.
    """
    limit = _limit_here()
    return None if limit is None else max(0.0, limit.left())


def is_of_block_around(error: BaseException) -> bool:
    """Whether an error is that of a budget or deadline which holds here: not the fault of what raised it."""
    record = ambient()
    if record is None:
        return False
    if isinstance(error, BudgetExceeded):
        return any(error.account is account for account in record.budgets)
    return isinstance(error, DeadlineExceeded) and record.deadline is not None and record.deadline.is_over
