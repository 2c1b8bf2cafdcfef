"""Usage of models and counters of modules: they add up, per phase, exactly under tasks and threads."""

import asyncio
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given, strategies as st

from synmod.errors import CallError
from synmod.scope import (
    PHASES,
    CallCounters,
    PhaseCounters,
    Usage,
    UsageMeter,
    current_call,
    open_meters,
    phase,
    track_usage,
)
from tests.scope.part import Part


def count_usage(frame, usage, phase):
    """Count a model call that begins and ends here."""
    for meter in open_meters(frame):
        meter.add(usage, phase)


usages = st.builds(
    Usage,
    calls=st.integers(0, 5),
    requests=st.integers(0, 5),
    prompt_tokens=st.integers(0, 1000),
    completion_tokens=st.integers(0, 1000),
    cached_tokens=st.integers(0, 1000),
    reasoning_tokens=st.integers(0, 1000),
    cost_usd=st.integers(0, 100).map(float),
    estimated=st.booleans(),
)


@given(usages, usages, usages)
def test_usage_adds_up(a, b, c):
    """In any grouping, and nothing is its zero."""
    assert a + (b + c) == (a + b) + c
    assert a + b == b + a
    assert a + Usage() == a


def test_the_sum_of_costs_holds_what_is_known():
    """Unknown prices are unknown only where nothing else is known."""
    unknown, known, nothing = Usage(calls=1, cost_usd=None), Usage(calls=1, cost_usd=0.5), Usage()
    assert (unknown + known).cost_usd == 0.5
    assert (unknown + unknown).cost_usd is None
    assert (unknown + nothing).cost_usd is None
    assert (nothing + nothing).cost_usd == 0.0


def test_a_record_is_frozen():
    """What was used is what was used."""
    with pytest.raises(AttributeError):
        Usage().calls = 1


def test_a_block_measures_each_phase(any_loop):
    """It has the fields of a record, and one record per phase."""

    async def main():
        with track_usage() as outer:
            count_usage(None, Usage(calls=1, prompt_tokens=3, cost_usd=0.25), "inference")
            with track_usage() as inner:
                count_usage(None, Usage(calls=1, completion_tokens=4, estimated=True), "reward")
        count_usage(None, Usage(calls=1), "inference")
        assert (inner.calls, inner["reward"].calls, inner["inference"].calls) == (1, 1, 0)
        assert (outer.calls, outer.prompt_tokens, outer.completion_tokens, outer.cost_usd) == (2, 3, 4, 0.25)
        assert (outer.requests, outer.cached_tokens, outer.reasoning_tokens, outer.estimated) == (0, 0, 0, True)
        assert "calls=2" in repr(outer)
        with pytest.raises(CallError):
            outer["rewards"]

    any_loop(main)


async def test_what_began_inside_counts_when_it_ends_outside():
    """And what began outside does not, though it ends inside."""
    end_outer, end_inner = asyncio.Event(), asyncio.Event()

    async def call(end):
        meters = open_meters(current_call())
        await end.wait()
        for meter in meters:
            meter.add(Usage(calls=1), "inference")

    before = asyncio.create_task(call(end_outer))
    await asyncio.sleep(0)
    with track_usage() as usage:
        inside = asyncio.create_task(call(end_inner))
        await asyncio.sleep(0)
        end_outer.set()
        await before
        assert usage.calls == 0
    end_inner.set()
    await inside
    assert usage.calls == 1


async def test_a_run_measures_itself():
    """The frame of the entry call sums what all calls below it used, and no other run's."""
    seen = {}

    async def asks(n):
        for _ in range(n):
            await asyncio.sleep(0)
            count_usage(current_call(), Usage(calls=1, prompt_tokens=n), "inference")

    async def top(n):
        await asyncio.gather(*(Part("asks", asks)(n) for _ in range(2)))
        seen[n] = current_call().usage
        assert current_call().root.usage.calls == current_call().usage.calls

    await asyncio.gather(*(Part("top", top)(n) for n in range(20)))
    assert {n: (usage.calls, usage.prompt_tokens) for n, usage in seen.items()} == {
        n: (2 * n, 2 * n * n) for n in range(20)
    }


def test_a_meter_is_exact_under_threads():
    """Eight threads add eighty thousand calls."""
    meter = UsageMeter()

    def work(_):
        for _ in range(2_000):
            meter.add(Usage(calls=1, prompt_tokens=2), "inference")

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))
    assert (meter.calls, meter.prompt_tokens) == (16_000, 32_000)


# -- counters of calls ------------------------------------------------------------------------------------------------


async def test_entry_calls_move_the_record_of_their_phase():
    """Returned and failed calls are invocations, cancelled ones only cancelled; a nested call is nothing of it."""
    child = Part("child")

    async def body(x):
        await child()
        if x == "fail":
            raise ValueError
        if x == "wait":
            await asyncio.sleep(60)

    part = Part("p", body)
    await part()
    with phase("reward"), pytest.raises(ValueError):
        await part("fail")
    task = asyncio.create_task(part("wait"))
    await asyncio.sleep(0.01)
    task.cancel()
    await asyncio.wait([task])

    counters = part.counters
    assert (counters.invocations, counters.failed, counters.cancelled, counters.nested) == (2, 1, 1, 0)
    assert (counters["inference"].invocations, counters["inference"].cancelled) == (1, 1)
    assert (counters["reward"].invocations, counters["reward"].failed) == (1, 1)
    assert counters["optimizer"] == PhaseCounters(0, 0.0, 0, 0)
    assert (child.counters.invocations, child.counters.nested) == (0, 3)


@given(st.lists(st.tuples(st.sampled_from(PHASES), st.sampled_from(["ok", "failed", "cancelled"]))))
def test_the_parts_add_up_to_the_total(calls):
    """Whatever happened, the three phases are the whole."""
    counters = CallCounters()
    for name, outcome in calls:
        if outcome == "cancelled":
            counters.count_cancelled(name)
        else:
            counters.count_entry(name, 0.25, failed=outcome == "failed")
    parts = [counters[name] for name in PHASES]
    assert counters.invocations == sum(part.invocations for part in parts)
    assert counters.elapsed_s == sum(part.elapsed_s for part in parts)
    assert counters.failed == sum(part.failed for part in parts) == sum(1 for _, one in calls if one == "failed")
    assert counters.cancelled == sum(part.cancelled for part in parts)


def test_counting_is_exact_under_threads():
    """Eight threads, eighty thousand calls, some of them read in between."""
    counters = CallCounters()

    def work(n):
        for turn in range(10_000):
            counters.count_entry(PHASES[n % 3], 0.5, failed=turn % 2 == 0)
            next(counters.nested_calls)
            if turn % 100 == 0:
                assert counters.nested > 0

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))
    assert (counters.invocations, counters.failed, counters.nested) == (80_000, 40_000, 80_000)
    assert counters.elapsed_s == 40_000.0
    assert counters.nested == 80_000


@pytest.mark.parametrize("name", ["failed", "cancelled", "nested", "invocations", "elapsed_s"])
def test_counters_are_read_only(name):
    """Nobody sets what was counted."""
    with pytest.raises(AttributeError):
        setattr(CallCounters(), name, 1)
    with pytest.raises(AttributeError):
        CallCounters()["reward"].failed = 1


def test_an_unknown_phase_is_refused():
    """A misspelt phase is told, not counted as zero."""
    with pytest.raises(CallError, match="Did you mean 'reward'"):
        CallCounters()["rewards"]
