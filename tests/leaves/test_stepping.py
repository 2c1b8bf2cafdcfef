"""Generators driven step by step: a block around each step, nothing held across a yield, everything passed on."""

import inspect
from contextlib import contextmanager
from contextvars import ContextVar

import pytest

from synmod.leaves import aio
from synmod.leaves.stepping import stepwise, stepwise_async

INSIDE = ContextVar("inside", default=False)


class Runs:
    """Counts runs and their ends; each step is inside."""

    def __init__(self):
        self.begun, self.ended, self.arguments = 0, 0, None

    @contextmanager
    def __call__(self, *args, **kwargs):
        self.begun, self.arguments = self.begun + 1, (args, kwargs)
        try:
            yield self.around
        finally:
            self.ended += 1

    @contextmanager
    def around(self):
        token = INSIDE.set(True)
        try:
            yield
        finally:
            INSIDE.reset(token)


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
        await aio.checkpoint()
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

    any_loop(consume)
    assert (runs.begun, runs.ended) == (3, 3)
    assert runs.arguments == ((9, log), {})


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
    assert (runs.begun, runs.ended) == (1, 1)
