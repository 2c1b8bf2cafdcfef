"""Many calls that each wait 50 ms, beside the bare asyncio program that does the same waits."""

import asyncio

import synmod as sm
from tests.benchmarks.calls import Question
from tests.benchmarks.measure import paired, wall

SECONDS = 0.05


class Wait(sm.Module):
    """Waits as a model call would."""

    async def call(self, inputs):
        await asyncio.sleep(SECONDS)
        return inputs


async def _ours(module, value, count):
    async with asyncio.TaskGroup() as group:
        for _ in range(count):
            group.create_task(module(value))


async def _bare(count):
    async def wait():
        await asyncio.sleep(SECONDS)

    async with asyncio.TaskGroup() as group:
        for _ in range(count):
            group.create_task(wait())


def rows(scale=1.0):
    """Measure."""
    module, value = Wait(), sm.JsonDataModel(Question(text="x"))
    for full, budget in ((1_000, 1.5), (10_000, 2)):
        count = max(int(full * scale), 5)
        yield paired(
            f"{full:,} calls that each wait 50 ms",
            lambda count=count: asyncio.run(_ours(module, value, count)),
            lambda count=count: asyncio.run(_bare(count)),
            budget=budget,
            rounds=5,
            clock=wall,
        )
