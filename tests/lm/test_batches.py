"""Batch jobs: calls that wait at the same time become one job; each gets its own reply, usage and error."""

import asyncio
import json
import random
import re
import signal
import sys
from asyncio.subprocess import PIPE
from collections import Counter

import pytest

import synmod as sm
from synmod.errors import ConfigError, DeadlineExceeded, RequestError, UnavailableError
from synmod.lm import LanguageModel
from synmod.lm.sessions import load_roots
from tests.lm import batch_child
from tests.lm.batch_servers import BatchServer, Learner, gather
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
async def test_a_job_has_no_more_bytes_than_the_provider_takes(kind):
    """A line that would be too much begins another one."""
    async with BatchServer(kind) as server:
        lm = server.model(batch=sm.BatchJobs(quiet_s=0.05, poll_s=0.01))
        lm.adapter._api.most_bytes = 1_500
        replies = await gather(lm, ["x" * 300] * 6)
        await lm.aclose()
    assert [reply.text for reply in replies] == [f"re {'x' * 300}"] * 6
    assert len(server.jobs) >= 2
    assert all(len(json.dumps(job["lines"])) < 1_500 for job in server.jobs.values())


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


@pytest.mark.parametrize(("end", "done"), [("expired", 2), ("half", 2), ("failed", 0), ("cancelled", 0)])
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


async def test_a_line_in_the_log_reports_the_progress(caplog):
    """How many requests of a job are done and failed, and since when."""
    caplog.set_level("INFO", "synmod.lm")
    async with BatchServer(looks=1) as server:
        lm = server.model(batch=FAST)
        await gather(lm, "abc")
        await lm.aclose()
    assert re.search(r"batch job batch_\d: 3 of 3 requests done, 0 failed, since \d\d:\d\d UTC", caplog.text)


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


@pytest.mark.parametrize("driver", ["evaluate", "default", "predict"])
async def test_rows_take_as_few_jobs_as_a_program_has_calls(driver):
    """Two calls after one another: two jobs, whatever the number of rows, since all of them run at once."""
    async with Learner() as server:
        lm = server.model(batch=sm.BatchJobs(quiet_s=0.4, poll_s=0.01))
        program, rows = batch_child.program_of(None if driver == "default" else lm), batch_child.rows_of(100)
        with sm.default_language_model(lm):
            if driver == "predict":
                trainer = sm.Trainer(program)
                await trainer.bind(batch_child.Query)
                await trainer.init_params()
                assert len(await trainer.predict(rows)) == 100
            else:
                assert (await sm.evaluate(program, rows, reward=batch_child.agrees)).score == 0.5
        await lm.aclose()
    assert [len(job["lines"]) for job in server.jobs.values()] == [100, 100]


async def test_a_given_concurrency_wins():
    """Also where it makes more jobs."""
    async with Learner() as server:
        lm = server.model(batch=sm.BatchJobs(quiet_s=0.05, poll_s=0.01))
        rows = batch_child.rows_of(6)
        await sm.evaluate(batch_child.program_of(lm), rows, reward=batch_child.agrees, concurrency=3)
        await lm.aclose()
    assert max(len(job["lines"]) for job in server.jobs.values()) <= 3


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


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("end", ["expired", "completed"])
async def test_what_failed_for_a_while_is_sent_again_by_the_next_run_of_the_line(kind, end, tmp_path):
    """Neither an outage nor a job that expired is for ever; what has a reply is not sent again."""

    def answer(text, sent):
        is_down = end == "completed" and text in "qw" and sent < 2
        return (500, "api_error", "It broke.") if is_down else Script(f"re {text}")

    async def replies_of(lm):
        async with sm.durable(tmp_path / "run"):
            return [getattr(reply, "text", type(reply)) for reply in await gather(lm, ["a", "b", "q", "w"])]

    async with BatchServer(kind, answer, ends=[end] * 2) as server:
        lm = server.model(batch=FAST, attempts=2)
        lm.backoff = False
        assert UnavailableError in await replies_of(lm)
        again = [await replies_of(lm) for _ in range(2)]
        await lm.aclose()
    assert again == [["re a", "re b", "re q", "re w"]] * 2
    assert len(server.paid) == {"expired": 4 + 2 + 1, "completed": 4 + 2 + 2}[end]


# -- training ----------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
async def test_a_fit_is_the_same_as_without_jobs(kind):
    """The same bytes of History and values; a job per call of the program and wave of rows."""
    async with Learner(kind) as server:
        direct, night = server.model(), server.model(batch=sm.BatchJobs(quiet_s=0.5, poll_s=0.01))
        expected = await batch_child.fit(direct)
        paid = Counter(server.paid)
        assert json.dumps(await batch_child.fit(night)) == json.dumps(expected)
        for lm in (direct, night):
            await lm.aclose()
    assert Counter(server.paid) == paid + paid
    waves = [8, 5, 10, 10, 5]  # the train rows; halving of three sets over 5, then all 10 validation rows
    assert [len(job["lines"]) for job in server.jobs.values()] == [size for size in waves for _ in range(2)]


# -- kills -------------------------------------------------------------------------------------------------------------


class Child:
    """The work of `batch_child` in a process, with a run in a folder.

    Args:
        server: Its provider, before it is started.
        folder: The folder of its run.
        work: "evaluate" or "fit".
    """

    def __init__(self, server, folder, work):
        self.command, self.server = (sys.executable, "-m", "tests.lm.batch_child"), server
        self.arguments = (str(folder), work)
        self.process, self.left, self.rng, self.kills = None, 0, random.Random(7), 0
        self._handle, server.handle = server.handle, self.handle

    async def handle(self, request):
        """Answer a request; at the last one kill the process before that, or before it has the answer, or later."""
        self.left -= 1
        moment = None if self.left else self.rng.choice(["before", "after", "later"])
        if moment == "before":
            await self.kill()
        response = await self._handle(request)
        if moment == "after":
            await self.kill()
        if moment == "later":
            asyncio.get_running_loop().call_later(self.rng.uniform(0, 0.03), self.process.kill)
        return response

    async def kill(self):
        """Kill the process."""
        self.process.kill()
        await self.process.wait()

    async def run(self, kill_at=0):
        """What it printed; None if it was killed, as at the request of this number."""
        self.left, command = kill_at, (*self.command, self.server.kind, self.server.base, *self.arguments)
        self.process = process = await asyncio.create_subprocess_exec(*command, stdout=PIPE, stderr=PIPE)
        out, errors = await process.communicate()
        if process.returncode == -signal.SIGKILL:
            self.kills += 1
            return None
        assert process.returncode == 0, errors.decode()[-2_000:]
        return json.loads(out)


def jobs_paid_twice(server):
    """How many jobs have a line that a later one has, too."""
    names, count = set(), 0
    for job in reversed(server.jobs.values()):
        lines = {name for name, _ in job["lines"]}
        count += not lines.isdisjoint(names)
        names |= lines
    return count


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "work", "kills"),
    [("chat completions", "evaluate", 20), ("chat completions", "fit", 10), ("messages", "fit", 10)],
)
async def test_no_line_is_paid_twice_however_often_it_is_killed(kind, work, kills, tmp_path):
    """Killed at random moments and started again: the jobs go on, the same line finds them; the result is the same."""
    server = Learner(kind, looks=100 if work == "evaluate" else 3)  # half of the kills come within as many requests
    child, printed = Child(server, tmp_path / "run", work), None
    async with server:
        lm = server.model()
        expected = await getattr(batch_child, work)(lm)
        await lm.aclose()
        while printed is None:
            printed = await child.run(child.rng.randint(1, 10) if child.kills < kills else 0)
    assert child.kills >= kills // 2
    assert printed == json.loads(json.dumps(expected))
    assert jobs_paid_twice(server) <= (child.kills if kind == "messages" else 0)
    paid = Counter(name for job in server.jobs.values() for name, _ in job["lines"])
    assert len(paid) == {"evaluate": 40, "fit": 76}[work]


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["chat completions", "messages"])
async def test_a_kill_while_a_job_is_created(kind, tmp_path):
    """Before the provider answers: our name in the metadata finds the job; Anthropic has no place for one."""
    server = Learner(kind)
    child = Child(server, tmp_path / "run", "evaluate")

    async def kill(job):
        server.on_create = None
        await child.kill()

    server.on_create = kill
    async with server:
        assert await child.run() is None
        assert (await child.run())[1] == 20
    assert jobs_paid_twice(server) == (kind == "messages")


async def test_a_job_that_was_created_and_not_recorded_is_found(tmp_path):
    """A kill between the provider's answer and our note: the job has our name in its metadata."""
    async with BatchServer() as server:
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
    assert reply.text == "re q1"
    assert server.paid == ["q1"]


@pytest.mark.parametrize("kind", ["chat completions", "messages"])
async def test_a_recorded_job_that_the_provider_has_dropped_is_sent_again(kind, tmp_path):
    """As one that has failed: a run that goes on after weeks pays once more, and does not fail."""
    async with BatchServer(kind, looks=10_000) as server:
        jobs = sm.BatchJobs(quiet_s=0.05, poll_s=0.01)
        lm = server.model(batch=jobs)
        with pytest.raises(DeadlineExceeded), sm.deadline(0.6):
            async with sm.durable(tmp_path):
                await lm("q1")
        assert len(server.jobs) == 1
        server.jobs.clear()
        server.looks = 1
        again = server.model(batch=jobs, attempts=2)
        again.backoff = False
        async with sm.durable(tmp_path):
            assert (await again("q1")).text == "re q1"
        await lm.aclose()
        await again.aclose()
    assert server.paid == ["q1"] * 2
