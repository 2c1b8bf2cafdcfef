"""Worker pools: bounded on both sides, ordered or not, ended with their block."""

import asyncio
import contextvars
import dataclasses
import itertools
import tracemalloc

import pytest
from hypothesis import given, strategies as st

from synmod.errors import ArgumentError, RunError
from synmod.flow import Failed, map_concurrently
from synmod.leaves import aio
from synmod.scope import current_phase, phase

WHERE = contextvars.ContextVar("where", default="nowhere")


async def double(x):
    return 2 * x


def delayed(turns):
    async def work(x):
        for _ in range(turns[x % len(turns)]):
            await aio.sleep(0)
        return 2 * x

    return work


async def collect(pool):
    async with pool as results:
        return [result async for result in results]


async def numbers(end):
    for x in range(end):
        await aio.sleep(0)
        yield x


def test_results_come_in_input_order(any_loop):
    """Slow items hold the order, not the work."""
    assert any_loop(lambda: collect(map_concurrently(delayed([5, 0, 2]), range(50), concurrency=4))) == [
        2 * x for x in range(50)
    ]


def test_unordered_results_come_with_their_index(any_loop):
    """Completion order, as (index, result)."""

    async def main():
        results = await collect(map_concurrently(delayed([9, 0]), range(10), concurrency=10, ordered=False))
        assert sorted(results) == [(x, 2 * x) for x in range(10)]
        return [index for index, _ in results]

    assert any_loop(main)[0] % 2 == 1


def test_an_async_source_is_read_by_one_task(any_loop):
    """An async generator is never entered twice."""
    assert any_loop(lambda: collect(map_concurrently(double, numbers(30), concurrency=7))) == [2 * x for x in range(30)]


@given(
    st.integers(0, 30), st.integers(1, 8), st.none() | st.integers(0, 5), st.booleans(), st.booleans(),
    st.lists(st.integers(0, 4), min_size=1, max_size=5),
)  # fmt: skip
def test_every_item_is_done_once_whatever_the_sizes(count, concurrency, buffer, ordered, is_async, turns):
    """Any mix of sizes, orders, sources and delays gives each result once, and leaves no task."""

    async def main():
        source = numbers(count) if is_async else range(count)
        pool = map_concurrently(delayed(turns), source, concurrency=concurrency, buffer=buffer, ordered=ordered)
        results = await collect(pool)
        assert len(asyncio.all_tasks()) == 1
        return results

    results = asyncio.run(main())
    expected = [2 * x for x in range(count)]
    if ordered:
        assert results == expected
    else:
        assert sorted(results) == list(enumerate(expected))


def test_work_pending_is_at_most_workers_plus_buffer(any_loop):
    """A slow consumer stops the pool: what is read and not taken never exceeds the bound."""

    async def main():
        read = taken = most = 0

        def source():
            nonlocal read, most
            for x in itertools.count():
                read += 1
                most = max(most, read - taken)
                yield x

        async with map_concurrently(double, source(), concurrency=3, buffer=2) as results:
            async for result in results:
                taken += 1
                for _ in range(20):
                    await aio.sleep(0)
                if result == 40:
                    break
        return most

    assert any_loop(main) <= 3 + 2


def test_a_slow_head_holds_only_the_buffer(any_loop):
    """Finished items wait for a slow head within the buffer, and the pool goes on afterwards."""

    async def main():
        release = aio.Signal()
        begun = []

        async def work(x):
            begun.append(x)
            if x == 0:
                await release.wait()
            return x

        async with map_concurrently(work, itertools.count(), concurrency=2, buffer=3) as results:
            async with aio.task_group() as group:

                async def take():
                    return [await anext(results) for _ in range(8)]

                async def later():
                    for _ in range(60):
                        await aio.sleep(0)
                    assert len(begun) == 5
                    release.set()

                group.start_soon(later)
                taken = await take()
        return taken

    assert any_loop(main) == list(range(8))


@pytest.mark.slow
async def test_a_million_items_in_flat_memory():
    """A long generator is a stream: memory does not grow with it."""
    tracemalloc.start()
    try:
        peaks = []
        for count in (2_000, 20_000):
            tracemalloc.reset_peak()
            before, _ = tracemalloc.get_traced_memory()
            async with map_concurrently(double, (x for x in range(count)), concurrency=8) as results:
                async for _ in results:
                    pass
            peaks.append(tracemalloc.get_traced_memory()[1] - before)
    finally:
        tracemalloc.stop()
    assert peaks[1] < peaks[0] * 2 + 50_000


def test_the_first_failure_is_raised_with_its_index(any_loop):
    """The rest is cancelled; the error is the item's own, with a note."""

    async def main():
        cancelled = []

        async def work(x):
            if x == 3:
                raise LookupError("three")
            try:
                await aio.sleep(60)
            finally:
                cancelled.append(x)

        pool = map_concurrently(work, range(10), concurrency=5)
        with pytest.raises(LookupError, match="three") as caught:
            await collect(pool)
        assert any("item 3" in note for note in caught.value.__notes__)
        assert set(cancelled) <= {0, 1, 2, 4}
        with pytest.raises(StopAsyncIteration):
            await anext(pool)

    any_loop(main)


def test_collected_failures_stand_in_their_places(any_loop):
    """`Failed(index, error)` in place of the result; the others go on."""

    async def main():
        async def work(x):
            await aio.sleep(0)
            if x % 3 == 1:
                raise LookupError(x)
            return None if x == 0 else x

        return await collect(map_concurrently(work, range(6), concurrency=2, on_error="collect"))

    results = any_loop(main)
    assert results[0] is None
    assert [type(result) for result in results[1:]] == [Failed, int, int, Failed, int]
    assert (results[1].index, results[1].error.args) == (1, (1,))


def test_a_source_that_raises_ends_the_pool(any_loop):
    """Like a failing item, with either kind of source and either word for errors."""

    def plain():
        yield 1
        raise LookupError("source")

    async def asynchronous():
        yield 1
        raise LookupError("source")

    async def main():
        for source in (plain, asynchronous):
            for on_error in ("raise", "collect"):
                with pytest.raises(LookupError, match="source"):
                    await collect(map_concurrently(double, source(), on_error=on_error))

    any_loop(main)


async def test_a_cancellation_out_of_an_item_is_no_result():
    """An item that is cancelled by itself ends the pool with that cancellation, also while collecting."""

    async def work(x):
        if x == 2:
            raise asyncio.CancelledError("own")
        await asyncio.sleep(0)
        return x

    for on_error in ("raise", "collect"):
        with pytest.raises(asyncio.CancelledError, match="own"):
            await collect(map_concurrently(work, range(5), concurrency=2, on_error=on_error))
    assert len(asyncio.all_tasks()) == 1
    assert asyncio.current_task().cancelling() == 0


def test_leaving_the_block_ends_the_workers_at_once(any_loop):
    """After `async with` nothing works any more, and their clean-up has run."""

    async def main():
        running = set()

        async def work(x):
            running.add(x)
            try:
                await aio.sleep(0 if x == 0 else 60)
            finally:
                running.discard(x)

        async with map_concurrently(work, itertools.count(), concurrency=4) as results:
            async for _ in results:
                break
        assert not running
        with pytest.raises(StopAsyncIteration):
            await anext(results)

    any_loop(main)


async def test_one_task_per_item_at_work():
    """As many as are allowed at once, and one that reads."""
    most = 0

    async def work(x):
        nonlocal most
        most = max(most, len(asyncio.all_tasks()))
        await asyncio.sleep(0)
        return x

    await collect(map_concurrently(work, range(200), concurrency=5))
    assert most == 1 + 1 + 5


async def test_without_its_block_a_pool_shows_the_line_to_write():
    """`async for` alone, or `anext`, is a RunError; a pool serves one block."""
    with pytest.raises(RunError, match="async with sm.map_concurrently"):
        async for _ in map_concurrently(double, range(3)):
            pass
    with pytest.raises(RunError, match="async with"):
        await anext(map_concurrently(double, range(3)))
    pool = map_concurrently(double, range(3))
    assert await collect(pool) == [0, 2, 4]
    with pytest.raises(RunError, match="once"):
        await collect(pool)
    assert len(asyncio.all_tasks()) == 1


async def test_cancelled_at_each_await_no_worker_is_left():
    """Cancelled at the k-th turn of the loop, for every k, the consumer ends cancelled with all workers."""
    k, finished = 0, False
    while not finished:
        pool = map_concurrently(delayed([3, 1, 2]), numbers(12), concurrency=3, buffer=1)
        task = asyncio.ensure_future(collect(pool))
        for _ in range(k):
            await asyncio.sleep(0)
        finished = task.done()
        if not finished:
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        assert len(asyncio.all_tasks()) == 1
        k += 1
    assert k > 10


async def test_each_step_is_a_cancellation_point():
    """Taking a finished result can be cancelled as well."""
    async with map_concurrently(double, range(10), concurrency=2) as results:
        await anext(results)
        task = asyncio.ensure_future(anext(results))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task


def test_a_failure_of_clean_up_leaves_the_block(any_loop):
    """Also where the consumer has left before the end: no error is swallowed."""

    async def work(x):
        try:
            return x if x == 0 else await aio.sleep(3600)
        finally:
            if x == 3:
                raise KeyError(x)

    async def main():
        with pytest.raises(KeyError):
            async with map_concurrently(work, range(10), concurrency=8) as results:
                async for _ in results:
                    break

    any_loop(main)


def test_each_item_runs_in_a_copy_of_the_callers_context(any_loop):
    """What the caller set holds; what an item sets is seen by no other item, and not by the caller."""

    async def main():
        seen = []

        async def work(x):
            seen.append((WHERE.get(), current_phase()))
            WHERE.set(f"item {x}")
            await aio.sleep(0)
            assert WHERE.get() == f"item {x}"
            return x

        WHERE.set("caller")
        with phase("reward"):
            pool = map_concurrently(work, range(12), concurrency=3)
            WHERE.set("later")
            await collect(pool)
        assert set(seen) == {("caller", "reward")}
        assert WHERE.get() == "later"

    any_loop(main)


async def test_shields_hold_inside_items():
    """Clean-up that an item shields is not cut off when the pool ends."""
    cleaned = []

    async def work(x):
        try:
            await asyncio.sleep(60)
        finally:
            with aio.shield(1):
                await asyncio.sleep(0.005)
                await asyncio.sleep(0.005)
                cleaned.append(x)

    async def fail(x):
        if x == 2:
            await asyncio.sleep(0.001)
            raise LookupError
        return await work(x)

    with pytest.raises(LookupError):
        await collect(map_concurrently(fail, range(3), concurrency=3))
    assert sorted(cleaned) == [0, 1]


async def test_a_plain_function_runs_in_line():
    """`fn` may return its result at once."""
    assert await collect(map_concurrently(lambda x: x + 1, [1, 2])) == [2, 3]


def test_a_thousand_workers_run_at_once(any_loop):
    """Concurrency is what was asked for, no stack grows with it."""

    async def main():
        most = now = 0

        async def work(x):
            nonlocal most, now
            now += 1
            most = max(most, now)
            await aio.sleep(0.01)
            now -= 1
            return x

        assert await collect(map_concurrently(work, range(1_000), concurrency=1_000)) == list(range(1_000))
        assert await collect(map_concurrently(double, range(5_000), concurrency=1_000)) == [2 * x for x in range(5_000)]
        return most

    assert any_loop(main) == 1_000


async def test_progress_is_told_of_every_item():
    """begin with the total, one advance for each finished item, end with the outcome."""

    class Seen:
        def __init__(self):
            self.told = []

        def begin(self, label, total):
            self.told.append(("begin", total))

        def advance(self, n, **numbers):
            self.told.append((n, numbers["failed"]))

        def end(self, outcome):
            self.told.append(outcome)

    async def work(x):
        if x == 1:
            raise LookupError
        return x

    seen = Seen()
    await collect(map_concurrently(work, [0, 1, 2], concurrency=1, on_error="collect", progress=seen))
    assert seen.told == [("begin", 3), (1, 0), (1, 1), (1, 1), "done"]
    failing = Seen()
    with pytest.raises(LookupError):
        await collect(map_concurrently(work, (x for x in [1]), progress=failing))
    assert failing.told == [("begin", None), "failed"]


@pytest.mark.parametrize("broken", ["begin", "advance", "end"])
async def test_a_progress_object_that_raises_is_dropped_with_a_line(broken, caplog):
    """Who watches the work never ends it, and is not asked again."""
    told = []

    class Broken:
        def __getattr__(self, what):
            def tell(*_, **__):
                told.append(what)
                if what == broken:
                    raise OSError("no screen")

            return tell

    assert await collect(map_concurrently(double, range(5), progress=Broken())) == [0, 2, 4, 6, 8]
    assert told.count(broken) == 1
    assert told[-1] == broken
    assert [record.name for record in caplog.records] == ["synmod.progress"]


def test_an_async_generator_that_is_left_has_cleaned_up(any_loop):
    """By the end of the block, also where it waits to do so; what it raises then leaves the block, unless more does."""
    closed = []

    async def endless(error=None):
        try:
            for x in itertools.count():
                yield x
        finally:
            await aio.sleep(0)
            closed.append(True)
            if error is not None:
                raise error

    async def leave(source, reason=None):
        async with map_concurrently(double, source) as results:
            async for _ in results:
                if reason is not None:
                    raise reason
                break
        return len(closed)

    async def main():
        assert await leave(endless()) == 1
        with pytest.raises(OSError, match="unclean"):
            await leave(endless(OSError("unclean")))
        with pytest.raises(KeyError):
            await leave(endless(OSError("unclean")), KeyError())

    any_loop(main)
    assert closed == [True] * 3


async def test_errors_that_refuse_attributes_are_raised_as_themselves():
    """A frozen exception gets its index as a note like any other."""

    @dataclasses.dataclass(frozen=True)
    class Frozen(Exception):
        x: int

    async def work(x):
        raise Frozen(x)

    with pytest.raises(Frozen) as caught:
        await collect(map_concurrently(work, range(3), concurrency=1))
    assert caught.value.__notes__ == ["item 0 of map_concurrently"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"concurrency": 0}, "concurrency must be .*, got 0"),
        ({"concurrency": 1.5}, "concurrency must be .*, got 1.5"),
        ({"concurrency": True}, "concurrency must be .*, got True"),
        ({"buffer": -1}, "buffer must be .*, got -1"),
        ({"on_error": "colect"}, "Did you mean 'collect'"),
        ({"items": 3}, "iterable"),
        ({"fn": 3}, "function"),
    ],
)
def test_bad_arguments_are_refused_at_once(arguments, words):
    """ArgumentError before anything starts."""
    fn = arguments.pop("fn", double)
    items = arguments.pop("items", [1])
    with pytest.raises(ArgumentError, match=words):
        map_concurrently(fn, items, **arguments)
