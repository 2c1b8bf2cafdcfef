"""The running sum of what model calls use, one record per phase."""

from __future__ import annotations

import threading
from typing import Final

from synmod.scope.phase_names import PHASES, check_phase
from synmod.scope.usage_record import Usage

_NOTHING: Final = Usage()


class UsageMeter:
    """A running sum of usage with the fields of `Usage`, exact under any number of tasks and threads.

    Example:
        >>> meter = UsageMeter()
        >>> meter.add(Usage(calls=1), "reward")
        >>> meter.calls, meter["reward"].calls, meter["inference"].calls
        (1, 1, 0)

    Source: Synalinks' cumulated counters; differs: one record per phase, not names made from texts.
    """

    __slots__ = ("_by_phase", "_lock")

    def __init__(self) -> None:
        # May be taken again: clean-up of garbage closes coroutines anywhere, and their calls end then and there.
        self._lock = threading.RLock()
        self._by_phase: dict[str, Usage] = {}

    def add(self, usage: Usage, phase: str) -> None:
        """Count a model call of a phase."""
        with self._lock:
            while True:
                known = self._by_phase.get(phase, _NOTHING)
                new = usage if known is _NOTHING and usage.calls else known + usage
                if self._by_phase.get(phase, _NOTHING) is known:  # else one has ended in between
                    self._by_phase[phase] = new
                    return

    def total(self) -> Usage:
        """Give the sum of all phases so far."""
        with self._lock:
            known = [self._by_phase[phase] for phase in PHASES if phase in self._by_phase]
        return sum(known, _NOTHING)

    def __getitem__(self, phase: str) -> Usage:
        """Give the sum of one phase.

        Raises:
            CallError: There is no such phase.
        """
        return self._by_phase.get(check_phase(phase), _NOTHING)

    @property
    def calls(self) -> int:
        """Model calls."""
        return self.total().calls

    @property
    def requests(self) -> int:
        """Requests that were sent."""
        return self.total().requests

    @property
    def prompt_tokens(self) -> int:
        """Tokens read."""
        return self.total().prompt_tokens

    @property
    def completion_tokens(self) -> int:
        """Tokens written."""
        return self.total().completion_tokens

    @property
    def cached_tokens(self) -> int:
        """Tokens that providers had in their caches."""
        return self.total().cached_tokens

    @property
    def reasoning_tokens(self) -> int:
        """Tokens of reasoning."""
        return self.total().reasoning_tokens

    @property
    def cost_usd(self) -> float | None:
        """Cost as far as prices are known."""
        return self.total().cost_usd

    @property
    def estimated(self) -> bool:
        """Whether a part is estimated."""
        return self.total().estimated

    def __repr__(self) -> str:
        return repr(self.total()).replace("Usage", "UsageMeter", 1)
