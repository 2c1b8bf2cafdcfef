"""A crowd of calls that fail, repair, time out and are cancelled: everything adds up, and nothing is left behind."""

import asyncio
import random
from collections import Counter

import pytest

import synmod as sm
from synmod.errors import AuthError, BudgetExceeded, RateLimitError, UnavailableError
from synmod.lm import LanguageModel, LMReply

SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
PHASES = ("inference", "reward", "optimizer")
FIELDS = ("calls", "requests", "failed_calls", "prompt_tokens", "completion_tokens", "cost_usd", "cancelled")
PROMPT = "abc" * 6  # six tokens by estimate


class Unreliable:
    """An adapter with every kind of end, drawn from a seed; it keeps the truth."""

    name = "unreliable"
    version = 1

    def __init__(self, seed, *, failing=0.3, hanging=0.03):
        self.dice = random.Random(seed)
        self.failing = failing
        self.hanging = hanging
        self.sent = self.open = 0
        self.answered = []

    async def send(self, request):
        self.sent += 1
        self.open += 1
        try:
            return await self._ended()
        finally:
            self.open -= 1

    async def _ended(self):
        for _ in range(self.dice.randrange(1, 5)):
            await asyncio.sleep(0)
        fate = self.dice.random()
        if fate < self.failing:
            raise self.dice.choice(
                [UnavailableError("x"), RateLimitError("x", retry_after_s=0.0), AuthError("x"), ValueError("a fault")]
            )
        if fate < self.failing + self.hanging:
            await asyncio.sleep(60)
        used = sm.Usage(prompt_tokens=6, completion_tokens=self.dice.randrange(1, 10))
        self.answered.append(used)
        return LMReply("prose" if fate > 0.8 else '{"a": 1}', usage=used)


class Ends(sm.Hook):
    """Counts begins, keeps ends."""

    def __init__(self):
        self.begun = 0
        self.ends = []

    def on_lm_begin(self, event):
        self.begun += 1

    def on_lm_end(self, event):
        self.ends.append(event)


def model(adapter, **given):
    """A model that waits for nobody between its attempts."""
    lm = LanguageModel("own/unreliable", adapter=adapter, attempts=4, price=(1e6, 2e6), max_tokens=10, **given)
    lm.backoff = False
    return lm


async def crowd(lm, count, *, cancelled=0.0, seed=0):
    """Call at once, in all phases, some inside a deadline; cancel a share of them on the way."""
    dice = random.Random(seed)

    async def one(number):
        with sm.phase(PHASES[number % 3]):
            if number % 17 == 0:
                with sm.deadline(0.02):
                    return await lm(PROMPT, SCHEMA)
            return await lm(PROMPT, SCHEMA)

    tasks = [asyncio.create_task(one(number)) for number in range(count)]
    for turn, task in enumerate(dice.sample(tasks, int(count * cancelled))):
        if turn % 6 == 0:
            await asyncio.sleep(0)
        task.cancel()
    return await asyncio.gather(*tasks, return_exceptions=True)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.slow
async def test_counters_usage_and_events_add_up(seed):
    """Calls that ended and calls that were cancelled are all calls; phases add up; requests are those that left."""
    adapter, ends = Unreliable(seed), Ends()
    lm = model(adapter, timeout_s=2.0)
    before = asyncio.all_tasks()
    with sm.hooks(ends), sm.track_usage() as usage:
        got = await crowd(lm, 300, cancelled=0.2, seed=seed)
    counted = lm.counters
    kinds = Counter(type(one).__name__ for one in got)
    assert kinds["LMReply"] > 10
    assert kinds["CancelledError"] > 10
    assert counted.calls + counted.cancelled == 300 == ends.begun == len(ends.ends)
    assert counted.failed_calls == counted.calls - kinds["LMReply"]
    assert counted.requests == usage.requests == adapter.sent == sum(end.attempts for end in ends.ends)
    assert usage.calls == counted.calls
    assert usage.completion_tokens == sum(used.completion_tokens for used in adapter.answered)
    for field in FIELDS:
        assert sum(getattr(counted[phase], field) for phase in PHASES) == pytest.approx(getattr(counted, field))
    assert max(end.attempts for end in ends.ends) <= 4
    assert adapter.open == 0
    assert asyncio.all_tasks() == before


@pytest.mark.parametrize(("kind", "limit"), [("calls", 57), ("tokens", 900), ("cost_usd", 2_000.0)])
async def test_budgets_are_never_overspent(kind, limit):
    """Not in flight, not at the end, whatever fails, repairs or is cancelled; and nothing stays reserved."""
    adapter = Unreliable(7, hanging=0.0)
    lm = model(adapter)
    with sm.budget(**{kind: limit}) as budget:
        most = 0.0

        async def watch():
            nonlocal most
            while True:
                most = max(most, getattr(budget.used, kind))
                await asyncio.sleep(0)

        watching = asyncio.create_task(watch())
        got = await crowd(lm, 300, cancelled=0.1)
        watching.cancel()
        used = budget.used
    assert sum(isinstance(one, BudgetExceeded) for one in got) > 100
    assert 0 < most <= limit * (1 + 1e-9)
    spent = [6 + one.completion_tokens for one in adapter.answered]
    if kind == "tokens":
        assert used.tokens == sum(spent)
    if kind == "cost_usd":
        assert used.cost_usd == pytest.approx(sum(6 + 2 * one.completion_tokens for one in adapter.answered))
    again = await asyncio.gather(lm(PROMPT), return_exceptions=True)  # outside nothing is limited
    assert not isinstance(again[0], BudgetExceeded)
