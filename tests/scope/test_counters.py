"""Counters: exact under tasks and threads, and the parts add up."""

import asyncio
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from synmod.errors import CallError
from synmod.scope import PHASES, CallCounters, PhaseCounters, phase
from tests.scope.part import Part


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
            counters.count_nested()
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
