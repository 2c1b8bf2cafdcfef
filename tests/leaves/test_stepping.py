"""Generators driven step by step: a block around each run, nothing held across a yield, everything passed on."""

import asyncio
import gc
import inspect
from contextvars import ContextVar

import pytest

from synmod.leaves import aio
from synmod.leaves.stepping import stepwise, stepwise_async

INSIDE = ContextVar("inside", default=False)
BARE = ContextVar("bare")


class Runs:
    """Makes the blocks of runs: notes what they were given and how they ended; inside is inside."""

    def __init__(self):
        self.begun, self.failures, self.arguments = 0, [], None

    def __call__(self, *args, **kwargs):
        self.arguments = args, kwargs
        return Block(self)


class Block:
    """One run, plain or async."""

    def __init__(self, runs):
        self.runs, self.token = runs, None

    def __enter__(self):
        self.runs.begun += 1
        self.token = INSIDE.set(True)

    def __exit__(self, _, failure, __):
        assert INSIDE.get()
        self.runs.failures.append(type(failure).__name__)
        try:
            INSIDE.reset(self.token)
        except ValueError:
            INSIDE.set(False)

    async def __aenter__(self):
        await aio.checkpoint()
        self.__enter__()

    async def __aexit__(self, *failure):
        self.__exit__(*failure)


async def counted(count, log):
    """Yields numbers, notes what is sent, goes on after a KeyError."""
    try:
        for number in range(count):
            await aio.checkpoint()
            assert INSIDE.get()
            try:
                log.append((yield number))
            except KeyError:
                yield "caught"
    finally:
        log.append(f"end, inside: {INSIDE.get()}")


def test_async_steps_run_inside(any_loop):
    """Exhausted, sent to, thrown into, closed early: the consumer never sees the block, every run ends."""
    runs, log = Runs(), []
    wrapped = stepwise_async(counted, runs)
    assert inspect.isasyncgenfunction(wrapped)
    assert wrapped.__wrapped__ is counted

    async def consume():
        async for _ in wrapped(2, log=log):
            assert not INSIDE.get()
        assert log == [None, None, "end, inside: True"]
        generator = wrapped(9, log)
        assert await generator.asend(None) == 0
        assert await generator.asend("sent") == 1
        assert await generator.athrow(KeyError()) == "caught"
        assert not INSIDE.get()
        await generator.aclose()
        assert log[3:] == ["sent", "end, inside: True"]
        failing = wrapped(9, log)
        await failing.asend(None)
        with pytest.raises(ValueError, match="mine"):
            await failing.athrow(ValueError("mine"))
        with pytest.raises(StopAsyncIteration):
            await failing.asend(None)
        assert not INSIDE.get()

    any_loop(consume)
    assert runs.begun == 3
    assert runs.failures == ["NoneType", "GeneratorExit", "ValueError"]
    assert runs.arguments == ((9, log), {})


async def test_what_a_body_sets_is_its_own():
    """A block open at a yield, and a variable that had no value, hold at each step and nowhere between."""

    async def sets(value):
        token, bare = INSIDE.set(value), BARE.set(value)
        try:
            while True:
                yield INSIDE.get(), BARE.get()
        finally:
            INSIDE.reset(token)
            BARE.reset(bare)

    wrapped = stepwise_async(sets, Runs())
    one, other = wrapped("one"), wrapped("other")
    for _ in range(3):
        assert await anext(one) == ("one", "one")
        assert INSIDE.get() is False
        assert await anext(other) == ("other", "other")
        assert INSIDE.get() is False
    await one.aclose()
    assert await anext(other) == ("other", "other")
    await other.aclose()
    assert INSIDE.get() is False


async def test_steps_may_be_taken_and_ended_anywhere():
    """By tasks of their own, closed by another, or forgotten: the run ends inside, and nobody else sees it."""
    runs, log = Runs(), []
    wrapped = stepwise_async(counted, runs)
    generator = wrapped(9, log)
    for number in range(3):
        assert await asyncio.create_task(generator.asend(None)) == number
    await asyncio.create_task(generator.aclose())
    forgotten = wrapped(9, log)
    await anext(forgotten)
    del forgotten
    gc.collect()
    for _ in range(5):
        await asyncio.sleep(0)
    assert runs.failures == ["GeneratorExit"] * 2
    assert log[-1] == "end, inside: True"
    assert INSIDE.get() is False


async def test_a_cancelled_step_ends_the_run():
    """The error reaches the body, its ends run inside, the block is told."""
    runs, log = Runs(), []

    async def waits():
        try:
            yield 1
            await asyncio.Event().wait()
        finally:
            log.append(INSIDE.get())

    generator = stepwise_async(waits, runs)()
    await anext(generator)
    step = asyncio.create_task(generator.asend(None))
    await asyncio.sleep(0)
    step.cancel()
    with pytest.raises(asyncio.CancelledError):
        await step
    assert (log, runs.failures) == ([True], ["CancelledError"])
    with pytest.raises(StopAsyncIteration):
        await anext(generator)


def test_an_unstarted_generator_runs_nothing():
    """Not even its beginning."""
    runs = Runs()

    def numbers():
        yield 1

    stepwise(numbers, runs)().close()
    assert runs.begun == 0


def test_plain_steps_run_inside():
    """What a generator yields, is sent, is thrown and returns is passed on."""
    runs = Runs()

    def numbers():
        try:
            sent = yield INSIDE.get()
            yield sent, INSIDE.get()
        except KeyError:
            yield "caught"
        return "end"

    generator = stepwise(numbers, runs)()
    assert next(generator) is True
    assert not INSIDE.get()
    assert generator.send("sent") == ("sent", True)
    assert generator.throw(KeyError()) == "caught"
    with pytest.raises(StopIteration) as stop:
        next(generator)
    assert stop.value.value == "end"
    assert (runs.begun, runs.failures) == (1, ["NoneType"])
