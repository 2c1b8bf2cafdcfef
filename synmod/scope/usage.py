"""What model calls used: the record, the meter that sums records, and the block that measures."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING

from synmod.scope.ambient import Entered, ambient, enter, leave, take_entry
from synmod.scope.phase import PHASES, check_phase

if TYPE_CHECKING:
    from synmod.scope.frame import CallFrame


@dataclass(frozen=True, slots=True)
class Usage:
    """What one model call, or a sum of them, used.

    Attributes:
        calls: Model calls.
        requests: Requests that were sent.
        prompt_tokens: Tokens read.
        completion_tokens: Tokens written.
        cached_tokens: Those of the prompt that the provider had in its cache.
        reasoning_tokens: Those of the completion that were reasoning.
        cost_usd: Cost in US dollars, None where no price is known; a sum holds what is known.
        estimated: Whether a part of it is estimated.

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

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.calls + other.calls,
            self.requests + other.requests,
            self.prompt_tokens + other.prompt_tokens,
            self.completion_tokens + other.completion_tokens,
            self.cached_tokens + other.cached_tokens,
            self.reasoning_tokens + other.reasoning_tokens,
            _cost_of_both(self, other),
            self.estimated or other.estimated,
        )


def _cost_of_both(one: Usage, other: Usage) -> float | None:
    """Sum what is known: None only where calls were made and no price of any is known."""
    costs = [usage.cost_usd for usage in (one, other) if usage.calls or usage.cost_usd]
    known = [cost for cost in costs if cost is not None]
    return sum(known) if known or not costs else None


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
        self._lock = threading.Lock()
        self._by_phase = dict.fromkeys(PHASES, Usage())

    def add(self, usage: Usage, phase: str) -> None:
        """Count a model call of a phase."""
        with self._lock:
            self._by_phase[phase] += usage

    def total(self) -> Usage:
        """Give the sum of all phases so far."""
        with self._lock:
            inference, reward, optimizer = self._by_phase.values()
        return inference + reward + optimizer

    def __getitem__(self, phase: str) -> Usage:
        """Give the sum of one phase.

        Raises:
            CallError: There is no such phase.
        """
        return self._by_phase[check_phase(phase)]

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


class track_usage:  # noqa: N801  # read as a word: `with sm.track_usage() as usage:`
    """Measure the model calls that begin in a block.

    Example:
        >>> with track_usage() as usage:
        ...     pass
        >>> usage.calls
        0

    Source: DSPy's usage tracker.
    """

    __slots__ = ("_entries",)

    def __init__(self) -> None:
        self._entries: list[Entered] = []

    def __enter__(self) -> UsageMeter:
        meter = UsageMeter()
        self._entries.append(enter("usages", meter))
        return meter

    def __exit__(self, *_: object) -> None:
        leave(take_entry(self._entries))


def open_meters(frame: CallFrame | None) -> tuple[UsageMeter, ...]:
    """Give the meters that a model call begun here counts into: take them at its begin, add to them at its end.

    Args:
        frame: The running module call; its run measures too.
    """
    record = ambient()
    blocks = () if record is None else record.usages
    return blocks if frame is None else (*blocks, frame.root.meter)


def add_usage(meters: tuple[UsageMeter, ...], usage: Usage, phase: str) -> None:
    """Count a finished model call into the meters that were open when it began."""
    for meter in meters:
        meter.add(usage, phase)


def count_usage(frame: CallFrame | None, usage: Usage, phase: str) -> None:
    """Count a model call that begins and ends here."""
    add_usage(open_meters(frame), usage, phase)
