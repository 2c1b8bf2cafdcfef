"""Single flight: equal work once, whoever asks, on whatever loop."""

import asyncio
import threading
import traceback

import pytest

import synmod as sm
from synmod.cache import SingleFlight
from synmod.leaves import aio
from synmod.scope import check_deadline, is_from_enclosing_limit, reserve


def test_equal_work_is_done_once(any_loop):
    """A hundred who ask at once get what one run gave; afterwards it is done anew."""
    runs = []

    async def work():
        runs.append(1)
        await aio.checkpoint()
        return len(runs)

    async def main():
        flights = SingleFlight()
        results = []

        async def ask():
            results.append(await flights.run("key", work))

        async with aio.task_group() as group:
            for _ in range(100):
                group.start_soon(ask)
        return results, await flights.run("key", work), await flights.run("other", work)

    assert any_loop(main) == ([1] * 100, 2, 3)


async def test_a_failure_reaches_all_who_waited():
    """Each waiter gets an exception of its own, with notes and traceback; the next caller runs the work again."""
    error = sm.BadReplyError("bad", text="raw", status=200)
    error.add_note("a note")

    async def fail():
        await asyncio.sleep(0)
        raise error

    flights = SingleFlight()
    leader, *others = await asyncio.gather(*(flights.run(1, fail) for _ in range(5)), return_exceptions=True)
    assert leader is error
    assert len({id(each) for each in (leader, *others)}) == 5
    for other in others:
        assert (str(other), other.text, other.status, other.__notes__) == ("bad", "raw", 200, ["a note"])
        assert "fail" in [frame.name for frame in traceback.extract_tb(other.__traceback__)]
        other.add_note("mine")
    assert error.__notes__ == ["a note"]
    with pytest.raises(sm.BadReplyError):
        await flights.run(1, fail)


class Stubborn(Exception):
    """An exception that refuses to be copied."""

    def __copy__(self):
        raise TypeError("not me")


async def test_what_cannot_be_copied_is_shared():
    """The waiters then get the very object."""
    error = Stubborn(1, 2)

    async def fail():
        await asyncio.sleep(0)
        raise error

    flights = SingleFlight()
    results = await asyncio.gather(*(flights.run(1, fail) for _ in range(3)), return_exceptions=True)
    assert all(result is error for result in results)


async def test_work_that_waits_for_itself_is_refused():
    """Also from a task that the work started; other work of the same caller is not."""
    flights = SingleFlight()

    async def one():
        return 1

    async def work():
        assert await flights.run("other", one) == 1
        await asyncio.create_task(flights.run("key", one))

    with pytest.raises(sm.CallError, match="wait forever"):
        await flights.run("key", work)
    assert await flights.run("key", one) == 1


async def test_a_cancelled_leader_hands_over():
    """One of those who wait leads next; nobody else is cancelled."""
    gate, runs = asyncio.Event(), []

    async def work():
        runs.append(1)
        await gate.wait()
        return len(runs)

    flights = SingleFlight()
    leader, *others = (asyncio.create_task(flights.run(1, work)) for _ in range(4))
    await asyncio.sleep(0)
    leader.cancel()
    with pytest.raises(asyncio.CancelledError):
        await leader
    while len(runs) < 2:
        await asyncio.sleep(0)
    gate.set()
    assert await asyncio.gather(*others) == [2, 2, 2]


@pytest.mark.parametrize("limit", [lambda: sm.budget(calls=0), lambda: sm.deadline(0)])
async def test_a_leader_stopped_by_its_own_limit_hands_over(limit):
    """What one of them may spend binds nobody else; a limit inside of the work is the work's failure."""
    flights, runs = SingleFlight(), []

    async def work():
        runs.append(1)
        await asyncio.sleep(0)
        check_deadline("here")
        reserve().release()
        return len(runs)

    async def limited():
        with limit():
            return await run(work)

    def run(work):
        return flights.run(1, work, is_from_enclosing_limit)

    leader, *others = await asyncio.gather(limited(), run(work), run(work), return_exceptions=True)
    assert isinstance(leader, (sm.BudgetExceeded, sm.DeadlineExceeded))
    assert others == [2, 2]

    async def too_much():
        runs.append(1)
        await asyncio.sleep(0)
        with sm.budget(calls=0):
            reserve()

    failures = await asyncio.gather(*(run(too_much) for _ in range(3)), return_exceptions=True)
    assert {type(failure) for failure in failures} == {sm.BudgetExceeded}
    assert len(runs) == 3


def test_threads_share_a_flight():
    """Four loops in four threads all get an answer, wherever the work ran."""
    flights, begun, go, runs, results = SingleFlight(), threading.Event(), threading.Event(), [], []

    async def work():
        runs.append(1)
        begun.set()
        while not go.is_set():
            await asyncio.sleep(0)
        return "done"

    def ask():
        results.append(asyncio.run(flights.run(1, work)))

    first = threading.Thread(target=ask)
    first.start()
    assert begun.wait(30)
    others = [threading.Thread(target=ask) for _ in range(3)]
    for thread in others:
        thread.start()
    go.set()
    for thread in (first, *others):
        thread.join(30)
    assert results == ["done"] * 4
