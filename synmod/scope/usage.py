"""Usage of model calls, counts of calls of models and modules: frozen records, and their running sums per phase."""

from __future__ import annotations

import itertools
import threading
from dataclasses import dataclass, fields
from operator import add
from typing import Any, Final, Generic, NamedTuple, Protocol, Self, TypeVar

from synmod import errors
from synmod.leaves import check_choice

PHASES: Final = ("inference", "reward", "optimizer")


def check_phase(name: object) -> str:
    """Return `name` if it is a phase.

    Raises:
        CallError: It is not.
    """
    return check_choice("phase", str(name), PHASES, error=errors.CallError)


class _Summed(Protocol):
    """A record that can be added to others of its class."""

    def __add__(self, more: Self, /) -> Self: ...


R = TypeVar("R", bound=_Summed)


@dataclass(frozen=True)
class Usage:
    """What one model call, or a sum of them, used.

    Attributes:
        calls: Model calls.
        requests: Requests that were sent.
        prompt_tokens: Tokens read.
        completion_tokens: Tokens written.
        cached_tokens: Prompt tokens that the provider read from its cache.
        reasoning_tokens: Completion tokens that were reasoning.
        cost_usd: Cost in US dollars, None where no price is known; a sum adds the known costs.
        estimated: Whether a part of it is estimated.
        cache_write_tokens: Prompt tokens that the provider wrote to its cache.

    Example:
        >>> (Usage(calls=1, prompt_tokens=3) + Usage(calls=1, prompt_tokens=4)).prompt_tokens
        7

    Source: chat-completions usage.
    """

    calls: int = 0
    requests: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_tokens: int = 0
    reasoning_tokens: int = 0
    cost_usd: float | None = 0.0
    estimated: bool = False
    cache_write_tokens: int = 0

    def __add__(self, more: Usage) -> Usage:
        costs = [usage.cost_usd for usage in (self, more) if usage.calls or usage.cost_usd]
        priced = [cost for cost in costs if cost is not None]
        cost = None if costs and not priced else sum(priced, 0.0)  # None where calls were made, and no price is known
        sums = {name: getattr(self, name) + getattr(more, name) for name in _COUNTS}
        return Usage(**sums, cost_usd=cost, estimated=self.estimated or more.estimated)


_COUNTS: Final = {field.name for field in fields(Usage)} - {"cost_usd", "estimated"}
NO_USAGE: Final = Usage()


class PerPhase(Generic[R]):
    """Running sums of frozen records, one per phase, exact under any number of tasks and threads.

    `sums["reward"]` is the sum of one phase; an attribute is that field of the sum of all three.

    Source: Synalinks' cumulated counters; differs: one record per phase, not one attribute per phase and count.
    """

    __slots__ = ("_by_phase", "_lock", "_zero")

    def __init__(self, zero: R) -> None:
        self._lock = threading.RLock()  # re-entrant: the collector may close a coroutine in here, which ends a call
        self._zero = zero
        self._by_phase: dict[str, R] = {}

    def add(self, record: R, phase: str) -> None:
        """Add a record to the sum of a phase."""
        with self._lock:
            total = self._by_phase.get(phase)
            self._by_phase[phase] = record if total is None else total + record

    def total(self) -> R:
        """Return the sum of all phases at one moment."""
        return sum(list(self._by_phase.values()), self._zero)

    def __getitem__(self, phase: str) -> R:
        """Return the sum of one phase.

        Raises:
            CallError: The phase is unknown.
        """
        return self._by_phase.get(check_phase(phase), self._zero)

    def __getattr__(self, name: str) -> Any:
        """Return one field of the sum of all phases."""
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self.total(), name)

    def __repr__(self) -> str:
        return repr(self.total()).replace(type(self._zero).__name__, type(self).__name__, 1)


class UsageMeter(PerPhase[Usage]):
    """A running sum of usage with the fields of `Usage`.

    Example:
        >>> meter = UsageMeter()
        >>> meter.add(Usage(calls=1), "reward")
        >>> meter.calls, meter["reward"].calls, meter["inference"].calls
        (1, 1, 0)
    """

    __slots__ = ()
    calls: int
    requests: int
    prompt_tokens: int
    completion_tokens: int
    cached_tokens: int
    reasoning_tokens: int
    cost_usd: float | None
    estimated: bool
    cache_write_tokens: int

    def __init__(self) -> None:
        super().__init__(NO_USAGE)


# -- calls of a model --------------------------------------------------------------------------------------------------


class ModelCounts(NamedTuple):
    """The totals of the calls of one model, in one phase or in all.

    Attributes:
        calls: Calls that returned or raised.
        requests: Requests sent, including those of cancelled calls.
        failed_calls: Calls that raised.
        cached_calls: Calls that needed no request.
        unpriced_calls: Calls whose price is unknown.
        cancelled: Cancelled calls; they add only their `requests`, and the usage of a stream that had begun.
        prompt_tokens: Tokens sent.
        completion_tokens: Tokens received.
        cost_usd: The cost of the priced calls.
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

    def __add__(self, other: ModelCounts) -> ModelCounts:  # pyright: ignore[reportIncompatibleMethodOverride]  (a sum)
        return ModelCounts._make(map(add, self, other))


class ModelCounters(PerPhase[ModelCounts]):
    """The counters of one model: `counters["reward"]` is one phase, an attribute is the sum of the three."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__(ModelCounts())

    def count(self, phase: str, usage: Usage, *, failed: bool, cached: bool = False) -> None:
        """Count one call at its end."""
        kinds = int(failed), int(cached), int(usage.cost_usd is None)
        tokens = usage.prompt_tokens, usage.completion_tokens
        self.add(ModelCounts(1, usage.requests, *kinds, 0, *tokens, usage.cost_usd or 0.0), phase)

    def count_cancelled(self, phase: str, requests: int, partial_usage: Usage = NO_USAGE) -> None:
        """Count one cancelled call, and the usage of a stream that had begun."""
        usage = partial_usage
        tokens = {"prompt_tokens": usage.prompt_tokens, "completion_tokens": usage.completion_tokens}
        self.add(ModelCounts(cancelled=1, requests=requests, **tokens, cost_usd=usage.cost_usd or 0.0), phase)

    def read(self, phase: str | None, name: str) -> int | float:
        """Return one field, of one phase or summed over all."""
        return getattr(self.total() if phase is None else self[phase], name)


# -- entry calls -------------------------------------------------------------------------------------------------------


class PhaseCounters(NamedTuple):
    """The entry calls of one phase.

    Attributes:
        invocations: Those that returned or failed; `invocations - failed` succeeded.
        elapsed_s: Their wall seconds.
        failed: Those that failed.
        cancelled: Those that were cancelled or closed; they are not counted as invocations.
    """

    invocations: int = 0
    elapsed_s: float = 0.0
    failed: int = 0
    cancelled: int = 0

    def __add__(self, more: PhaseCounters) -> PhaseCounters:  # pyright: ignore[reportIncompatibleMethodOverride]  (a sum)
        return PhaseCounters._make(map(add, self, more))


_NO_CALLS: Final = PhaseCounters()


class CallCounters(PerPhase[PhaseCounters]):
    """What a module counts of its own calls; read-only for users.

    Entry calls cost one lock each, calls below another call none.

    Attributes:
        invocations, elapsed_s, failed, cancelled: Sums over all phases; `counters["reward"]` has those of one phase.

    Example:
        >>> counters = CallCounters()
        >>> counters.count_entry("reward", 0.5, failed=True)
        >>> counters.failed, counters["reward"].invocations, counters.invocations
        (1, 1, 1)
    """

    __slots__ = ("nested_calls",)
    invocations: int
    elapsed_s: float
    failed: int
    cancelled: int

    def __init__(self) -> None:
        super().__init__(_NO_CALLS)
        self.nested_calls = itertools.count()  # advanced by each nested call: hot, and atomic, so it needs no lock

    def count_entry(self, phase: str, elapsed_s: float, *, failed: bool = False) -> None:
        """Count an entry call that returned or failed."""
        self.add(PhaseCounters(1, elapsed_s, int(failed)), phase)

    def count_cancelled(self, phase: str) -> None:
        """Count an entry call that was cancelled or closed."""
        self.add(PhaseCounters(cancelled=1), phase)

    @property
    def nested(self) -> int:
        """Calls below another call that returned or failed."""
        return int(repr(self.nested_calls)[len("count(") : -1])  # the only way to read it without advancing it

    def __repr__(self) -> str:
        return f"{super().__repr__()[:-1]}, nested={self.nested})"
