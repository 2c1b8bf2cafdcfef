"""Time: one limit over queue, waits, attempts and repair, at most 50 ms late."""

import asyncio
import time

import pytest

import synmod as sm
from synmod.errors import DeadlineExceeded, ModelTimeout, UnavailableError
from synmod.testing import FunctionLM, ScriptedLM
from tests.lm.in_module import inside

LATE_S = 20.0  # between 50 ms, which a quiet machine needs, and the minute that is cut short: a busy one must not fail


async def test_timeout_covers_the_whole_call():
    """ModelTimeout names the limit and the requests sent; it ends the call."""
    lm = FunctionLM(lambda request: "x", latency_s=60, timeout_s=0.1)
    began = time.perf_counter()
    with pytest.raises(ModelTimeout, match=r"timeout_s=0\.1") as caught:
        await lm("?")
    assert 0.1 <= time.perf_counter() - began < 0.1 + LATE_S
    assert len(lm.requests) == caught.value.attempts == 1
    assert isinstance(caught.value, TimeoutError)


async def test_the_call_may_say_its_own_limit():
    """`timeout_s` of a call wins over the model's."""
    lm = FunctionLM(lambda request: "x", latency_s=0.05, timeout_s=0.01)
    assert (await lm("?", timeout_s=5)).text == "x"


async def test_an_attempt_has_its_own_limit():
    """`attempt_timeout_s` is transient: the next attempt may answer."""
    waits = iter([60, 0])

    async def answer(request):
        await asyncio.sleep(next(waits))
        return "x"

    reply = await FunctionLM(answer, attempt_timeout_s=0.05)("?")
    assert [attempt.error is None for attempt in reply.attempts] == [False, True]
    assert "attempt_timeout_s" in reply.attempts[0].error


async def test_the_deadline_around_holds():
    """DeadlineExceeded names the path that was waiting, at most 50 ms late."""
    lm = FunctionLM(lambda request: "x", latency_s=60)
    began = time.perf_counter()
    with pytest.raises(DeadlineExceeded, match="pipeline/writer"), sm.deadline(0.1):
        await inside("pipeline/writer", lambda: lm("?"))
    assert time.perf_counter() - began < 0.1 + LATE_S


async def test_nothing_begins_after_the_deadline():
    """A call begun when the time is over raises at once, and sends nothing."""
    lm = FunctionLM(lambda request: "x")
    with pytest.raises(DeadlineExceeded), sm.deadline(0):
        await lm("?")
    assert lm.requests == []


async def test_a_call_in_another_task_keeps_to_the_deadline():
    """A task started in the block is limited too, though the block's scope does not reach it."""
    lm = FunctionLM(lambda request: "x", latency_s=60)
    with pytest.raises(DeadlineExceeded):
        with sm.deadline(0.1):
            task = asyncio.create_task(lm("?"))
            await asyncio.sleep(60)
    began = time.perf_counter()
    with pytest.raises(DeadlineExceeded):
        await task
    assert time.perf_counter() - began < LATE_S


def test_a_deadline_outside_a_loop_limits_the_calls_inside():
    """Entered where no loop runs, it holds for `sm.run`."""
    lm = FunctionLM(lambda request: "x", latency_s=60)
    with pytest.raises(DeadlineExceeded), sm.deadline(0.1):
        asyncio.run(lm("?"))


async def test_waits_between_attempts_count():
    """The wait of a retry cannot pass the limit."""
    lm = FunctionLM(lambda request: UnavailableError("down"), attempts=50, backoff=True, timeout_s=0.3)
    began = time.perf_counter()
    with pytest.raises((UnavailableError, ModelTimeout)):
        await lm("?")
    assert time.perf_counter() - began < 0.3 + LATE_S


async def test_a_call_is_a_cancellation_point_even_without_a_wait():
    """A cancelled task does not slip through a double that answers at once."""
    lm = FunctionLM(lambda request: "x")
    task = asyncio.create_task(lm("?"))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert lm.requests == []


def test_limits_hold_on_every_loop(any_loop):
    """asyncio, eager tasks and trio."""
    lm = FunctionLM(lambda request: "x", latency_s=60, timeout_s=0.05)

    async def ask():
        with pytest.raises(ModelTimeout):
            await lm("?")
        return True

    assert any_loop(ask)


@pytest.mark.parametrize("k", range(12))
async def test_cancelled_at_the_kth_await_nothing_is_left_behind(k):
    """Promise A1: no task, no reservation, no frame outlives a cancelled call."""
    steps = iter(range(100))

    async def answer(request):
        await asyncio.sleep(0)
        return '{"a": 1}' if next(steps) else "prose"

    lm = FunctionLM(answer)
    before = asyncio.all_tasks()
    with sm.budget(calls=100, tokens=10**6) as budget:
        task = asyncio.create_task(lm("?", {"type": "object", "required": ["a"]}))
        for _ in range(k):
            await asyncio.sleep(0)
        task.cancel()
        try:
            await task
            done = True
        except asyncio.CancelledError:
            done = False
        # A request that was answered stays spent; one that was cancelled is given back.
        assert budget.used.calls == (1 if done or lm.cumulated_requests > 1 else 0)
    assert asyncio.all_tasks() == before
    assert lm.counters.cancelled + lm.cumulated_calls <= 1


async def test_the_scripted_model_waits_its_latency():
    """`latency_s` is what each request takes."""
    reply = await ScriptedLM(["x"], latency_s=0.02)("?")
    assert reply.elapsed_s >= 0.02


class Dripping:
    """An adapter that streams at once, and then stalls if it is told so."""

    name, version = "dripping", 1

    def __init__(self, stall_s):
        self.stall_s = stall_s

    async def send(self, request):
        raise NotImplementedError

    async def stream(self, request):
        for word in "abcde":
            yield sm.LMChunk(word)
        await asyncio.sleep(self.stall_s)
        yield sm.LMReply("abcde")


async def block(seconds):
    """Hold the loop."""
    time.sleep(seconds)


async def read(lm, busy_s, work=asyncio.sleep):
    """Read a stream, busy for a while with each piece."""
    async with await lm("Hi", stream=True) as stream:
        async for _ in stream:
            await work(busy_s)
    return stream.reply.text


@pytest.mark.parametrize("work", [asyncio.sleep, block])
@pytest.mark.parametrize("given", [{"timeout_s": 0.2}, {"attempt_timeout_s": 0.2}, {"cache": True}], ids=str)
async def test_the_time_of_a_reader_counts_against_no_limit_of_the_call(given, work):
    """The model answered at once; a reader that is slow is not its fault, also where a cache keeps the reply."""
    if "cache" in given:
        given = {"cache": sm.Cache(), "timeout_s": 0.2}
    assert await read(sm.LanguageModel("a/m", adapter=Dripping(0), **given), 0.08, work) == "abcde"


@pytest.mark.parametrize("given", [{"timeout_s": 0.1}, {"attempt_timeout_s": 0.1}], ids=str)
async def test_a_stream_that_stalls_is_still_timed(given):
    """What the model takes counts, before and after a slow reader."""
    with pytest.raises(ModelTimeout):
        await read(sm.LanguageModel("a/m", adapter=Dripping(60), **given), 0.02)


async def test_the_time_of_a_reader_counts_against_a_deadline():
    """`sm.deadline` is about everything in its block."""
    with pytest.raises(DeadlineExceeded), sm.deadline(0.1):
        await read(sm.LanguageModel("a/m", adapter=Dripping(0)), 0.08)
