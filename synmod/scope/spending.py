"""What a budget allows, what is spent of it, and reservations that cannot overdraw it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Self

from synmod.errors import BudgetExceeded
from synmod.scope.usage_record import Usage


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
    """

    __slots__ = ("_held", "_used", "limits", "lock")

    def __init__(self, limits: dict[str, float]) -> None:
        self.limits = limits
        # May be taken again: clean-up of garbage closes coroutines anywhere, and their calls end then and there.
        self.lock = threading.RLock()
        self._used = Spent()
        self._held = Spent()

    @property
    def used(self) -> Spent:
        """What was spent so far, what is reserved for requests under way included."""
        with self.lock:
            return self._used + self._held

    def refusal(self, wanted: Spent) -> str | None:
        """Tell which limit has no room, None if all have; the lock is held."""
        after = self._used + self._held
        for name, limit in self.limits.items():
            taken, more = getattr(after, name), getattr(wanted, name)
            if taken + more > limit * (1 + _ROUNDING):
                return f"the budget allows {name}={limit:g}; used are {taken:g}, needed {more:g} more"
        return None

    def hold(self, wanted: Spent) -> None:
        """Reserve; the lock is held."""
        self._change("_held", lambda held: held + wanted)

    def settle(self, held: Spent, spent: Spent) -> None:
        """Put what was really spent in place of a reservation."""
        with self.lock:
            self._change("_held", lambda before: before - held)
            self._change("_used", lambda before: before + spent)

    def _change(self, name: str, changed: Callable[[Spent], Spent]) -> None:
        """Change one of the sums, once more where a request has ended in between; the lock is held."""
        while True:
            before: Spent = getattr(self, name)
            after = changed(before)
            if getattr(self, name) is before:
                setattr(self, name, after)
                return

    def __repr__(self) -> str:
        return f"Account({self.limits}, used={self.used})"


_ROUNDING = 1e-12  # sums of dollars are floats: ten times 0.1 must fit into 1


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


def reserve_in(accounts: Sequence[Account], wanted: Spent, where: str) -> Reservation:
    """Reserve in all accounts or in none.

    Raises:
        BudgetExceeded: One of them has no room.
    """
    distinct = {id(account): account for account in accounts}
    ordered = [distinct[key] for key in sorted(distinct)]  # one order everywhere, so that no two wait for each other
    with ExitStack() as locks:
        for account in ordered:
            locks.enter_context(account.lock)
        for account in reversed(accounts):
            refusal = account.refusal(wanted)
            if refusal is not None:
                error = BudgetExceeded(f"{where or 'outside module calls'}: {refusal}. Raise it in sm.budget(...).")
                error.account = account  # who stands around several budgets asks whose it was
                raise error
        for account in ordered:
            account.hold(wanted)
    return Reservation(ordered, wanted)
