"""The clock that holds is the injected one, else that of the loop."""

import asyncio
import time

import trio
import trio.testing

from synmod.leaves.aio import current_clock, use_clock, wall_time
from tests.clock import ManualClock


def test_outside_a_loop_the_monotonic_clock_holds():
    """Plain code reads the clock of the machine."""
    before = time.monotonic()
    assert before <= current_clock().now() <= time.monotonic()


def test_an_injected_clock_holds_in_the_block_and_its_tasks(any_loop):
    """A test sets the time, and waiting takes none."""

    async def main():
        clock = ManualClock(5.0)
        with use_clock(clock):
            started = time.monotonic()
            await current_clock().sleep(3600)
            assert current_clock().now() == 3605.0
            assert time.monotonic() - started < 5
        assert current_clock() is not clock

    any_loop(main)


def test_the_test_clock_of_a_trio_run_holds():
    """Under trio's mock clock an hour of waiting takes no time, and is seen from another thread too."""

    async def main():
        clock = current_clock()
        before = clock.now()
        await clock.sleep(3600)
        assert clock.now() - before == 3600
        assert await trio.to_thread.run_sync(clock.now) - before >= 3600

    trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0))


def test_a_loop_with_a_time_of_its_own_holds():
    """What an asyncio loop says of the time is what the clock says."""

    async def main():
        loop = asyncio.get_running_loop()
        loop.time = lambda: 42.0
        now = current_clock().now()
        del loop.time
        return now

    assert asyncio.run(main()) == 42.0


def test_a_block_left_in_another_context_raises_nothing():
    """A generator closed elsewhere leaves the clocks of others alone."""

    def held():
        with use_clock(ManualClock()):
            yield

    import contextvars

    generator, here = held(), ManualClock()
    contextvars.copy_context().run(next, generator)
    with use_clock(here):
        contextvars.copy_context().run(generator.close)
        assert current_clock() is here


def test_wall_time_is_that_of_the_system_or_of_a_test():
    """The same in every loop and library; where a test's clock holds, it moves along."""

    async def told():
        return wall_time()

    async def moved():
        before = wall_time()
        await trio.sleep(1_000)
        return wall_time() - before

    assert all(abs(each - time.time()) < 60 for each in (wall_time(), asyncio.run(told()), trio.run(told)))
    assert trio.run(moved, clock=trio.testing.MockClock(autojump_threshold=0)) == 1_000
    with use_clock(ManualClock(7.5)):
        assert wall_time() == asyncio.run(told()) == 7.5
