"""Deadlines: in time, naming who was waiting, for the block and nobody else."""

import asyncio
import re
import threading
import time

import pytest
import trio
import trio.testing

from synmod.errors import ArgumentError, DeadlineExceeded
from synmod.leaves.aio import backend, checkpoint, is_cancellation, sleep, task_group, to_thread, use_clock
from synmod.scope import NO_BLOCKS, ambient, check_deadline, current_call, deadline, time_left
from tests.clock import ManualClock
from tests.scope.part import Part

LATE_S = 20.0  # what a loaded machine may add; the promise of 50 ms is measured by the benchmarks


async def forever(_=None):
    await sleep(60)


def test_a_block_ends_in_time(any_loop):
    """Waiting code is cancelled, and the block raises."""

    async def main():
        started = time.monotonic()
        with pytest.raises(DeadlineExceeded, match=r"0\.05 s") as caught:
            with deadline(0.05):
                await sleep(60)
        assert isinstance(caught.value, TimeoutError)
        assert 0.04 < time.monotonic() - started < 0.05 + LATE_S
        await checkpoint()  # nothing of the cancellation is left
        if backend() == "asyncio":
            assert not asyncio.current_task().cancelling()

    any_loop(main)


def test_a_block_that_ends_in_time_leaves_nothing(any_loop):
    """No timer fires afterwards."""

    async def main():
        with deadline(0.05):
            await sleep(0)
        assert time_left() is None
        await sleep(0.1)

    any_loop(main)


def test_the_error_names_the_path_that_was_waiting(any_loop):
    """The innermost call that the end of the time found waiting."""
    leaf = Part("leaf", forever)
    middle = Part("middle", lambda _: leaf(), leaf=leaf)
    top = Part("top", lambda _: middle(), step=middle)

    async def main():
        with deadline(0.05):
            await top()

    with pytest.raises(DeadlineExceeded, match="'step/leaf'"):
        any_loop(main)


def test_a_branch_that_was_waiting_is_named_too(any_loop):
    """Calls of child tasks are found as well."""
    slow = Part("slow", forever)

    async def branches(_):
        async with task_group() as group:
            group.start_soon(slow)

    async def main():
        with deadline(0.05):
            await Part("top", branches, slow=slow)()

    with pytest.raises(DeadlineExceeded, match="'slow'"):
        any_loop(main)


def test_waiting_outside_of_calls_names_where_the_block_stands(any_loop):
    """Inside a call that call, else plain code."""

    async def body(_):
        with deadline(0.01):
            await sleep(60)

    async def main():
        with pytest.raises(DeadlineExceeded, match=r"'part \(p\)'"):
            part = Part("p", body)
            await Part("top", lambda _: part(), part=part)()
        with pytest.raises(DeadlineExceeded, match="outside"):
            await body(None)

    any_loop(main)


@pytest.mark.parametrize(("outer", "inner", "named"), [(0.03, 60, "0.03"), (60, 0.03, "0.03"), (0.03, 0.03, "0.03")])
def test_the_earliest_of_nested_ones_holds(any_loop, outer, inner, named):
    """An outer deadline cannot be stretched inside."""

    async def main():
        with deadline(outer), deadline(inner):
            assert time_left() <= min(outer, inner)
            await sleep(60)

    with pytest.raises(DeadlineExceeded, match=re.escape(named)):
        any_loop(main)


def test_an_outer_deadline_is_a_cancellation_for_inner_calls(any_loop):
    """What it ends inside has been cancelled, not failed."""
    part = Part("p", forever)

    async def main():
        with pytest.raises(DeadlineExceeded), deadline(0.3):
            with deadline(60):
                await part()

    any_loop(main)
    assert (part.counters.cancelled, part.counters.failed) == (1, 0)


def test_each_wait_after_the_time_raises_again(any_loop):
    """Code that swallows the cancellation is cancelled at its next wait."""
    swallowed = []

    async def main():
        with deadline(0.01):
            while True:
                try:
                    await sleep(60)
                except BaseException as error:
                    if not is_cancellation(error) or len(swallowed) >= 3:
                        raise
                    swallowed.append(1)

    with pytest.raises(DeadlineExceeded):
        any_loop(main)
    assert len(swallowed) == 3


def test_an_error_of_the_block_surfaces_as_itself(any_loop):
    """What the body raises is not hidden by the deadline."""

    async def main():
        with deadline(0.01):
            try:
                await sleep(60)
            finally:
                raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        any_loop(main)


async def test_a_plain_cancellation_passes():
    """A deadline turns its own cancellation into an error, and no other."""

    async def waits():
        with deadline(60):
            await forever()

    task = asyncio.create_task(waits())
    await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_tasks_begun_elsewhere_are_not_cancelled_but_begin_nothing_more():
    """After the time a call that they begin raises at once, also when the block is over."""
    seen, part = [], Part("p")

    async def elsewhere():
        await part()
        await asyncio.sleep(0.1)
        seen.append("not cancelled")
        with pytest.raises(DeadlineExceeded, match="'p'"):
            await part()
        seen.append("refused")

    with pytest.raises(DeadlineExceeded), deadline(0.05):
        task = asyncio.create_task(elsewhere())
        await asyncio.sleep(60)
    await task
    assert seen == ["not cancelled", "refused"]
    assert part.counters.failed == 1
    await part()


async def test_a_block_that_ended_in_time_holds_nobody():
    """Tasks that outlive it may go on as long as they like."""
    part, gone = Part("p"), asyncio.Event()

    async def elsewhere():
        assert time_left() is not None
        await gone.wait()
        await asyncio.sleep(0.1)
        assert time_left() is None
        await part()

    with deadline(0.05):
        task = asyncio.create_task(elsewhere())
        await asyncio.sleep(0)
    gone.set()
    await task
    assert part.counters.invocations == 1


def test_outside_a_loop_each_entry_call_is_limited():
    """Plain code goes on, entry calls begun inside are cancelled and raise."""
    part = Part("p", forever)
    leaf = Part("leaf", forever)

    async def main():
        await part()

    with deadline(0.1):
        assert 0 < time_left() <= 0.1
        with pytest.raises(DeadlineExceeded, match="'leaf'"):
            asyncio.run(Part("top", lambda _: leaf(), leaf=leaf)())
        time.sleep(0.1)
        assert time_left() == 0.0
        with pytest.raises(DeadlineExceeded):
            asyncio.run(main())
        with pytest.raises(DeadlineExceeded):
            trio.run(main)
    assert time_left() is None
    assert part.counters.failed + part.counters.cancelled == 2


def test_plain_code_is_never_interrupted():
    """A deadline around plain code that is late raises nothing."""
    with deadline(0.001):
        time.sleep(0.01)
        assert time_left() <= 0
    assert time_left() is None


def test_code_that_did_not_wait_is_not_late(any_loop):
    """Work that ends without waiting has its result."""

    async def main():
        with deadline(0.001):
            time.sleep(0.01)
        return "done"

    assert any_loop(main) == "done"


def test_zero_seconds_end_at_the_first_wait(any_loop):
    """No call begins, no wait ends."""
    part = Part("p")

    async def main():
        with deadline(0), pytest.raises(DeadlineExceeded):
            await part()
        with pytest.raises(DeadlineExceeded), deadline(0):
            await checkpoint()

    any_loop(main)


@pytest.mark.parametrize("seconds", [-1, -0.001, float("nan"), None, "5", True])
def test_what_is_no_time_is_refused(seconds):
    """Told where it is written."""
    with pytest.raises(ArgumentError, match="seconds"):
        deadline(seconds)


def test_an_endless_deadline_is_none(any_loop):
    """Infinity limits nothing."""

    async def main():
        with deadline(float("inf")):
            assert time_left() == float("inf")
            await sleep(0)

    any_loop(main)


def test_checks_name_what_would_begin():
    """A check takes a frame or a path."""
    with deadline(0):
        with pytest.raises(DeadlineExceeded, match="'models/writer'"):
            check_deadline("models/writer")
    check_deadline("models/writer")


def test_the_clock_of_the_loop_counts():
    """Under a test clock an hour is over at once."""

    async def main():
        with pytest.raises(DeadlineExceeded), deadline(3600):
            assert time_left() == 3600
            await trio.sleep(1800)
            assert time_left() == 1800
            await trio.sleep(7200)

    trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0))


def test_an_injected_clock_counts():
    """Checks follow the clock that a test injects."""

    clock = ManualClock()
    with use_clock(clock), deadline(10):
        clock.time = 9.0
        assert time_left() == 1.0
        check_deadline("x")
        clock.time = 10.0
        with pytest.raises(DeadlineExceeded):
            check_deadline("x")


def test_the_rest_is_seen_in_worker_threads(any_loop):
    """A thread that the block waits for knows how long it may take."""

    async def main():
        with deadline(60):
            assert 50 < await to_thread(time_left) <= 60

    any_loop(main)


def test_a_deadline_closed_by_another_task_raises_nothing():
    """A generator that holds one may be closed anywhere."""

    async def main():
        async def held():
            with deadline(0.05):
                yield

        generator = held()
        await anext(generator)
        await asyncio.create_task(generator.aclose())
        assert ambient() is NO_BLOCKS
        await asyncio.sleep(0.1)

    asyncio.run(main())


def test_a_thousand_deadlines_at_once(any_loop):
    """Each ends in its own time, and nobody else's."""
    ended = []

    async def one(n):
        try:
            with deadline(0.05 if n % 2 else 60):
                await sleep(60 if n % 2 else 0.01)
        except DeadlineExceeded:
            ended.append(n)
        assert current_call() is None
        assert time_left() is None

    async def main():
        async with task_group() as group:
            for n in range(1000):
                group.start_soon(one, n)

    any_loop(main)
    assert sorted(ended) == list(range(1, 1000, 2))


def test_a_deadline_of_another_thread_is_not_seen():
    """A new thread starts without one."""
    seen = []
    with deadline(60):
        thread = threading.Thread(target=lambda: seen.append(time_left()))
        thread.start()
        thread.join()
    assert seen == [None]
