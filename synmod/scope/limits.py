"""Deadlines: `sm.deadline`, what is left of the time, and the checks where calls begin."""

from __future__ import annotations

import math
from numbers import Real
from types import TracebackType

from synmod.errors import ArgumentError, BudgetExceeded, DeadlineExceeded
from synmod.leaves.aio import deadline_scope, in_task
from synmod.scope.ambient import Ambient, Entered, ambient, enter, leave, take_entry
from synmod.scope.deadline import Deadline
from synmod.scope.frame import CallFrame, current_call, place_name


class deadline:  # noqa: N801  # read as a word: `with sm.deadline(2):`
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

    __slots__ = ("_entries", "_seconds")

    def __init__(self, seconds: float) -> None:
        if isinstance(seconds, bool) or not isinstance(seconds, Real) or not seconds >= 0:
            raise ArgumentError(f"deadline got {seconds!r}: write the seconds as a number, zero or more.")
        self._seconds = float(seconds)
        self._entries: list[tuple[Entered, Deadline, deadline_scope | None]] = []

    def __enter__(self) -> None:
        limit = Deadline(self._seconds, plain=not in_task())
        scope = None if limit.plain or math.isinf(self._seconds) else deadline_scope(limit.left())
        entered = enter("deadline", limit)
        self._entries.append((entered, limit, scope))
        if scope is not None:
            scope.__enter__()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        entered, limit, scope = take_entry(self._entries, lambda entry: entry[0].record)
        try:
            if scope is not None:
                scope.__exit__(kind, error, trace)
        finally:
            leave(entered, keep=limit.is_over)
        if scope is not None and scope.expired:
            raise limit.exceeded(_place(limit)) from None


def plain_limit(record: Ambient | None) -> PlainLimit | None:
    """Give the block that an entry call, or the main code of `sm.run`, must run in; None in the common case.

    A deadline that was set outside any loop has no scope that cancels anybody; this block is one, and raises
    `DeadlineExceeded` as the deadline's own would.

    Args:
        record: What `ambient()` gives.
    """
    limit = None if record is None else record.deadline
    if limit is None or not limit.plain or math.isinf(limit.seconds) or not in_task():
        return None
    return PlainLimit(limit)


class PlainLimit:
    """Cancels the waiting code of a block at a deadline that has no scope of its own."""

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
            raise self._limit.exceeded(_place(self._limit)) from None


def _place(limit: Deadline) -> str:
    """Tell the path that was waiting: the innermost call that the end of the time cancelled."""
    return place_name(current_call()) if limit.waiting is None else limit.waiting


def note_waiting(where: CallFrame | str) -> None:
    """Tell that a cancellation reached a call, or a wait at a path: the first to tell names the place in the error."""
    record = ambient()
    limit = None if record is None else record.deadline
    if limit is not None and limit.waiting is None and limit.is_over:
        limit.waiting = place_name(where)


def keep_partial(partial: object) -> None:
    """Keep what was finished for the error of the deadline that is cancelling this code, if one is."""
    record = ambient()
    limit = None if record is None else record.deadline
    if limit is not None and limit.is_over:
        limit.partial = partial


def check_deadline(where: CallFrame | str, record: Ambient | None = None) -> None:
    """Refuse to begin something after the time is over.

    Args:
        where: The call, or the path, that would begin.
        record: What `ambient()` gives, where the caller has it at hand.

    Raises:
        DeadlineExceeded: A deadline that holds here is over.
    """
    record = record or ambient()
    limit = None if record is None else record.deadline
    if limit is not None and limit.is_over:
        raise limit.exceeded(place_name(where))


def time_left() -> float | None:
    """Tell how much of the nearest deadline is left.

    Returns:
        Seconds, zero when it is over, None without a deadline.

    Example:
        >>> time_left() is None
        True

    Source: Go's context deadlines.
    """
    record = ambient()
    return None if record is None or record.deadline is None else max(0.0, record.deadline.left())


def is_of_block_around(error: BaseException) -> bool:
    """Tell whether an error is that of a budget or deadline which holds here: not the fault of what raised it."""
    record = ambient()
    if record is None:
        return False
    if isinstance(error, BudgetExceeded):
        return any(error.account is account for account in record.budgets)
    return isinstance(error, DeadlineExceeded) and record.deadline is not None and record.deadline.is_over
