"""Garbage collection closes forgotten coroutines anywhere, also while a count is taken: nothing waits, all counts."""

import gc
from contextvars import copy_context

import pytest

import synmod as sm
from synmod.lm import ModelCounters
from synmod.scope import Account, CallCounters, RewardLedger, Spent, Usage, UsageMeter


class Query(sm.DataModel):
    question: str


class Once:
    """Waits for ever."""

    def __await__(self):
        yield


class Waits(sm.Module):
    """Is never resumed."""

    async def call(self, inputs: Query) -> Query:
        await Once()
        return inputs


def test_a_call_that_is_collected_while_its_counters_are_read_is_counted():
    """Collected as often as there is anything to collect."""
    waits, query = Waits(), sm.JsonDataModel(Query(question="Why?"))
    known = gc.get_threshold()
    gc.set_threshold(1)
    try:
        for _ in range(30):
            call = waits(query)
            copy_context().run(call.send, None)
            circle = [call]
            circle.append(circle)
            del call, circle
            assert waits.counters["inference"].invocations == waits.counters.total().failed == 0
    finally:
        gc.set_threshold(*known)
    gc.collect()
    assert waits.counters.cancelled == 30


@pytest.mark.parametrize(
    ("counted", "count"),
    [
        (CallCounters(), lambda counters: counters.count_cancelled("reward")),
        (ModelCounters(), lambda counters: counters.count_cancelled("reward", 1)),
        (UsageMeter(), lambda meter: meter.add(Usage(requests=1), "reward")),
        (RewardLedger(0.0), lambda ledger: ledger.add((1,), ("", None, 1.0))),
    ],
)
def test_what_ends_inside_a_count_does_not_wait_for_itself(counted, count):
    """Each lock may be taken again by who holds it."""
    with counted._lock:
        count(counted)


def test_a_sum_that_changes_while_it_is_added_to_loses_nothing():
    """What was used by a call that ended in between is there too."""
    meter = UsageMeter()

    class Interrupted(Usage):
        def __add__(self, other):
            if other.calls:
                meter.add(Usage(requests=5), "reward")
            return super().__add__(other)

    meter.add(Interrupted(calls=1, requests=1), "reward")
    meter.add(Usage(calls=1, requests=1), "reward")
    assert (meter.calls, meter.requests) == (2, 7)


def test_a_reservation_that_is_given_back_while_another_is_settled_is_given_back():
    """A budget keeps no room for what is over."""
    account = Account({"calls": 10})
    with account.lock:
        account.hold(Spent(calls=1))
        account.hold(Spent(calls=1))
        account._change("_held", interrupted := Interrupting(account))
    assert interrupted.times == 2
    assert account.used == Spent(calls=1)


class Interrupting:
    """Takes back a call, and at its first turn another one before."""

    def __init__(self, account):
        self.account, self.times = account, 0

    def __call__(self, held):
        self.times += 1
        if self.times == 1:
            self.account.settle(Spent(calls=1), Spent(calls=1))
        return held - Spent(calls=1)
