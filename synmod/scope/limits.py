"""What a block limits and sums: time (`sm.deadline`), money, tokens and calls (`sm.budget`), and usage."""

import math
import operator
import time
from collections.abc import Collection
from typing import Final, NamedTuple, Self

from synmod import errors, leaves

from .frame import Ambient, Block, CallFrame, ambient, current_call, place_name
from .usage import Usage, UsageMeter

# -- time --------------------------------------------------------------------------------------------------------------

_TICK_S: Final = time.get_clock_info("monotonic").resolution + 1e-6


class Deadline:
    """A point in time, on the clock that applied where its block was entered.

    Attributes:
        seconds: The time that the block allows.
        plain: Whether it was entered outside a task, so that it has no scope that cancels waiting code.
        scope: The scope that cancels the waiting code of the block, None for a plain or an endless deadline.
        waiting: Path of the call that was waiting when the time was over, None while none is noted.
        partial: The work that was finished when the time was over, for the error.
    """

    __slots__ = ("_clock", "_ends", "partial", "plain", "scope", "seconds", "waiting")

    def __init__(self, seconds: float, *, plain: bool) -> None:
        self.seconds = seconds
        self.plain = plain
        self.waiting: str | None = None
        self.partial: object = None
        self._clock: leaves.Clock = leaves.current_clock()
        self._ends = self._clock.now() + seconds
        self.scope = None if plain or math.isinf(seconds) else LimitedWait(self)

    def remaining(self) -> float:
        """Return the seconds until the deadline, negative afterwards; may be called from any thread."""
        return self._ends - self._clock.now()

    @property
    def is_over(self) -> bool:
        """Whether it has passed; a loop may wake its tasks one tick early."""
        return self.remaining() <= _TICK_S

    def error_at(self, where: str) -> errors.DeadlineExceeded:
        """Return the error; `where` is the path that was waiting, or that could not begin."""
        place = f"{where!r}" if where else "code outside module calls"
        error = errors.DeadlineExceeded(
            f"the deadline of {self.seconds:g} s passed in {place}. "
            "Allow more with sm.deadline(seconds), or do less inside."
        )
        error.partial = self.partial
        return error


class LimitedWait:
    """A `with` block in a task whose waiting code is cancelled at a deadline; it then raises `DeadlineExceeded`."""

    __slots__ = ("_limit", "_scope")

    def __init__(self, limit: Deadline) -> None:
        self._limit = limit
        self._scope = leaves.deadline_scope(limit.remaining())

    def __enter__(self) -> None:
        self._scope.__enter__()

    def __exit__(self, *failure: object) -> None:
        self._scope.__exit__(*failure)
        if self._scope.expired:
            where = place_name(current_call()) if self._limit.waiting is None else self._limit.waiting
            raise self._limit.error_at(where) from None


class deadline(Block):  # noqa: N801  # read as a word: `with sm.deadline(2):`
    """Limit the time of a block.

    In a task, code that waits in the block is cancelled when the time is over. Where no loop runs, each `sm.run` and
    entry call begun inside is limited alike; plain code is never interrupted. Of nested deadlines the earliest applies.

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

    @leaves.checks_keywords
    def __init__(self, seconds: float) -> None:
        super().__init__()
        self._seconds = float(leaves.check_number("deadline: seconds", seconds, 0))

    def __enter__(self) -> None:
        limit = Deadline(self._seconds, plain=not leaves.in_task())
        self.enter(deadline=limit)
        if limit.scope is not None:
            limit.scope.__enter__()

    def __exit__(self, *failure: object) -> None:
        limit: Deadline = self.entry().adds["deadline"]
        try:
            if limit.scope is not None:
                limit.scope.__exit__(*failure)
        finally:
            self.leave(keep=limit.is_over)


def plain_limit(record: Ambient | None) -> LimitedWait | None:
    """Return the block that an entry call, or the main code of `sm.run`, must run in; None in the common case.

    A deadline that was set outside any loop has no scope that cancels waiting code; this block is that scope, and
    raises `DeadlineExceeded`.

    Args:
        record: The open blocks, from `ambient()`.
    """
    limit: Deadline | None = None if record is None else record.deadline
    if limit is None or not limit.plain or math.isinf(limit.seconds) or not leaves.in_task():
        return None
    return LimitedWait(limit)


def note_waiting(where: CallFrame | str) -> None:
    """Note the call or path that a cancellation reached; the error names the first one."""
    limit: Deadline | None = ambient().deadline
    if limit is not None and limit.waiting is None and limit.is_over:
        limit.waiting = place_name(where)


def keep_partial(partial: object) -> None:
    """Keep finished work for the error of the deadline that is cancelling this code, if there is one."""
    limit: Deadline | None = ambient().deadline
    if limit is not None and limit.is_over:
        limit.partial = partial


def check_deadline(where: CallFrame | str, record: Ambient | None = None) -> None:
    """Raise if the time is over, before a call begins.

    Args:
        where: The call, or the path, that would begin.
        record: The open blocks, where the caller has them at hand.

    Raises:
        DeadlineExceeded: The deadline that applies here has passed.
    """
    limit: Deadline | None = (record or ambient()).deadline
    if limit is not None and limit.is_over:
        raise limit.error_at(place_name(where))


def time_left() -> float | None:
    """Return how much time is left until the nearest deadline.

    Returns:
        Seconds, zero when it is over, None without a deadline.

    Example:
        >>> time_left() is None
        True

    Source: Go's context deadlines.
    """
    limit: Deadline | None = ambient().deadline
    return None if limit is None else max(0.0, limit.remaining())


def is_from_enclosing_limit(error: BaseException) -> bool:
    """Whether an error comes from a budget or deadline that applies here, not from the code that raised it."""
    record = ambient()
    if isinstance(error, errors.BudgetExceeded):
        return any(error.account is account for account in record.budgets)
    return isinstance(error, errors.DeadlineExceeded) and record.deadline is not None and record.deadline.is_over


# -- money, tokens and calls -------------------------------------------------------------------------------------------

_ROUNDING: Final = 1e-12  # sums of dollars are floats: ten times 0.1 must fit into 1


class Spent(NamedTuple):
    """Model calls, tokens, dollars, and runs of tools by agents."""

    calls: int = 0
    tokens: int = 0
    cost_usd: float = 0.0
    tool_calls: int = 0

    def __add__(self, more: "Spent") -> "Spent":  # pyright: ignore[reportIncompatibleMethodOverride]  (a sum)
        return Spent._make(map(operator.add, self, more))

    def __sub__(self, less: "Spent") -> "Spent":
        return Spent._make(map(operator.sub, self, less))


_LOCK: Final = leaves.aio.lock()
"""Held while budgets are read or changed: a request reserves in all that enclose it, or in none. Re-entrant, since the
collector may close a coroutine in here, which ends a request."""


class Account:
    """What one budget block allows and has spent; reservations are counted separately until they are settled.

    Attributes:
        limits: The given limits, by name.
        settled: The sum that was actually spent.
        reserved: The sum for requests under way.
    """

    __slots__ = ("limits", "reserved", "settled")

    def __init__(self, limits: dict[str, float]) -> None:
        self.limits = limits
        self.settled = self.reserved = Spent()

    @property
    def used(self) -> Spent:
        """What was spent so far, including what is reserved for requests under way."""
        with _LOCK:
            return self.settled + self.reserved

    def refusal(self, request: Spent) -> str | None:
        """Return a text about the first limit without room, None if all have room."""
        for name, limit in self.limits.items():
            used, more = getattr(self.used, name), getattr(request, name)
            if used + more > limit * (1 + _ROUNDING):
                return f"the budget allows {name}={limit:g}; {used:g} used, {more:g} more needed"
        return None

    def __repr__(self) -> str:
        return f"Account({self.limits}, used={self.used})"


class Reservation:
    """Room in all enclosing budgets for one request under way: settle it with the usage, or release it.

    Only the first call of either has an effect. A context manager that releases it on leaving if neither was called.
    """

    __slots__ = ("_accounts", "_reserved")

    def __init__(self, accounts: tuple[Account, ...], reserved: Spent) -> None:
        self._accounts = accounts
        self._reserved = reserved

    def settle(self, usage: Usage) -> None:
        """Spend what a request used: the reserved calls, its tokens, and its cost if that is known."""
        tokens = usage.prompt_tokens + usage.completion_tokens
        self._close(Spent(self._reserved.calls, tokens, usage.cost_usd or 0.0, self._reserved.tool_calls))

    def release(self) -> None:
        """Give the reservation back: nothing was spent."""
        self._close(Spent())

    def _close(self, spent: Spent) -> None:
        """Replace the reservation with what was actually spent, once."""
        with _LOCK:
            accounts, self._accounts = self._accounts, ()
            for account in accounts:
                account.reserved -= self._reserved
                account.settled += spent

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()


class budget(Block):  # noqa: N801  # read as a word: `with sm.budget(calls=10) as budget:`
    """Limit what the model calls of a block may spend, and how many tools its agents run.

    A call reserves what it needs before its request is sent, so that concurrent calls cannot overdraw together; all
    enclosing budgets must have room.

    Args:
        calls: Model calls.
        tokens: Tokens, of prompts and completions.
        cost_usd: US dollars.
        tool_calls: Runs of tools by agents.

    Raises:
        ArgumentError: No limit is given, or one is negative, not a number, or a fraction of a call or token.
        BudgetExceeded: A model call, or the tools that one reply calls, have no room (where they begin); names limit,
            used and path.

    Example:
        >>> with budget(calls=10) as spending:
        ...     spending.used.calls
        0

    Source: cloud quotas; differs: reserve and settle, so that nothing is overdrawn in flight.
    """

    @leaves.checks_keywords
    def __init__(
        self,
        calls: int | None = None,
        tokens: int | None = None,
        cost_usd: float | None = None,
        tool_calls: int | None = None,
    ) -> None:
        super().__init__()
        limits = {"calls": calls, "tokens": tokens, "cost_usd": cost_usd, "tool_calls": tool_calls}
        self._limits = {name: _limit(name, value) for name, value in limits.items() if value is not None}
        if not self._limits:
            raise errors.ArgumentError("budget() got no limit: give calls=, tokens=, cost_usd= or tool_calls=.")

    def __enter__(self) -> Account:
        account = Account(self._limits)
        self.enter(budgets=account)
        return account


def _limit(name: str, value: object) -> float:
    """Return one limit, checked."""
    check = leaves.check_number if name == "cost_usd" else leaves.check_int
    return check(f"budget: {name}", value, 0)


def reserve(
    calls: int = 1, tokens: int = 0, cost_usd: float = 0.0, *, tool_calls: int = 0, where: str = ""
) -> Reservation:
    """Reserve room for a request in all budgets that enclose it, or in none.

    Args:
        calls: Model calls; a request that continues a counted call takes 0.
        tokens: The most tokens that it may use, as far as known.
        cost_usd: The most dollars that it may cost, as far as known.
        tool_calls: Runs of tools.
        where: Path for the error; the running call's if left out.

    Returns:
        A reservation, to be settled or released.

    Raises:
        BudgetExceeded: A budget has no room; nothing is reserved. `.account` is the account of that budget.

    Example:
        >>> reserve().release()

    Source: two-phase accounting.
    """
    return _reserve(ambient().budgets, Spent(calls, tokens, cost_usd, tool_calls), where)


def _reserve(accounts: tuple[Account, ...], request: Spent, where: str) -> Reservation:
    """Reserve room for a request in all of these budgets, or in none."""
    with _LOCK:
        for account in reversed(accounts):
            if refusal := account.refusal(request):
                place = place_name(where) or "outside module calls"
                error = errors.BudgetExceeded(f"{place}: {refusal}. Raise the limit in sm.budget(...).")
                error.account = account
                raise error
        for account in accounts:
            account.reserved += request
    return Reservation(accounts, request)


def count_paid(usage: Usage, outer: Collection[Account], where: str = "") -> None:
    """Count a model call that an earlier process has paid for, as if it was made here.

    Args:
        usage: The usage of the call.
        outer: The budgets that do not count it, since they were opened around the durable block.
        where: Path for the error.

    Raises:
        BudgetExceeded: A budget has no room for one more call.
    """
    inner = tuple([account for account in ambient().budgets if account not in outer])
    if inner:
        _reserve(inner, Spent(usage.calls), where).settle(usage)


# -- usage -------------------------------------------------------------------------------------------------------------


class track_usage(Block):  # noqa: N801  # read as a word: `with sm.track_usage() as usage:`
    """Measure the model calls that begin in a block.

    Example:
        >>> with track_usage() as usage:
        ...     pass
        >>> usage.calls
        0

    Source: DSPy's usage tracker.
    """

    def __enter__(self) -> UsageMeter:
        meter = UsageMeter()
        self.enter(usages=meter)
        return meter


def open_meters(frame: CallFrame | None) -> tuple[UsageMeter, ...]:
    """Return the meters for a model call that begins here: get them when it begins, add to them when it ends.

    Args:
        frame: The running module call, whose run has a meter too.
    """
    of_blocks: tuple[UsageMeter, ...] = ambient().usages
    return of_blocks if frame is None else (*of_blocks, frame.run.meter)
