"""How often the calls of one module ended, and how: one record per phase, exact under tasks and threads."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from synmod.scope.phase_names import PHASES, check_phase


@dataclass(frozen=True, slots=True)
class PhaseCounters:
    """The entry calls of one phase: those that returned or failed with their wall seconds, the failed, the cancelled.

    Failed calls are among the invocations, cancelled ones are not: what succeeded is invocations less failed.
    """

    invocations: int = 0
    elapsed_s: float = 0.0
    failed: int = 0
    cancelled: int = 0


class _Record:
    """The running counts of one phase."""

    __slots__ = ("cancelled", "elapsed_s", "failed", "invocations")

    def __init__(self) -> None:
        self.invocations = 0
        self.elapsed_s = 0.0
        self.failed = 0
        self.cancelled = 0


class _Tally:
    """A count that many threads may raise without a lock: `next` on a count is one step of the interpreter."""

    __slots__ = ("_lock", "_raised", "_read", "up")

    def __init__(self) -> None:
        raised = itertools.count()
        self._raised = raised
        self._read = 0
        self._lock = threading.RLock()
        self.up = raised.__next__

    def value(self) -> int:
        """Give the count: looking raises it too, so looks are counted and taken off."""
        with self._lock:
            looked = next(self._raised) - self._read
            self._read += 1
        return looked


class CallCounters:
    """What a module counts of its own calls; read-only for users.

    Entry calls cost one lock each, calls below another call none.

    Example:
        >>> counters = CallCounters()
        >>> counters.count_entry("reward", 0.5, failed=True)
        >>> counters.failed, counters["reward"].invocations, counters.invocations
        (1, 1, 1)

    Source: Synalinks' cumulated invocations; differs: records instead of attributes named by texts.
    """

    __slots__ = ("_by_phase", "_lock", "_methods", "_nested", "count_nested")

    def __init__(self) -> None:
        # May be taken again: clean-up of garbage closes coroutines anywhere, and their calls end then and there.
        self._lock = threading.RLock()
        self._by_phase: dict[str, _Record] = {}
        self._methods: dict[str, int] = {}
        self._nested = _Tally()
        self.count_nested = self._nested.up  # hot: called for each nested call that returned or failed

    def count_entry(self, phase: str, elapsed_s: float, *, failed: bool = False) -> None:
        """Count an entry call that returned or failed."""
        with self._lock:
            record = self._by_phase.get(phase) or self._by_phase.setdefault(phase, _Record())
            record.invocations += 1
            record.elapsed_s += elapsed_s
            if failed:
                record.failed += 1

    def count_cancelled(self, phase: str) -> None:
        """Count an entry call that was cancelled or closed."""
        with self._lock:
            (self._by_phase.get(phase) or self._by_phase.setdefault(phase, _Record())).cancelled += 1

    def count_method(self, name: str) -> None:
        """Count a call of a method that is an entry point of its own."""
        with self._lock:
            self._methods[name] = self._methods.get(name, 0) + 1

    def __getitem__(self, phase: str) -> PhaseCounters:
        """Give the record of one phase.

        Raises:
            CallError: There is no such phase.
        """
        check_phase(phase)
        with self._lock:
            return self._snapshot(phase)

    def _snapshot(self, phase: str) -> PhaseCounters:
        """Give the record of one phase as it is now; the lock is held."""
        record = self._by_phase.get(phase)
        if record is None:
            return _ZERO
        return PhaseCounters(record.invocations, record.elapsed_s, record.failed, record.cancelled)

    def total(self) -> PhaseCounters:
        """Give the sum of all phases, as of one moment."""
        with self._lock:
            records = [self._snapshot(phase) for phase in PHASES]
        return PhaseCounters(
            sum(record.invocations for record in records),
            sum(record.elapsed_s for record in records),
            sum(record.failed for record in records),
            sum(record.cancelled for record in records),
        )

    @property
    def invocations(self) -> int:
        """Entry calls that returned or failed."""
        return self.total().invocations

    @property
    def elapsed_s(self) -> float:
        """Their wall seconds."""
        return self.total().elapsed_s

    @property
    def failed(self) -> int:
        """Entry calls that failed."""
        return self.total().failed

    @property
    def cancelled(self) -> int:
        """Entry calls that were cancelled, or whose coroutine was closed."""
        return self.total().cancelled

    @property
    def nested(self) -> int:
        """Calls below another call that returned or failed."""
        return self._nested.value()

    @property
    def methods(self) -> Mapping[str, int]:
        """Calls of methods that are entry points of their own, by name."""
        return MappingProxyType(dict(self._methods))

    def __repr__(self) -> str:
        total = self.total()
        return (
            f"CallCounters(invocations={total.invocations}, failed={total.failed}, cancelled={total.cancelled}, "
            f"nested={self.nested}, elapsed_s={total.elapsed_s:.6f})"
        )


_ZERO = PhaseCounters()
