"""Budgets: reserved before a request leaves, settled by what it used, never overdrawn."""

import asyncio

import pytest

import synmod as sm
from synmod.errors import BadReplyError, BudgetExceeded, ConfigError, UnavailableError
from synmod.lm import LMReply
from synmod.testing import FunctionLM, ScriptedLM
from tests.lm.in_module import inside


async def test_calls_are_exact():
    """What does not fit raises before sending, and names limit, used and path."""
    lm = FunctionLM(lambda request: "x")
    with sm.budget(calls=2) as budget:
        await inside("pipeline/writer", lambda: lm("?"))
        await inside("pipeline/writer", lambda: lm("?"))
        with pytest.raises(BudgetExceeded, match=r"pipeline/writer.*calls=2"):
            await inside("pipeline/writer", lambda: lm("?"))
    assert (len(lm.requests), budget.used.calls) == (2, 2)


async def test_a_hundred_calls_in_flight_cannot_overdraw():
    """100 calls at once against a budget of 7 send 7 requests."""
    lm = FunctionLM(lambda request: "x", latency_s=0.01)
    with sm.budget(calls=7) as budget:
        done = await asyncio.gather(*[lm("?") for _ in range(100)], return_exceptions=True)
    assert sum(isinstance(one, BudgetExceeded) for one in done) == 93
    assert (len(lm.requests), budget.used.calls) == (7, 7)


async def test_retries_and_repairs_are_one_call():
    """A budget counts calls, not requests."""
    lm = ScriptedLM([UnavailableError("down"), "prose", '{"a": 1}'])
    with sm.budget(calls=1) as budget:
        await lm("?", {"type": "object"})
    assert budget.used.calls == 1


async def test_a_failed_call_is_spent():
    """A request that failed was a call, and used no tokens."""
    lm = ScriptedLM([UnavailableError("down")], attempts=1)
    with sm.budget(calls=1, tokens=100) as budget:
        with pytest.raises(UnavailableError):
            await lm("abc")
        assert (budget.used.calls, budget.used.tokens) == (1, 0)
        with pytest.raises(BudgetExceeded):
            await lm("abc")


async def test_tokens_are_hard_with_max_tokens():
    """The completion is reserved by `max_tokens`, and settled by what came."""
    lm = FunctionLM(lambda request: "x" * 30, max_tokens=20)
    with sm.budget(tokens=45) as budget:
        await lm("y" * 30)
        assert budget.used.tokens == 20
        with pytest.raises(BudgetExceeded, match="tokens"):
            await lm("y" * 30)
    assert len(lm.requests) == 1


async def test_tokens_in_flight_are_held():
    """Calls under way hold what they may use."""
    lm = FunctionLM(lambda request: "x", max_tokens=9, latency_s=0.01)
    with sm.budget(tokens=25) as budget:
        done = await asyncio.gather(*[lm("abc") for _ in range(10)], return_exceptions=True)
    assert sum(isinstance(one, LMReply) for one in done) == 2
    assert budget.used.tokens == 4


async def test_costs_are_reserved_and_settled():
    """`cost_usd` is hard when `max_tokens` is set."""
    lm = FunctionLM(lambda request: "x" * 3, max_tokens=10, price=(1e6, 2e6))
    with sm.budget(cost_usd=25) as budget:
        await lm("abc")
        assert budget.used.cost_usd == 3
        await lm("abc")
        with pytest.raises(BudgetExceeded, match="cost_usd"):
            await lm("abc")
    assert len(lm.requests) == 2


async def test_a_cost_budget_needs_a_price():
    """An unknown price is a ConfigError under a cost budget, before sending."""
    lm = FunctionLM(lambda request: "x")
    with pytest.raises(ConfigError, match="price="), sm.budget(cost_usd=1):
        await lm("?")
    assert lm.requests == []
    with sm.budget(tokens=100):
        await lm("?")


async def test_enclosing_budgets_all_hold():
    """The tighter one refuses, wherever it stands."""
    lm = FunctionLM(lambda request: "x")
    with sm.budget(calls=5) as outer, sm.budget(calls=1) as inner:
        await lm("?")
        with pytest.raises(BudgetExceeded):
            await lm("?")
    assert outer.used.calls == inner.used.calls == 1


async def test_a_cancelled_request_gives_back():
    """After a cancellation nothing is reserved."""
    lm = FunctionLM(lambda request: "x", latency_s=60)
    with sm.budget(calls=1, tokens=100) as budget:
        task = asyncio.create_task(lm("?"))
        await asyncio.sleep(0.01)
        assert budget.used.calls == 1
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        assert (budget.used.calls, budget.used.tokens) == (0, 0)


@pytest.mark.parametrize("ends", [ValueError("a fault of the adapter"), sm.DeadlineExceeded("the time is over")])
async def test_a_request_that_left_is_spent_however_it_failed(ends):
    """What the counters count as a call, the budget does; else failing calls would be without end."""
    lm = FunctionLM(lambda request: ends)
    with sm.budget(calls=1) as budget:
        with pytest.raises(type(ends)):
            await lm("?")
        assert budget.used.calls == lm.cumulated_calls == 1
        with pytest.raises(BudgetExceeded):
            await lm("?")


async def test_an_answered_request_is_accounted_for_before_anything_is_waited_for():
    """A cancellation that comes with the reply loses nothing of what the reply cost, also in a model's first call."""
    lm = sm.LanguageModel("openai/gpt-4o-mini", adapter=Answering())  # its price is looked up in a list
    with sm.budget(tokens=100) as budget, sm.track_usage() as usage:
        lm.adapter.task = asyncio.create_task(lm("?"))
        await asyncio.gather(lm.adapter.task, return_exceptions=True)
    assert budget.used.tokens == usage.prompt_tokens == 7


class Answering:
    """An adapter during whose answer the call is cancelled."""

    name = "answering"
    version = 1
    task = None

    async def send(self, request):
        await asyncio.sleep(0)
        self.task.cancel()
        return LMReply("x", usage=sm.Usage(prompt_tokens=7))


async def test_embedded_models_are_free():
    """An embedded model costs 0, also under a cost budget."""
    with sm.budget(cost_usd=0) as budget:
        reply = await sm.LanguageModel("embedded/nearest")("hello")
    assert reply.usage.cost_usd == budget.used.cost_usd == 0


async def test_usage_sums_up_what_a_call_used():
    """Tokens and cost of all requests of a call are in its usage, repair included."""
    lm = ScriptedLM(["prose", '{"a": 1}'], price=(1e6, 1e6))
    with sm.track_usage() as usage:
        reply = await lm("abc", {"type": "object"})
    assert (reply.usage.calls, reply.usage.requests) == (usage.calls, usage.requests) == (1, 2)
    assert reply.usage.cost_usd == usage.cost_usd == reply.usage.prompt_tokens + reply.usage.completion_tokens
    assert usage["inference"].prompt_tokens == lm.cumulated_prompt_tokens


async def test_bad_replies_cost_too():
    """What a call used is counted, though it failed."""
    lm = ScriptedLM(["prose"] * 2, price=(1e6, 1e6))
    with sm.track_usage() as usage, pytest.raises(BadReplyError):
        await lm("abc", {"type": "object"})
    assert usage.cost_usd == lm.cumulated_cost_usd > 0
    assert lm.cumulated_failed_calls == 1


async def test_an_adapter_may_know_the_cost():
    """A cost that the adapter tells stands."""
    reply = LMReply("x", usage=sm.Usage(prompt_tokens=1, completion_tokens=1, cost_usd=0.5))
    assert (await ScriptedLM([reply], price=(9, 9))("?")).usage.cost_usd == 0.5
