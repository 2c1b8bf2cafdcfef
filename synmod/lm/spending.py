"""The layer of budgets: what a request may cost is reserved before it leaves, and settled by what it did cost."""

from __future__ import annotations

from synmod.lm.call import Below, ModelCall
from synmod.lm.prices import Price
from synmod.lm.records import LMReply, LMRequest
from synmod.scope.usage import Usage

__all__ = ["within_budget"]


async def within_budget(below: Below, call: ModelCall, request: LMRequest) -> LMReply:
    """Send a request only if every enclosing budget has room for it, and account for what it used.

    Raises:
        BudgetExceeded: It does not fit; nothing was sent.
        ConfigError: A cost is limited, and nobody knows the price of the model.
    """
    price = await call.model.price.find()
    reply = await below(call, request)
    call.use(_priced(reply.usage, price))
    return reply


def _priced(usage: Usage, price: Price | None) -> Usage:
    """Put the cost on what one request used; a cost that the adapter knows stands."""
    cost = usage.cost_usd
    if not cost:
        cost = (
            None if price is None else price.cost_usd(usage.prompt_tokens, usage.completion_tokens, usage.cached_tokens)
        )
    return Usage(
        1,
        1,
        usage.prompt_tokens,
        usage.completion_tokens,
        usage.cached_tokens,
        usage.reasoning_tokens,
        cost,
        usage.estimated,
    )
