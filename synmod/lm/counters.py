"""Counters of a model: one typed record per phase, exact under any number of tasks, loops and threads."""

from __future__ import annotations

import threading
from dataclasses import dataclass, fields
from math import fsum
from typing import Final

from synmod.leaves.exact_sum import Parts, added, total
from synmod.leaves.names import did_you_mean
from synmod.scope import PHASES, Usage, check_phase

__all__ = ["ModelCounters", "PhaseCounters"]


@dataclass(slots=True)
class PhaseCounters:
    """What the calls of one phase came to.

    Attributes:
        calls: Calls that ended, well or not.
        requests: Requests sent, those of cancelled calls too.
        failed_calls: Calls that raised.
        cached_calls: Calls that needed no request.
        unpriced_calls: Calls whose price nobody knows.
        cancelled: Calls that were cancelled; they move nothing else but `requests`.
        prompt_tokens: Tokens sent.
        completion_tokens: Tokens received.
        cost_usd: What the priced calls cost.
    """

    calls: int = 0
    requests: int = 0
    failed_calls: int = 0
    cached_calls: int = 0
    unpriced_calls: int = 0
    cancelled: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost_usd: float = 0.0


_FIELDS: Final = tuple(field.name for field in fields(PhaseCounters))

ATTRIBUTES: Final = {
    f"{prefix}cumulated_{name}": (phase, name)
    for prefix, phase in (("", None), *((f"{phase}_", phase) for phase in PHASES))
    for name in _FIELDS
    if name != "cancelled"
}
"""Attribute of a LanguageModel -> (phase or None for all, field)."""


class ModelCounters:
    """The counters of one model: `counters["reward"]` is one phase, an attribute is the sum of the three.

    Source: Synalinks' per-phase counters; differs: one record per phase, behind one lock.
    """

    __slots__ = ("_costs", "_lock", "_phases")

    def __init__(self) -> None:
        # May be taken again: clean-up of garbage closes coroutines anywhere, and their calls end then and there.
        self._lock = threading.RLock()
        self._phases = {phase: PhaseCounters() for phase in PHASES}
        self._costs: dict[str, Parts] = dict.fromkeys(PHASES, ())  # exact, whatever ends first

    def __getitem__(self, phase: str) -> PhaseCounters:
        """Give a copy of the record of one phase.

        Raises:
            CallError: There is no such phase ('Did you mean').
        """
        with self._lock:
            record = self._phases[check_phase(phase)]
            return PhaseCounters(*[getattr(record, name) for name in _FIELDS])

    def __getattr__(self, name: str) -> int | float:
        """Sum one field over the phases."""
        if name in _FIELDS:
            return self.read(None, name)
        raise AttributeError(f"There is no counter {name!r}.{did_you_mean(name, _FIELDS)}")

    def read(self, phase: str | None, name: str) -> int | float:
        """Read one field, of one phase or of all."""
        with self._lock:
            if phase is not None:
                return getattr(self._phases[phase], name)
            if name == "cost_usd":
                return fsum(part for parts in self._costs.values() for part in parts)
            return sum(getattr(record, name) for record in self._phases.values())

    def count(self, phase: str, usage: Usage, *, failed: bool) -> None:
        """Count one call at its end."""
        with self._lock:
            record = self._phases[phase]
            record.calls += 1
            record.requests += usage.requests
            record.prompt_tokens += usage.prompt_tokens
            record.completion_tokens += usage.completion_tokens
            record.cost_usd += usage.cost_usd or 0.0
            if usage.cost_usd:
                self._costs[phase] = added(self._costs[phase], usage.cost_usd)
                record.cost_usd = total(self._costs[phase])
            if failed:
                record.failed_calls += 1
            if usage.cost_usd is None:
                record.unpriced_calls += 1

    def count_cancelled(self, phase: str, requests: int) -> None:
        """Count one call that was cancelled."""
        with self._lock:
            record = self._phases[phase]
            record.cancelled += 1
            record.requests += requests

    def __repr__(self) -> str:
        return "ModelCounters(" + ", ".join(f"{name}={self.read(None, name)}" for name in _FIELDS) + ")"
