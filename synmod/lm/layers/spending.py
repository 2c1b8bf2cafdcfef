"""The layer of budgets: what a request may cost is reserved before it leaves, and settled by what it did cost."""

from __future__ import annotations

from synmod.errors import ConfigError
from synmod.lm.layers.call import Below, ModelCall
from synmod.lm.layers.failing import was_sent
from synmod.lm.prices import Price
from synmod.lm.records import LMReply, LMRequest
from synmod.lm.tokens import estimate_tokens
from synmod.scope import Reservation, Usage, reserve

__all__ = ["within_budget"]


async def within_budget(below: Below, call: ModelCall, request: LMRequest) -> LMReply:
    """Send a request only if every enclosing budget has room for it, and account for what it used.

    Raises:
        BudgetExceeded: It does not fit; nothing was sent.
        ConfigError: A cost is limited, and nobody knows the price of the model.
    """
    budgets = () if call.ambient is None else call.ambient.budgets
    price = await call.model.price.find()  # now, so that nothing is waited for between a reply and its account
    if not budgets:
        reply = await below(call, request)
        call.use(_priced(reply.usage, price))
        return reply
    cost_is_limited = any("cost_usd" in account.limits for account in budgets)
    with _reserved(call, request, price, cost_is_limited) as reservation:
        try:
            reply = await below(call, request)
        except BaseException as error:
            if isinstance(error, Exception) and was_sent(error):  # a cancellation gives everything back
                reservation.settle(Usage())  # a call was made, though it gave nothing
            raise
        used = _priced(reply.usage, price)
        reservation.settle(used)
        call.use(used)
        return reply


def _reserved(call: ModelCall, request: LMRequest, price: Price | None, cost_is_limited: bool) -> Reservation:
    """Reserve what a request may use; a request that goes on with a counted call is no further call."""
    prompt, most = estimate_tokens(request.messages), request.params.get("max_tokens")
    completion = most if isinstance(most, int) else 0
    cost = 0.0
    if cost_is_limited:
        if price is None:
            raise ConfigError(
                f"{request.model}: a budget limits cost_usd, and the price of this model is not known:"
                " pass LanguageModel(..., price=(usd per million in, usd per million out))."
            )
        cost = price.cost_usd(prompt, completion)
    return reserve(0 if call.requests else 1, prompt + completion, cost, where=call.path)


def _priced(usage: Usage, price: Price | None) -> Usage:
    """Put the cost on what one request used; a cost that the adapter knows stands."""
    prompt, completion, cached = usage.prompt_tokens, usage.completion_tokens, usage.cached_tokens
    cost = usage.cost_usd or (None if price is None else price.cost_usd(prompt, completion, cached))
    return Usage(1, 1, prompt, completion, cached, usage.reasoning_tokens, cost, usage.estimated)
