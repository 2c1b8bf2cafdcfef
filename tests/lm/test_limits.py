"""Limits: requests at once, and requests and tokens in every window of 60 seconds."""

import asyncio
import itertools
import random
import threading

import pytest

import synmod as sm
from synmod.leaves import aio
from synmod.leaves.aio import use_clock
from synmod.testing import FunctionLM, SchemaLM

MINUTE_S = 60.0


class SteppedClock:
    """A clock that goes on to the next sleeper when all tasks of the loop wait."""

    def __init__(self):
        self.time = 0.0
        self.sleepers = []
        self.number = itertools.count()

    def now(self):
        return self.time

    async def sleep(self, seconds):
        woken = asyncio.Event()
        sleeper = self.time + seconds, next(self.number), woken
        self.sleepers.append(sleeper)
        try:
            await woken.wait()
        finally:
            self.sleepers.remove(sleeper)

    async def run(self, main):
        """Run a coroutine, waking who sleeps in the order of time."""
        task = asyncio.create_task(main)
        while not task.done():
            for _ in range(50):
                await asyncio.sleep(0)
            if self.sleepers and not task.done():
                first = min(self.sleepers)
                self.time = max(self.time, first[0])
                first[2].set()
        return await task


@pytest.fixture
def clock():
    """The clock of the test."""
    stepped = SteppedClock()
    with use_clock(stepped):
        yield stepped


def most_in_a_window(sent):
    """Return the largest sum of any 60 s of (time, amount) pairs."""
    return max(sum(amount for at, amount in sent if begin <= at < begin + MINUTE_S) for begin, _ in sent)


async def test_concurrency_bounds_the_requests_under_way():
    """An int is that number; each of a crowd is served, in the order of arrival."""
    running, most, order = 0, 0, []

    async def answer(request):
        nonlocal running, most
        running += 1
        most = max(most, running)
        order.append(request.messages[0]["content"])
        await asyncio.sleep(0.001)
        running -= 1
        return "x"

    lm = FunctionLM(answer, limit=3)
    assert repr(lm.limit) == "Limit(concurrency=3)"
    await asyncio.gather(*(lm(str(n)) for n in range(20)))
    assert most == 3
    assert order == [str(n) for n in range(20)]


@pytest.mark.parametrize("seed", range(5))
async def test_rpm_and_tpm_hold_in_every_minute(clock, seed):
    """Whatever the load and what replies use: no window of 60 s has more; nobody waits without need."""
    random_ = random.Random(seed)
    rpm, tpm = random_.randrange(2, 12), random_.randrange(300, 900)
    sent, tokens = [], []

    async def answer(request):
        used = random_.randrange(1, 100)
        sent.append((clock.now(), 1))
        tokens.append((clock.now(), used))
        await clock.sleep(random_.uniform(0, 30))
        return sm.LMReply("x", usage=sm.Usage(prompt_tokens=1, completion_tokens=used - 1))

    lm = FunctionLM(answer, limit=sm.Limit(rpm=rpm, tpm=tpm), timeout_s=None)

    async def ask(number):
        await clock.sleep(random_.uniform(0, 100))
        await lm(str(number), max_tokens=100)

    await clock.run(asyncio.wait_for(asyncio.gather(*(ask(n) for n in range(60))), None))
    assert len(sent) == 60
    assert most_in_a_window(sent) <= rpm
    assert most_in_a_window(tokens) <= tpm


async def test_the_estimate_counts_until_the_reply_corrects_it(clock):
    """A reply that used less lets the next one go before the minute is over."""
    gate = asyncio.Event()
    times = []

    async def answer(request):
        times.append(clock.now())
        await gate.wait()
        return sm.LMReply("x", usage=sm.Usage(prompt_tokens=1, completion_tokens=1))

    lm = FunctionLM(answer, limit=sm.Limit(tpm=100))
    first, second = (asyncio.create_task(lm("a" * 30, max_tokens=80)) for _ in range(2))
    for _ in range(20):
        await asyncio.sleep(0)
    assert len(times) == 1
    gate.set()
    await clock.run(asyncio.wait_for(asyncio.gather(first, second), None))
    assert times == [0.0, 0.0]


async def test_a_reply_that_used_more_counts_too(clock):
    """The next request waits until the window has room again."""
    replies = [500, 1, 1]

    def answer(request):
        return sm.LMReply("x", usage=sm.Usage(completion_tokens=replies.pop(0)))

    lm = FunctionLM(answer, limit=sm.Limit(tpm=100), timeout_s=None)
    await lm("Hi")
    clock.time = 20.0
    await clock.run(lm("Hi"))
    assert clock.now() == pytest.approx(MINUTE_S)


async def test_a_request_that_never_fits_is_refused():
    """Nothing is sent, and the message names the remedy."""
    lm = FunctionLM(lambda request: "x", limit=sm.Limit(tpm=100))
    with pytest.raises(sm.RequestError, match=r"tpm=100.*max_tokens"):
        await lm("Hi", max_tokens=200)
    assert lm.requests == []
    assert (await lm("Hi", max_tokens=90)).text == "x"


async def test_a_cancelled_waiter_leaves_nothing_taken():
    """Whoever waits behind it goes on, in order."""
    gate = asyncio.Event()

    async def answer(request):
        await gate.wait()
        return request.messages[0]["content"]

    lm = FunctionLM(answer, limit=1)
    tasks = [asyncio.create_task(lm(str(n))) for n in range(5)]
    await asyncio.sleep(0.01)
    assert len(lm.requests) == 1
    tasks[1].cancel()
    tasks[3].cancel()
    gate.set()
    replies = await asyncio.gather(*tasks, return_exceptions=True)
    assert [getattr(reply, "text", None) for reply in replies] == ["0", None, "2", None, "4"]
    assert [request.messages[0]["content"] for request in lm.requests] == ["0", "2", "4"]
    assert lm.counters.cancelled == 2


async def test_places_that_are_freed_together_are_filled_together():
    """Two that end at once let two go on."""
    limit = sm.Limit(concurrency=2)
    slots = [limit.slot(0) for _ in range(4)]
    for turn in slots[:2]:
        await turn.begin()
    waiting = [asyncio.create_task(turn.begin()) for turn in slots[2:]]
    await asyncio.sleep(0)
    for turn in slots[:2]:
        turn.end(sent=True)
    await asyncio.wait_for(asyncio.gather(*waiting), 5)


async def test_nobody_overtakes_whoever_waits():
    """A newcomer waits behind one who may go on and has not yet."""
    limit = sm.Limit(concurrency=1)
    first, second, third = (limit.slot(0) for _ in range(3))
    await first.begin()
    waiter = asyncio.create_task(second.begin())
    await asyncio.sleep(0)
    first.end(sent=True)
    newcomer = asyncio.create_task(third.begin())
    await waiter
    assert not newcomer.done()
    second.end(sent=True)
    await asyncio.wait_for(newcomer, 5)


async def test_a_slow_search_for_the_price_is_over_before_the_turn(clock):
    """Requests leave when they are logged, so that what arrives at the provider keeps to the limit."""
    sent = []

    class Adapter:
        name, version = "slow", 1

        async def price(self):
            await clock.sleep(5)

        async def send(self, request):
            sent.append(clock.now())
            return sm.LMReply("x")

    lm = sm.LanguageModel("mine/m", adapter=Adapter(), limit=sm.Limit(rpm=1), timeout_s=None)
    await clock.run(lm("?"))
    await clock.run(lm("?"))
    assert sent == [5.0, 65.0]


@pytest.mark.parametrize("k", range(14))
async def test_cancelled_at_the_kth_await_the_limit_is_free_again(k):
    """For every k: afterwards the next call goes at once."""

    async def answer(request):
        await asyncio.sleep(0)
        return "x"

    lm = FunctionLM(answer, limit=sm.Limit(concurrency=1, rpm=100))
    tasks = [asyncio.create_task(lm(str(n))) for n in range(3)]
    for _ in range(k):
        await asyncio.sleep(0)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    assert (await asyncio.wait_for(lm("?"), 5)).text == "x"


async def test_waiting_in_the_queue_counts_against_the_time_of_the_call():
    """ModelTimeout without a request; a deadline around holds as well."""
    gate = asyncio.Event()

    async def answer(request):
        await gate.wait()
        return "x"

    lm = FunctionLM(answer, limit=1)
    first = asyncio.create_task(lm("?"))
    await asyncio.sleep(0.01)
    with pytest.raises(sm.ModelTimeout, match="timeout_s"):
        await lm("?", timeout_s=0.02)
    with pytest.raises(sm.DeadlineExceeded), sm.deadline(0.02):
        await lm("?")
    gate.set()
    await first
    assert len(lm.requests) == 1
    assert (await lm("?")).text == "x"


async def test_a_wait_for_room_is_seen_in_the_attempts(clock):
    """`waited_s` holds the wait in the queue."""
    lm = FunctionLM(lambda request: "x", limit=sm.Limit(rpm=1), timeout_s=None)
    await lm("?")
    reply = await clock.run(lm("?"))
    assert reply.attempts[0].waited_s == pytest.approx(MINUTE_S)


async def test_retries_take_a_turn_each_and_hold_none_while_they_wait(clock):
    """Between two attempts the place is free."""
    lm = FunctionLM(
        lambda request: sm.UnavailableError("down", retry_after_s=5),
        limit=sm.Limit(concurrency=1, rpm=4),
        attempts=2,
        backoff=True,
        timeout_s=None,
    )
    await clock.run(asyncio.wait_for(asyncio.gather(lm("a"), lm("b"), return_exceptions=True), None))
    assert [request.messages[0]["content"] for request in lm.requests] == ["a", "b", "a", "b"]


async def test_what_was_not_sent_does_not_count(clock):
    """A budget without room, and an adapter that refuses, leave the minute as it was."""
    refusals = [sm.RequestError("no", sent=False)]
    lm = FunctionLM(lambda request: refusals.pop() if refusals else "x", limit=sm.Limit(rpm=1))
    with pytest.raises(sm.BudgetExceeded), sm.budget(calls=0):
        await lm("?")
    with pytest.raises(sm.RequestError):
        await lm("?")
    await lm("?")
    assert clock.now() == 0.0


def test_one_limit_serves_models_in_threads_and_loops():
    """Four loops, two models: never more than two at once, and all are served."""
    limit, lock, counts = sm.Limit(concurrency=2), threading.Lock(), {"now": 0, "most": 0}

    async def answer(request):
        with lock:
            counts["now"] += 1
            counts["most"] = max(counts["most"], counts["now"])
        await asyncio.sleep(0.002)
        with lock:
            counts["now"] -= 1
        return "x"

    models = [FunctionLM(answer, limit=limit), FunctionLM(answer, limit=limit)]

    async def crowd():
        await asyncio.gather(*(models[n % 2](str(n)) for n in range(10)))

    threads = [threading.Thread(target=asyncio.run, args=(crowd(),)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert sum(len(model.requests) for model in models) == 40
    assert counts == {"now": 0, "most": 2}


def test_limits_hold_on_every_loop(any_loop):
    """asyncio, eager tasks and trio."""
    lm = SchemaLM(limit=sm.Limit(concurrency=2, rpm=1000, tpm=10**6), latency_s=0.001)

    async def main():
        async with aio.task_group() as group:
            for n in range(8):
                group.start_soon(lm, str(n))
        return len(lm.requests)

    assert any_loop(main) == 8


@pytest.mark.parametrize("wrong", [0, -1, True, 1.5, "3", [3]])
def test_a_wrong_limit_is_refused(wrong):
    """ConfigError, as a number or in a Limit."""
    with pytest.raises(sm.ConfigError, match="limit|Limit"):
        sm.LanguageModel("openai/m", limit=wrong)
    with pytest.raises(sm.ConfigError, match="rpm"):
        sm.Limit(rpm=wrong)


def test_a_limit_without_numbers_is_refused():
    """It would limit nothing."""
    with pytest.raises(sm.ConfigError, match="rpm="):
        sm.Limit()
