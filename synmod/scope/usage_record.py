"""What model calls used: one frozen record, and how records add up."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from synmod.leaves.exact_sum import added, total

if TYPE_CHECKING:
    from synmod.leaves.exact_sum import Parts


@dataclass(frozen=True, init=False)
class Usage:
    """What one model call, or a sum of them, used. Sums are exact: those of the same calls are equal in any order.

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

    calls: int
    requests: int
    prompt_tokens: int
    completion_tokens: int
    cached_tokens: int
    reasoning_tokens: int
    cost_usd: float | None
    estimated: bool

    def __init__(
        self,
        calls: int = 0,
        requests: int = 0,
        prompt_tokens: int = 0,
        completion_tokens: int = 0,
        cached_tokens: int = 0,
        reasoning_tokens: int = 0,
        cost_usd: float | None = 0.0,
        estimated: bool = False,
    ) -> None:
        # In one step: the constructor that a frozen dataclass has by itself takes one a field, at twice the cost.
        vars(self).update(
            calls=calls,
            requests=requests,
            prompt_tokens=prompt_tokens,
            completion_tokens=completion_tokens,
            cached_tokens=cached_tokens,
            reasoning_tokens=reasoning_tokens,
            cost_usd=cost_usd,
            estimated=estimated,
        )

    def __add__(self, other: Usage) -> Usage:
        costs = _costs_of_both(self, other)
        both = Usage(
            self.calls + other.calls,
            self.requests + other.requests,
            self.prompt_tokens + other.prompt_tokens,
            self.completion_tokens + other.completion_tokens,
            self.cached_tokens + other.cached_tokens,
            self.reasoning_tokens + other.reasoning_tokens,
            None if costs is None else total(costs),
            self.estimated or other.estimated,
        )
        if costs is not None and len(costs) > 1:
            vars(both)["_costs"] = costs  # what rounding took, for sums to come
        return both


def _costs_of(usage: Usage) -> Parts:
    """The exact cost; nothing where nothing is known."""
    return vars(usage).get("_costs") or ((usage.cost_usd,) if usage.cost_usd else ())


def _costs_of_both(one: Usage, other: Usage) -> Parts | None:
    """Sum what is known: None only where calls were made and no price of any is known."""
    asked = [usage for usage in (one, other) if usage.calls or usage.cost_usd]
    if asked and all(usage.cost_usd is None for usage in asked):
        return None
    costs, more = _costs_of(one), _costs_of(other)
    for cost in more:
        costs = added(costs, cost)
    return costs or (0.0,)
