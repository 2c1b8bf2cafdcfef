"""Single flight: equal work once, whoever asks, on whatever loop."""

import asyncio
import threading

import pytest

import synmod as sm
from synmod.flow import SingleFlight
from synmod.leaves import aio
from synmod.scope import check_deadline, reserve


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
    """As the same object; the next one who asks runs it again."""
    error = KeyError("mine")

    async def fail():
        await asyncio.sleep(0)
        raise error

    flights = SingleFlight()
    results = await asyncio.gather(*(flights.run(1, fail) for _ in range(5)), return_exceptions=True)
    assert all(result is error for result in results)
    with pytest.raises(KeyError):
        await flights.run(1, fail)


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
            return await flights.run(1, work)

    leader, *others = await asyncio.gather(
        limited(), flights.run(1, work), flights.run(1, work), return_exceptions=True
    )
    assert isinstance(leader, (sm.BudgetExceeded, sm.DeadlineExceeded))
    assert others == [2, 2]

    async def too_much():
        runs.append(1)
        await asyncio.sleep(0)
        with sm.budget(calls=0):
            reserve()

    failures = await asyncio.gather(*(flights.run(1, too_much) for _ in range(3)), return_exceptions=True)
    assert len(set(failures)) == 1
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
