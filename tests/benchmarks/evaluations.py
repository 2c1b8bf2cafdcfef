"""A pool and an evaluation beside asyncio tasks under a semaphore, which keep everything and bound nothing."""

import asyncio

import synmod as sm
from tests.benchmarks.calls import Question
from tests.benchmarks.measure import paired

WORKERS = 64


async def by_hand(fn, items):
    """A task for each item, a bounded number of them at work: what one writes without a pool."""
    limit = asyncio.Semaphore(WORKERS)

    async def limited(item):
        async with limit:
            return await fn(item)

    return await asyncio.gather(*map(limited, items))


async def pooled(fn, items):
    """The same by a worker pool of ours, which also bounds what waits."""
    async with sm.map_concurrently(fn, items, concurrency=WORKERS, progress=False) as results:
        return [result async for result in results]


class Waits(sm.Module):
    """A call that waits once."""

    async def call(self, inputs: Question) -> Question:
        await asyncio.sleep(0)
        return inputs


async def nothing(item):
    """An item whose work waits once, as a call of a provider does."""
    await asyncio.sleep(0)
    return item


def is_right(y_true, y_pred):
    """The reward of both sides."""
    return y_pred["text"] == y_true


def rows(scale=1.0):
    """Measure."""
    times = max(int(5_000 * scale), 100)
    items = range(times)
    yield paired(
        "an item of a worker pool",
        lambda: asyncio.run(pooled(nothing, items)),
        lambda: asyncio.run(by_hand(nothing, items)),
        budget=2,
        per=times,
    )
    program = Waits()
    data = [(sm.JsonDataModel(Question(text="x")), "x")] * times

    async def judged(pair):
        outputs = await program(pair[0])
        return outputs, is_right(pair[1], outputs)

    yield paired(
        "a row of an evaluation, added to its call and its reward",
        lambda: asyncio.run(sm.evaluate(program, data, reward=is_right, concurrency=WORKERS, progress=False)),
        lambda: asyncio.run(by_hand(judged, data)),
        budget=100,
        unit="µs",
        per=times,
    )
