"""Budgets: reserved before, settled after, never overdrawn."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context

import pytest
from hypothesis import given, strategies as st

from synmod.errors import ArgumentError, BudgetExceeded
from synmod.leaves.aio import deadline_scope, sleep, task_group
from synmod.scope import Spent, Usage, budget, reserve
from tests.scope.part import Part


def test_what_is_used_is_live():
    """Reserved at once, settled by what came, given back on release."""
    with budget(calls=10, tokens=1000, cost_usd=1.0) as spending:
        assert spending.used == Spent(0, 0, 0.0)
        reservation = reserve(1, tokens=100, cost_usd=0.1)
        assert spending.used.calls == 1
        reservation.settle(Usage(calls=1, prompt_tokens=30, completion_tokens=12, cost_usd=0.05))
        assert (spending.used.calls, spending.used.tokens) == (1, 42)
        assert spending.used.cost_usd == pytest.approx(0.05)
        reserve(1, tokens=500).release()
        assert (spending.used.calls, spending.used.tokens) == (1, 42)
    assert spending.used.calls == 1


@pytest.mark.parametrize(
    ("limits", "wanted"),
    [
        ({"calls": 2}, {"calls": 3}),
        ({"calls": 0}, {}),
        ({"tokens": 10}, {"tokens": 11}),
        ({"cost_usd": 0.5}, {"cost_usd": 0.6}),
    ],
)
def test_what_does_not_fit_is_refused(limits, wanted):
    """The error names the limit, what is used, and the path; nothing is reserved."""
    with budget(**limits) as spending:
        with pytest.raises(BudgetExceeded) as caught:
            reserve(**wanted, where="writer/draft")
        name = next(iter(limits))
        assert f"{name}={limits[name]:g}" in str(caught.value)
        assert "writer/draft" in str(caught.value)
        assert "used" in str(caught.value)
        assert isinstance(caught.value, RuntimeError)
        assert spending.used == Spent(0, 0, 0.0)


def test_the_path_is_that_of_the_running_call(any_loop):
    """Where nobody gives one."""

    async def asks(_):
        reserve()

    part = Part("asks", asks)
    step = Part("step", lambda _: part(), ask=part)

    async def main():
        with budget(calls=0):
            await Part("top", lambda _: step(), step=step)()

    with pytest.raises(BudgetExceeded, match="step/ask"):
        any_loop(main)


def test_every_enclosing_budget_must_have_room():
    """An inner budget cannot exceed an outer one, and a refusal leaves all as they were."""
    with budget(calls=3) as outer, budget(calls=10) as inner:
        for _ in range(3):
            reserve().settle(Usage(calls=1))
        with pytest.raises(BudgetExceeded, match="calls=3"):
            reserve()
        assert (outer.used.calls, inner.used.calls) == (3, 3)
    with budget(calls=10) as outer, budget(calls=1) as inner:
        reserve()
        with pytest.raises(BudgetExceeded, match="calls=1"):
            reserve()
        assert (outer.used.calls, inner.used.calls) == (1, 1)


def test_without_a_budget_everything_fits():
    """Nobody pays for a limit that is not there: neither before a block nor after it."""
    with budget(calls=1) as spending:
        pass
    reserve(1_000_000).settle(Usage(calls=1_000_000))
    assert spending.used == Spent(0, 0, 0.0)


def test_a_free_call_fits_into_a_budget_of_no_dollars():
    """What costs nothing may be called."""
    with budget(cost_usd=0):
        reserve(cost_usd=0.0).settle(Usage(calls=1, cost_usd=0.0))
        with pytest.raises(BudgetExceeded):
            reserve(cost_usd=0.01)


def test_what_was_overdrawn_by_a_reply_stops_the_next():
    """Completions may be longer than was known; then no further request leaves."""
    with budget(tokens=100) as spending:
        reserve(tokens=10).settle(Usage(calls=1, completion_tokens=500))
        assert spending.used.tokens == 500
        with pytest.raises(BudgetExceeded):
            reserve(tokens=0)


def test_dollars_add_up_to_their_limit():
    """Ten times 0.1 fits into 1, though floats add up to less or more."""
    with budget(cost_usd=1.0):
        for _ in range(10):
            reserve(cost_usd=0.1).settle(Usage(calls=1, cost_usd=0.1))
        with pytest.raises(BudgetExceeded):
            reserve(cost_usd=0.01)


def test_a_reservation_ends_once():
    """Settling twice, or releasing what was settled, does nothing."""
    with budget(calls=5) as spending:
        reservation = reserve()
        reservation.settle(Usage(calls=1))
        reservation.settle(Usage(calls=1))
        reservation.release()
        assert spending.used.calls == 1
        with reserve() as left_open:
            assert spending.used.calls == 2
        left_open.settle(Usage(calls=1))
        assert spending.used.calls == 1


def test_a_hundred_calls_in_flight_cannot_overdraw(any_loop):
    """Exactly as many as allowed begin; cancelled ones give their room back."""
    begun, refused, most = [], [], []

    async def call(spending, n):
        try:
            with reserve() as reservation:
                begun.append(n)
                most.append(spending.used.calls)
                with deadline_scope(0.01 if n % 3 == 0 else 60):
                    await sleep(60 if n % 3 == 0 else 0)
                    reservation.settle(Usage(calls=1))
        except BudgetExceeded:
            refused.append(n)

    async def main():
        with budget(calls=37) as spending:
            async with task_group() as group:
                for n in range(100):
                    group.start_soon(call, spending, n)
            assert spending.used.calls == sum(1 for n in begun if n % 3)

    any_loop(main)
    assert len(begun) + len(refused) == 100
    assert len(begun) >= 37
    assert max(most) == 37


def test_threads_cannot_overdraw():
    """Eight threads, one budget, exact."""
    with budget(calls=500) as spending:
        contexts = [copy_context() for _ in range(8)]

        def work(context):
            def spends():
                done = 0
                for _ in range(200):
                    try:
                        reserve().settle(Usage(calls=1))
                        done += 1
                    except BudgetExceeded:
                        pass
                return done

            return context.run(spends)

        with ThreadPoolExecutor(8) as pool:
            assert sum(pool.map(work, contexts)) == 500
        assert spending.used.calls == 500


async def test_budgets_nested_in_different_orders_do_not_wait_for_each_other():
    """Two shared budget objects, entered one inside the other both ways."""
    one, other = budget(calls=1000), budget(calls=1000)

    async def work(outer, inner):
        with outer as first, inner as second:
            for _ in range(100):
                with reserve():
                    await asyncio.sleep(0)
            spent.append((first.used.calls, second.used.calls))

    spent = []
    await asyncio.wait_for(asyncio.gather(*(work(*pair) for pair in [(one, other), (other, one)] * 5)), 60)
    assert len(spent) == 10
    assert spent[-1] == (0, 0)  # what was reserved and not settled is given back


async def test_a_block_that_ended_does_not_limit_who_outlives_it():
    """A task that goes on is not under the budget any more, but what it had reserved is settled there."""
    ended = asyncio.Event()

    async def outlives():
        reservation = reserve()
        await ended.wait()
        reservation.settle(Usage(calls=1, prompt_tokens=7))
        reserve()
        reserve()

    with budget(calls=1) as spending:
        task = asyncio.create_task(outlives())
        await asyncio.sleep(0)
    ended.set()
    await task
    assert (spending.used.calls, spending.used.tokens) == (1, 7)


@pytest.mark.parametrize(
    "limits",
    [
        {},
        {"calls": -1},
        {"calls": 1.5},
        {"calls": True},
        {"tokens": "5"},
        {"cost_usd": -0.1},
        {"cost_usd": float("nan")},
    ],
)
def test_what_is_no_limit_is_refused(limits):
    """Nothing given, a negative number, a share of a call."""
    with pytest.raises(ArgumentError):
        budget(**limits)


@given(
    st.integers(0, 20),
    st.lists(st.tuples(st.integers(0, 5), st.sampled_from(["settle", "release", "keep"])), max_size=30),
)
def test_a_limit_holds_whatever_happens(limit, steps):
    """At no time is more reserved and spent than allowed."""
    with budget(calls=limit) as spending:
        expected = 0
        for calls, ending in steps:
            try:
                reservation = reserve(calls)
            except BudgetExceeded:
                assert expected + calls > limit
                continue
            expected += calls
            if ending == "settle":
                reservation.settle(Usage(calls=calls))
            elif ending == "release":
                reservation.release()
                expected -= calls
            assert spending.used.calls == expected <= limit
