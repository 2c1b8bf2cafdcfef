"""Budgets: `sm.budget`, and reservations that cannot overdraw what it allows."""

from __future__ import annotations

import math
import threading
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from numbers import Real
from typing import Final, Self, cast

from synmod.errors import ArgumentError, BudgetExceeded

from .ambient import Block, ambient
from .frame import place_name
from .usage import Usage

_ROUNDING: Final = 1e-12  # sums of dollars are floats: ten times 0.1 must fit into 1


@dataclass(frozen=True, slots=True)
class Spent:
    """Model calls, tokens and dollars."""

    calls: int = 0
    tokens: int = 0
    cost_usd: float = 0.0

    def __add__(self, other: Spent) -> Spent:
        return Spent(self.calls + other.calls, self.tokens + other.tokens, self.cost_usd + other.cost_usd)

    def __sub__(self, other: Spent) -> Spent:
        return Spent(self.calls - other.calls, self.tokens - other.tokens, self.cost_usd - other.cost_usd)


class Account:
    """What one budget block allows and has spent; reservations are held apart until they are settled.

    Attributes:
        limits: The limits that were given, by name.
        lock: Re-entrant, since the collector may close a coroutine, whose request ends, while it is held.
    """

    __slots__ = ("_held", "_used", "limits", "lock")

    def __init__(self, limits: dict[str, float]) -> None:
        self.limits = limits
        self.lock = threading.RLock()
        self._used = Spent()
        self._held = Spent()

    @property
    def used(self) -> Spent:
        """What was spent so far, what is reserved for requests under way included."""
        with self.lock:
            return self._used + self._held

    def refusal(self, wanted: Spent) -> str | None:
        """Return which limit has no room, None if all have; the lock is held."""
        after = self._used + self._held
        for name, limit in self.limits.items():
            taken, more = getattr(after, name), getattr(wanted, name)
            if taken + more > limit * (1 + _ROUNDING):
                return f"the budget allows {name}={limit:g}; used are {taken:g}, needed {more:g} more"
        return None

    def hold(self, wanted: Spent) -> None:
        """Reserve; the lock is held."""
        self._held = self._held + wanted

    def settle(self, held: Spent, spent: Spent) -> None:
        """Put what was really spent in place of a reservation."""
        with self.lock:
            self._held = self._held - held
            self._used = self._used + spent

    def __repr__(self) -> str:
        return f"Account({self.limits}, used={self.used})"


class Reservation:
    """Room in all enclosing budgets for one request under way: settle it with what came, or release it.

    Both may be called once; what comes later does nothing. As a context manager it is released where it was left open.
    """

    __slots__ = ("_accounts", "_held", "_open")

    def __init__(self, accounts: Sequence[Account], held: Spent) -> None:
        self._accounts = accounts
        self._held = held
        self._open = True

    def settle(self, usage: Usage) -> None:
        """Spend what a request used: the reserved calls, its tokens, its cost where it is known."""
        tokens = usage.prompt_tokens + usage.completion_tokens
        self._close(Spent(self._held.calls, tokens, usage.cost_usd or 0.0))

    def release(self) -> None:
        """Give everything back: nothing was spent."""
        self._close(Spent())

    def _close(self, spent: Spent) -> None:
        """Settle all accounts, once."""
        if self._open:
            self._open = False
            for account in self._accounts:
                account.settle(self._held, spent)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()


class budget(Block):  # noqa: N801  # read as a word: `with sm.budget(calls=10) as budget:`
    """Limit what the model calls of a block may spend.

    What a call needs is reserved before its request leaves, so that calls under way cannot overdraw together; all
    enclosing budgets must have room.

    Args:
        calls: Model calls.
        tokens: Tokens, of prompts and completions.
        cost_usd: US dollars.

    Raises:
        ArgumentError: No limit is given, or one is negative, not a number, or a fraction of a call or token.
        BudgetExceeded: A model call has no room (where it begins); names limit, used and path.

    Example:
        >>> with budget(calls=10) as spending:
        ...     spending.used.calls
        0

    Source: cloud quotas; differs: reserve and settle, so that nothing is overdrawn in flight.
    """

    field = "budgets"

    def __init__(self, calls: int | None = None, tokens: int | None = None, cost_usd: float | None = None) -> None:
        super().__init__()
        given = {"calls": calls, "tokens": tokens, "cost_usd": cost_usd}
        self._limits = {name: _limit(name, value) for name, value in given.items() if value is not None}
        if not self._limits:
            raise ArgumentError("budget() got no limit: give calls=, tokens= or cost_usd=.")

    def __enter__(self) -> Account:
        account = Account(self._limits)
        self.enter(account)
        return account


def _limit(name: str, value: object) -> float:
    """Return one limit, checked."""
    whole = name != "cost_usd"
    is_number = isinstance(value, int if whole else Real) and not isinstance(value, bool)
    if not is_number or not 0 <= cast("float", value) < math.inf:
        raise ArgumentError(
            f"budget got {name}={value!r}: write {'a whole number' if whole else 'a number'}, zero or more."
        )
    return cast("float", value)


def reserve(calls: int = 1, tokens: int = 0, cost_usd: float = 0.0, *, where: str = "") -> Reservation:
    """Reserve room for a request in all budgets that enclose it, or in none.

    Args:
        calls: Model calls; a request that continues a counted call takes 0.
        tokens: Tokens that it may use at most, as far as known.
        cost_usd: Dollars that it may cost at most, as far as known.
        where: Path for the error; the running call's where left out.

    Returns:
        A reservation, to be settled or released.

    Raises:
        BudgetExceeded: A budget has no room; nothing is reserved. `.account` is that of the budget.

    Example:
        >>> reserve().release()

    Source: two-phase accounting.
    """
    record, wanted = ambient(), Spent(calls, tokens, cost_usd)
    accounts: tuple[Account, ...] = () if record is None else record.budgets
    distinct = {id(account): account for account in accounts}
    ordered = [distinct[key] for key in sorted(distinct)]  # one order everywhere, so that no two wait for each other
    with ExitStack() as locks:
        for account in ordered:
            locks.enter_context(account.lock)
        for account in reversed(accounts):
            refusal = account.refusal(wanted)
            if refusal is not None:
                place = place_name(where) or "outside module calls"
                error = BudgetExceeded(f"{place}: {refusal}. Raise it in sm.budget(...).")
                error.account = account
                raise error
        for account in ordered:
            account.hold(wanted)
    return Reservation(ordered, wanted)


def cost_is_limited() -> bool:
    """Whether a budget of dollars holds here, under which a model without a known price cannot be called."""
    record = ambient()
    return record is not None and any("cost_usd" in account.limits for account in record.budgets)
