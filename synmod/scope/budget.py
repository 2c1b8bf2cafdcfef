"""Budgets: `sm.budget`, and reserving in all that enclose a model call."""

from __future__ import annotations

import math
from numbers import Real

from synmod.errors import ArgumentError
from synmod.scope.ambient import Entered, ambient, enter, leave, take_entry
from synmod.scope.frame import place_name
from synmod.scope.spending import Account, Reservation, Spent, reserve_in


class budget:  # noqa: N801  # read as a word: `with sm.budget(calls=10) as budget:`
    """Limit what the model calls of a block may spend.

    What a call needs is reserved before its request leaves, so that calls under way cannot overdraw together; all
    enclosing budgets must have room.

    Args:
        calls: Model calls.
        tokens: Tokens, of prompts and completions.
        cost_usd: US dollars.

    Raises:
        ArgumentError: No limit is given, or one is negative, no number, or a share of a call or token.
        BudgetExceeded: A model call has no room (where it begins); names limit, used and path.

    Example:
        >>> with budget(calls=10) as spending:
        ...     spending.used.calls
        0

    Source: cloud quotas; differs: reserve and settle, so that nothing is overdrawn in flight.
    """

    __slots__ = ("_entries", "_limits")

    def __init__(self, calls: int | None = None, tokens: int | None = None, cost_usd: float | None = None) -> None:
        given = {"calls": calls, "tokens": tokens, "cost_usd": cost_usd}
        self._limits = {name: _limit(name, value) for name, value in given.items() if value is not None}
        if not self._limits:
            raise ArgumentError("budget() got no limit: give calls=, tokens= or cost_usd=.")
        self._entries: list[Entered] = []

    def __enter__(self) -> Account:
        account = Account(self._limits)
        self._entries.append(enter("budgets", account))
        return account

    def __exit__(self, *_: object) -> None:
        leave(take_entry(self._entries, lambda entry: entry.record))


def _limit(name: str, value: object) -> float:
    """Check one limit."""
    whole = name != "cost_usd"
    right = isinstance(value, int if whole else Real) and not isinstance(value, bool)
    if not right or not (0 <= value < math.inf):  # type: ignore[operator]  # `right` says that it is a number
        raise ArgumentError(
            f"budget got {name}={value!r}: write {'a whole number' if whole else 'a number'}, zero or more."
        )
    return value  # type: ignore[return-value]


def reserve(calls: int = 1, tokens: int = 0, cost_usd: float = 0.0, *, where: str = "") -> Reservation:
    """Reserve room for a request in all budgets that enclose it.

    Args:
        calls: Model calls; a request that continues a counted call takes 0.
        tokens: Tokens that it may use at most, as far as known.
        cost_usd: Dollars that it may cost at most, as far as known.
        where: Path for the error; the running call's where left out.

    Returns:
        A reservation, to be settled or released.

    Raises:
        BudgetExceeded: A budget has no room; nothing is reserved.

    Example:
        >>> reserve().release()

    Source: two-phase accounting.
    """
    record = ambient()
    accounts = () if record is None else record.budgets
    return reserve_in(accounts, Spent(calls, tokens, cost_usd), place_name(where))


def cost_is_limited() -> bool:
    """Tell whether a budget of dollars holds here, under which a model without a known price cannot be called."""
    record = ambient()
    return record is not None and any("cost_usd" in account.limits for account in record.budgets)
