"""A call, a chain of calls and a fan-out of calls, beside the least that a call with a frame and counters can cost."""

import asyncio
from contextvars import ContextVar

import synmod as sm
from tests.benchmarks.measure import paired


class Question(sm.DataModel):
    """What goes in and comes out."""

    text: str


class Pass(sm.Module):
    """The trivial module."""

    async def call(self, inputs):
        return inputs


class Chain(sm.Module):
    """Ten calls, one after the other."""

    def __init__(self, length):
        super().__init__()
        self.members = [Pass() for _ in range(length)]

    async def call(self, inputs):
        for member in self.members:
            inputs = await member(inputs)
        return inputs


class Within(sm.Module):
    """Runs a measured coroutine function inside a call, so that what it calls is nested."""

    async def call(self, inputs, *, work):
        await work(inputs)
        return inputs


FRAME = ContextVar("floor_frame", default=None)


class Frame:
    """The least frame: who called."""

    __slots__ = ("parent",)

    def __init__(self, parent):
        self.parent = parent


class Floor:
    """A call with a frame in a ContextVar and two counters, written by hand."""

    def __init__(self):
        self.begun = self.ended = 0

    async def call(self, inputs):
        return inputs

    async def __call__(self, inputs):
        token = FRAME.set(Frame(FRAME.get()))
        self.begun += 1
        try:
            return await self.call(inputs)
        finally:
            self.ended += 1
            FRAME.reset(token)


class FloorChain(Floor):
    """The same for ten calls."""

    def __init__(self, length):
        super().__init__()
        self.members = [Floor() for _ in range(length)]

    async def call(self, inputs):
        for member in self.members:
            inputs = await member(inputs)
        return inputs


def _repeat(module, times):
    async def work(inputs):
        for _ in range(times):
            await module(inputs)

    return work


def _nested(work):
    """Run `work` inside a module call."""
    within, value = Within(), sm.JsonDataModel(Question(text="x"))
    return lambda: asyncio.run(within(value, work=work))


def _fan_out(branches, times):
    """A program of parallel branches, and as many tasks of a TaskGroup that each make the floor call."""
    start = sm.Input(data_model=Question)
    members = [Pass(name=f"m{index}") for index in range(branches)]

    async def compose():
        return sm.Program(inputs=start, outputs=[await member(start) for member in members])

    program = asyncio.run(compose())
    floors = [Floor() for _ in range(branches)]
    value = sm.JsonDataModel(Question(text="x"))

    async def ours():
        for _ in range(times):
            await program(value)

    async def floor():
        for _ in range(times):
            async with asyncio.TaskGroup() as group:
                for each in floors:
                    group.create_task(each(value))

    return lambda: asyncio.run(ours()), lambda: asyncio.run(floor())


def _programs(length):
    """The same steps as a functional program and as a Sequential."""

    async def compose():
        outputs = start = sm.Input(data_model=Question)
        for _ in range(length):
            outputs = await Pass()(outputs)
        return sm.Program(inputs=start, outputs=outputs)

    return asyncio.run(compose()), sm.Sequential([Pass() for _ in range(length)])


def rows(scale=1.0):
    """Measure."""
    times = max(int(20_000 * scale), 10)
    yield paired(
        "a trivial nested call",
        _nested(_repeat(Pass(), times)),
        _nested(_repeat(Floor(), times)),
        budget=3.5,
        per=times,
    )
    chains = times // 10 or 1
    yield paired(
        "a chain of 10",
        _nested(_repeat(Chain(10), chains)),
        _nested(_repeat(FloorChain(10), chains)),
        budget=4,
        per=chains,
    )
    steps = max(int(100 * scale), 2)
    functional, sequential = _programs(steps)
    yield paired(
        "a step of a functional program, beside a Sequential",
        _nested(_repeat(functional, chains // 10 or 1)),
        _nested(_repeat(sequential, chains // 10 or 1)),
        budget=1.5,
        per=(chains // 10 or 1) * steps,
    )
    runs = max(int(100 * scale), 1)
    ours, floor = _fan_out(100, runs)
    yield paired("a fan-out of 100 branches", ours, floor, budget=2, per=runs)
