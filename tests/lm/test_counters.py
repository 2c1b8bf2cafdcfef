"""Counters of a model: exact, per phase, also across threads."""

import asyncio
import threading

import pytest

import synmod as sm
from synmod.errors import CallError, UnavailableError
from synmod.lm.model import COUNTER_ATTRIBUTES
from synmod.testing import FunctionLM, ScriptedLM

NAMES = "calls requests failed_calls cached_calls unpriced_calls prompt_tokens completion_tokens cost_usd".split()


def test_every_counter_has_its_attributes():
    """Each of the eight counters is there in all, and for each phase."""
    lm = FunctionLM(lambda request: "x")
    for name in NAMES:
        for prefix in ("", "inference_", "reward_", "optimizer_"):
            assert getattr(lm, f"{prefix}cumulated_{name}") == 0
            assert f"{prefix}cumulated_{name}" in dir(lm)
    assert len(COUNTER_ATTRIBUTES) == 32


def test_another_name_is_an_attribute_error():
    """A misspelt counter names the right one."""
    with pytest.raises(AttributeError, match="Did you mean 'cumulated_calls'"):
        FunctionLM(lambda request: "x").cumulated_call


async def test_a_call_counts_in_the_phase_it_began_in():
    """`reward_` counters move for calls in phase reward, and the three add up."""
    lm = FunctionLM(lambda request: "x", price=(1e6, 2e6))
    await lm("abcdef")
    with sm.phase("reward"):
        await lm("abc")
    assert (lm.cumulated_calls, lm.inference_cumulated_calls, lm.reward_cumulated_calls) == (2, 1, 1)
    assert lm.cumulated_prompt_tokens == 3
    assert lm.counters["reward"].prompt_tokens == 1
    assert lm.counters["reward"].cost_usd == lm.reward_cumulated_cost_usd == 1 + 2 * 1
    assert lm.cumulated_cost_usd == 3 + 2 * 2
    assert lm.cumulated_unpriced_calls == 0


async def test_a_call_counts_once_whatever_its_attempts():
    """Two requests are one call."""
    lm = ScriptedLM([UnavailableError("down"), "ok"])
    await lm("x")
    assert (lm.cumulated_calls, lm.cumulated_requests, lm.cumulated_failed_calls) == (1, 2, 0)


async def test_a_failed_call_counts_as_call_and_as_failed():
    """A call that raises counts once at its end."""
    lm = ScriptedLM([UnavailableError("down")] * 3)
    with pytest.raises(UnavailableError):
        await lm("x")
    assert (lm.cumulated_calls, lm.cumulated_requests, lm.cumulated_failed_calls) == (1, 3, 1)


async def test_a_cancelled_call_moves_only_cancelled_and_requests():
    """A cancelled call is neither done nor failed."""
    lm = FunctionLM(lambda request: "x", latency_s=10)
    task = asyncio.create_task(lm("x"))
    await asyncio.sleep(0.02)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (lm.cumulated_calls, lm.cumulated_failed_calls, lm.cumulated_requests) == (0, 0, 1)
    assert lm.counters.cancelled == 1


async def test_an_unknown_price_is_counted():
    """A model that nobody has a price for counts in `cumulated_unpriced_calls`."""
    lm = FunctionLM(lambda request: "x")
    reply = await lm("x")
    assert reply.usage.cost_usd is None
    assert lm.cumulated_unpriced_calls == 1


def test_an_unknown_phase_names_the_right_one():
    """`counters["rewards"]` is a CallError."""
    with pytest.raises(CallError, match="reward"):
        FunctionLM(lambda request: "x").counters["rewards"]


def test_counters_are_exact_across_threads_and_loops():
    """Eight threads with loops of their own lose no call."""
    lm = FunctionLM(lambda request: "x", price=(1, 1))

    async def many():
        await asyncio.gather(*[lm("abc") for _ in range(100)])

    threads = [threading.Thread(target=lambda: asyncio.run(many())) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert lm.cumulated_calls == lm.cumulated_requests == lm.cumulated_prompt_tokens == 800
    assert len(lm.requests) == 800
