"""What a module that takes part in skips pays for it, beside the same module without."""

import asyncio

import synmod as sm
from synmod.skip import pop, skippable, stash
from tests.benchmarks.calls import Pass, Question, _nested, _repeat
from tests.benchmarks.measure import alone, paired


@skippable(stash=["doc"])
class Replaces(sm.Module):
    """Stashes over what is there."""

    async def call(self, inputs):
        stash("doc", inputs, replace=True)
        return inputs


@skippable(stash=["doc"])
class Put(sm.Module):
    """Puts in."""

    async def call(self, inputs):
        stash("doc", inputs)
        return inputs


@skippable(pop=["doc"])
class Take(sm.Module):
    """Takes out."""

    async def call(self, inputs):
        pop("doc")
        return inputs


class Pair(sm.Module):
    """A producer and a consumer, one after the other."""

    def __init__(self, one, other):
        super().__init__()
        self.one, self.other = one, other

    async def call(self, inputs):
        return await self.other(await self.one(inputs))


class Crowd(sm.Module):
    """Runs one of its parts many times, inside a call."""

    def __init__(self, part):
        super().__init__()
        self.part = part

    async def call(self, inputs, *, times):
        for _ in range(times):
            await self.part(inputs)
        return inputs


def _runs(part, times):
    crowd, value = Crowd(part), sm.JsonDataModel(Question(text="x"))
    return lambda: asyncio.run(crowd(value, times=times))


def _above(what, ours, floor, *, budget_us, per):
    """The microseconds that `ours` takes more than `floor`, as a row of its own."""
    row = paired(what, ours, floor, budget=1, per=per)
    more = row.ours_us - (row.floor_us or 0.0)
    return type(row)(what, row.ours_us, None, budget_us, max(more, 0.001))


def rows(scale=1.0):
    """Measure."""
    times = max(int(5_000 * scale), 10)
    yield _above(
        "dispatch of a skippable call", _runs(Replaces(), times), _runs(Pass(), times), budget_us=20, per=times
    )
    yield _above(
        "a stash and its pop",
        _runs(Pair(Put(), Take()), times),
        _runs(Pair(Pass(), Pass()), times),
        budget_us=40,
        per=times,
    )
    yield alone("a call that declares nothing", _nested(_repeat(Pass(), times)), budget_us=5, per=times)
