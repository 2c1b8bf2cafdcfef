"""Batch jobs: calls that wait at the same time become one job; each gets its own reply, usage and error."""

import asyncio
import random
import sys
import time
from asyncio.subprocess import PIPE
from collections import Counter

import pytest

import synmod as sm
from synmod.errors import ConfigError, DeadlineExceeded, RequestError, UnavailableError
from synmod.lm import LanguageModel
from synmod.lm.sessions import load_roots
from tests.lm.batch_servers import BatchServer, gather
from tests.lm.wire_servers import Script

FAST = sm.BatchJobs(quiet_s=0.4, poll_s=0.01)
KINDS = ["chat completions", "responses", "messages"]


@pytest.fixture(autouse=True)
def loaded_roots():
    """What the first request of a process loads does not make calls arrive apart."""
    load_roots()


@pytest.mark.parametrize("kind", KINDS)
async def test_calls_become_one_job(kind):
    """Each gets its reply, in whatever order the results come, at half the price; foreign lines change nothing."""
    async with BatchServer(kind, looks=2) as server:
        server.shuffle = True
        lm = server.model(batch=FAST, price=(1.0, 2.0))
        replies = await gather(lm, [f"q{at}" for at in range(50)])
        await lm.aclose()
    assert [reply.text for reply in replies] == [f"re q{at}" for at in range(50)]
    assert len(server.jobs) == 1
    assert replies[0].usage.cost_usd == pytest.approx((100 * 0.5 + 7 * 1.0) / 1e6)
    assert {reply.usage.requests for reply in replies} == {1}


async def test_a_full_job_is_sent():
    """By requests; the next call begins another."""
    async with BatchServer() as server:
        lm = server.model(batch=sm.BatchJobs(quiet_s=0.05, poll_s=0.01, max_requests=4))
        replies = await gather(lm, "abcdefghij")
        await lm.aclose()
    assert sorted(len(job["lines"]) for job in server.jobs.values()) == [2, 4, 4]
    assert [reply.text for reply in replies] == [f"re {letter}" for letter in "abcdefghij"]


@pytest.mark.parametrize("kind", KINDS)
async def test_failed_lines_go_into_the_next_job(kind):
    """Transient ones, up to `attempts`; a permanent one is the error of its own call alone."""

    def answer(text, sent):
        if text == "bad":
            return 400, "invalid_request_error", "This is wrong."
        return (500, "api_error", "It broke.") if text in "bd" and sent == 0 else Script(f"re {text}")

    async with BatchServer(kind, answer) as server:
        lm = server.model(batch=FAST, attempts=2)
        lm.backoff = False
        replies = await gather(lm, ["a", "b", "c", "d", "bad"])
        await lm.aclose()
    assert [getattr(reply, "text", None) for reply in replies] == ["re a", "re b", "re c", "re d", None]
    assert isinstance(replies[4], RequestError)
    assert "This is wrong." in str(replies[4])
    assert sorted(server.paid) == ["a", "b", "b", "bad", "c", "d", "d"]
    assert len(server.jobs) == 2


@pytest.mark.parametrize(("end", "done"), [("expired", 2), ("failed", 0), ("cancelled", 0)])
async def test_a_job_that_ends_badly_is_unavailable(end, done):
    """For those without a reply; the others have theirs."""
    async with BatchServer(ends=[end]) as server:
        lm = server.model(batch=FAST)
        replies = await gather(lm, "abcd")
        await lm.aclose()
    assert sum(isinstance(reply, UnavailableError) for reply in replies) == 4 - done
    assert [reply.text for reply in replies if not isinstance(reply, Exception)] == [
        f"re {text}" for text, reply in zip("abcd", replies, strict=True) if not isinstance(reply, Exception)
    ]
    assert len({id(reply) for reply in replies}) == 4


async def test_the_same_text_twice_is_two_lines():
    """Independent samples, unless there is a cache."""
    async with BatchServer() as server:
        lm = server.model(batch=FAST)
        await gather(lm, ["x"] * 5)
        await lm.aclose()
        assert server.paid == ["x"] * 5
        cached = server.model(batch=FAST, cache=sm.Cache())
        await gather(cached, ["y"] * 5)
        await cached.aclose()
    assert server.paid.count("y") == 1


async def test_a_job_outlives_the_call_that_drives_it():
    """If it is cancelled, the next one goes on; the job is created once, and the others get their replies."""
    async with BatchServer(looks=3) as server:
        lm = server.model(batch=FAST)
        tasks = [asyncio.create_task(lm(text)) for text in "abc"]
        created = asyncio.Event()

        async def note(job):
            created.set()

        server.on_create = note
        await created.wait()
        tasks[0].cancel()
        replies = await asyncio.gather(*tasks, return_exceptions=True)
        await lm.aclose()
    assert [getattr(reply, "text", None) for reply in replies] == [None, "re b", "re c"]
    assert (len(server.jobs), server.cancelled) == (1, [])


@pytest.mark.parametrize("kind", KINDS)
async def test_a_job_is_cancelled_when_its_last_call_has_left(kind):
    """Also if that is while it is being created."""
    async with BatchServer(kind, looks=10_000) as server:
        lm = server.model(batch=FAST)
        tasks = [asyncio.create_task(lm(text)) for text in "ab"]

        async def leave(job):
            for task in tasks:
                task.cancel()
            await asyncio.sleep(0)

        server.on_create = leave
        await asyncio.gather(*tasks, return_exceptions=True)
        await lm.aclose()
    assert server.cancelled == [*server.jobs]


async def test_a_deadline_counts_and_a_timeout_does_not():
    """The waiting for a job is no time of a call."""
    async with BatchServer(looks=30) as server:
        lm = server.model(batch=FAST, timeout_s=0.05, attempt_timeout_s=0.01)
        assert (await lm("a", timeout_s=0.02)).text == "re a"
        server.looks = 10_000
        with pytest.raises(DeadlineExceeded):
            with sm.deadline(0.2):
                await lm("b")
        await lm.aclose()


async def test_a_provider_that_fails_for_a_moment_is_looked_at_again():
    """A lost connection while a job is waited for loses nothing."""
    server, calls = BatchServer(looks=1), []
    handle = server.handle

    async def flaky(request):
        calls.append(request.path)
        if len(calls) == 3:
            request.transport.close()
        return await handle(request)

    server.handle = flaky
    async with server:
        lm = server.model(batch=FAST)
        assert (await lm("a")).text == "re a"
        await lm.aclose()
    assert server.paid == ["a"]


async def test_an_evaluation_takes_as_few_jobs_as_it_has_waves():
    """Two calls after one another: two jobs, whatever the number of rows; the scores are those of direct calls."""
    first = sm.Generator({"a": str}, name="first", structured="prompt")
    second = sm.Generator({"b": str}, name="second", structured="prompt")
    program = sm.Sequential([first, second])
    rows = [sm.Example(str(at), sm.JsonDataModel({"q": f"q{at}"}, schema=QUERY), None) for at in range(30)]
    async with BatchServer(
        answer=lambda text, sent: Script('{"a": "x"}' if text.startswith("q") else '{"b": "y"}')
    ) as server:
        lm = server.model(batch=sm.BatchJobs(quiet_s=0.5, poll_s=0.01))
        with sm.default_language_model(lm):
            evaluation = await sm.evaluate(program, rows, reward=lambda outputs: outputs["b"] == "y", concurrency=100)
        await lm.aclose()
    assert evaluation.score == 1
    assert len(server.jobs) == 2


def two_steps(text, sent):
    """The reply of the first or the second generator."""
    return Script('{"a": "x"}' if text.startswith("q") else '{"b": "y"}')


QUERY = {"type": "object", "properties": {"q": {"type": "string"}}, "required": ["q"]}


def test_what_has_no_batch_api_is_refused():
    """Another provider, an adapter of one's own, a wrong window; a stream."""
    with pytest.raises(ConfigError, match="batch= is for"):
        LanguageModel("groq/m", batch=True)
    with pytest.raises(ConfigError, match="batch= is for"):
        LanguageModel("ollama/m", batch=True)
    with pytest.raises(ConfigError, match="batch= is for"):
        LanguageModel("embedded/nearest", batch=True)
    with pytest.raises(ConfigError, match="window"):
        sm.BatchJobs(window="1h")
    with pytest.raises(ConfigError, match="quiet_s"):
        sm.BatchJobs(quiet_s=0)
    with pytest.raises(ConfigError, match="batch is 3"):
        LanguageModel("openai/m", batch=3)


async def test_a_stream_is_refused():
    """A job has no pieces."""
    lm = LanguageModel("openai/m", api_base="http://127.0.0.1:1/v1", batch=True)
    with pytest.raises(ConfigError, match="no streams"):
        await lm("Hi", stream=True)


# -- kills -------------------------------------------------------------------------------------------------------------


async def run_child(server, folder, rows, kill_after_s=None):
    """Run the evaluation in a process; kill it after some time. Return what it printed."""
    command = (sys.executable, "-m", "tests.lm.batch_child", server.base, str(folder), str(rows))
    child = await asyncio.create_subprocess_exec(*command, stdout=PIPE, stderr=PIPE)
    try:
        async with asyncio.timeout(kill_after_s):
            out, errors = await child.communicate()
    except TimeoutError:
        child.kill()
        await child.wait()
        return None
    assert child.returncode == 0, errors.decode()[-2_000:]
    return out.decode().split()


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["chat completions"])
async def test_no_line_is_paid_twice_however_often_it_is_killed(kind, tmp_path):
    """Killed at 20 random moments and started again: the jobs go on, and the same line finds them."""
    rng = random.Random(7)
    async with BatchServer(kind, two_steps, looks=25) as server:
        for _ in range(20):
            started = time.monotonic()
            printed = await run_child(server, tmp_path / "run", 20, rng.uniform(1.0, 3.5))
            if printed is not None:
                break
            assert time.monotonic() - started < 60
        printed = printed or await run_child(server, tmp_path / "run", 20)
    assert printed == ["1.0", "20"]
    names = Counter(name for job in server.jobs.values() for name, _ in job["lines"])
    assert max(names.values()) == 1
    assert len(names) == 40


async def test_a_job_that_was_created_and_not_recorded_is_found(tmp_path):
    """A kill between the provider's answer and our note: the job has our name in its metadata."""
    async with BatchServer(answer=two_steps) as server:
        lm = server.model(batch=FAST)
        api = lm.adapter._api
        create = api.create

        async def killed(lines, name):
            await create(lines, name)
            raise RuntimeError("killed")

        api.create = killed
        with pytest.raises(RuntimeError, match="killed"):
            async with sm.durable(tmp_path):
                await lm("q1")
        assert len(server.jobs) == 1
        again = server.model(batch=FAST)
        async with sm.durable(tmp_path):
            reply = await again("q1")
        await lm.aclose()
        await again.aclose()
    assert reply.text == '{"a": "x"}'
    assert server.paid == ["q1"]
