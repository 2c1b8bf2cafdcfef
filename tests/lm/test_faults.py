"""A server with faults: exactly the promised requests arrive, and no key leaves the connection."""

import asyncio
import random

import pytest

import synmod as sm
from synmod.leaves.aio import use_clock
from tests.clock import ManualClock
from tests.lm.loopback import KEY, Answer, Loopback, completion, failure


class Query(sm.DataModel):
    """What a program is asked."""

    query: str


OK = completion("yes")
DOWN, BUSY = failure(503), failure(429, Retry_After="2")
CUT, WRONG, PROSE = Answer(200, OK.body, cut=True), Answer(200, raw=b"{'yes'}"), completion("not JSON")
DRIPPING = Answer(200, OK.body, drip_s=0.02)

STORIES = {
    "busy, down, then well": ([BUSY, DOWN, OK], 3, None),
    "a cut body": ([CUT, OK], 2, None),
    "slow bytes": ([DRIPPING, OK], 2, None),
    "all of them": ([BUSY, CUT, DRIPPING, DOWN, OK], 5, None),
    "lasting": ([DOWN], 5, sm.UnavailableError),
    "lasting and busy": ([BUSY], 5, sm.RateLimitError),
    "lasting cuts": ([CUT], 5, sm.UnavailableError),
    "a page of a proxy": ([WRONG, OK], 2, None),
    "a wrong key": ([failure(401), OK], 1, sm.AuthError),
    "no such thing": ([DOWN, failure(404), OK], 2, sm.RequestError),
}


@pytest.fixture
def clock():
    """Waits between attempts take no time."""
    manual = ManualClock()
    with use_clock(manual):
        yield manual


@pytest.mark.parametrize("story", STORIES)
async def test_exactly_the_promised_requests_arrive(clock, story):
    """Transient faults are retried, `attempts` in all; others are not."""
    answers, count, error = STORIES[story]
    async with Loopback(*answers) as server:
        lm = sm.LanguageModel("openai/m", api_base=server.base, api_key=KEY, attempts=5, attempt_timeout_s=0.5)
        if error is None:
            reply = await lm("?")
            assert (reply.text, len(reply.attempts), reply.usage.requests) == ("yes", count, count)
        else:
            with pytest.raises(error) as caught:
                await lm("?")
            assert caught.value.attempts == count
        assert len(server.arrived) == lm.cumulated_requests == count
        assert (2.0 in clock.waits) == (BUSY in answers)
        await lm.aclose()


@pytest.mark.parametrize("seed", range(3))
async def test_a_crowd_behind_one_limit(clock, seed):
    """With faults drawn at random: never more at once than allowed, and no request that nobody counts."""
    random_ = random.Random(seed)
    answers = [random_.choice([OK, OK, OK, DOWN, CUT, BUSY]) for _ in range(60)]
    async with Crowded(*answers, OK) as server:
        limit = sm.Limit(concurrency=3)
        models = [
            sm.LanguageModel("openai/m", api_base=server.base, api_key=KEY, attempts=4, limit=limit) for _ in range(2)
        ]
        replies = await asyncio.gather(*(models[n % 2](str(n)) for n in range(40)), return_exceptions=True)
        assert all(isinstance(reply, (sm.LMReply, sm.UnavailableError, sm.RateLimitError)) for reply in replies)
        sent = sum(reply.attempts if isinstance(reply, Exception) else len(reply.attempts) for reply in replies)
        assert len(server.arrived) == sent == sum(lm.cumulated_requests for lm in models)
        assert server.most == 3
        for lm in models:
            await lm.aclose()


class Crowded(Loopback):
    """A server that notes how many requests it had at once."""

    now = most = 0

    async def handle(self, request):
        self.now += 1
        self.most = max(self.most, self.now)
        try:
            await asyncio.sleep(0.005)
            return await super().handle(request)
        finally:
            self.now -= 1


async def test_equal_calls_are_one_request_and_a_cancelled_leader_hands_over(tmp_path):
    """On the wire: one request; its connection closes with the leader, and another one takes its place."""
    slow = Answer(200, OK.body, delay_s=0.2)
    async with Loopback(Answer(200, OK.body, delay_s=60), slow) as server:
        lm = sm.LanguageModel("openai/m", api_base=server.base, api_key=KEY, cache=tmp_path / "cache.db")
        leader = asyncio.create_task(lm("?"))
        while not server.arrived:
            await asyncio.sleep(0.001)
        others = [asyncio.create_task(lm("?")) for _ in range(50)]
        await asyncio.sleep(0.01)
        leader.cancel()
        await asyncio.wait_for(server.hung_up.wait(), 1)
        replies = await asyncio.gather(*others)
        assert [reply.text for reply in replies] == ["yes"] * 50
        assert len(server.arrived) == 2
        assert (await lm("?")).cached
        await lm.cache.aclose()
        await lm.aclose()


async def test_a_fallback_answers_for_a_server_that_is_down(clock):
    """Each with its own attempts, on its own server."""
    async with Loopback(DOWN) as first, Loopback(BUSY, OK) as second:
        backup = sm.LanguageModel("openai/b", api_base=second.base, api_key="sk-of-the-backup", attempts=2)
        lm = sm.LanguageModel("openai/a", api_base=first.base, api_key=KEY, attempts=3, fallback=backup)
        reply = await lm("?")
        assert (reply.text, reply.model) == ("yes", "openai/b")
        assert (len(first.arrived), len(second.arrived)) == (3, 2)
        assert {arrived.body["model"] for arrived in second.arrived} == {"b"}
        assert {arrived.headers["authorization"] for arrived in first.arrived} == {f"Bearer {KEY}"}
        assert {arrived.headers["authorization"] for arrived in second.arrived} == {"Bearer sk-of-the-backup"}
        await lm.aclose()
        await backup.aclose()


async def test_no_key_is_in_an_error_a_journal_or_a_file(tmp_path):
    """Also where the server echoes it: a reply that quotes a key is returned, and not kept."""
    echo = completion("your key: {authorization}")
    shouting = failure(500, "bad key {authorization}")
    async with Loopback(echo, shouting) as server:
        backup = sm.LanguageModel("openai/b", api_base=server.base, api_key="sk-of-the-backup", attempts=1)
        lm = sm.LanguageModel(
            "openai/a", api_base=server.base, api_key=KEY, attempts=2, cache=tmp_path / "cache.db", fallback=backup
        )
        program = sm.Generator({"answer": str}, language_model=lm)
        sm.save(program, tmp_path / "program.json")
        with sm.hooks(sm.hooks_lib.Recorder(tmp_path / "events.jsonl")):
            assert KEY in (await lm("?")).text
            with pytest.raises(sm.UnavailableError) as caught:
                await program(Query(query="?"))
        await lm.cache.aclose()
        shown = "\n".join([str(caught.value), repr(caught.value.__dict__), *caught.value.__notes__])
        assert "***" in shown
        files = b"".join(path.read_bytes() for path in tmp_path.iterdir() if path.name != "events.jsonl")
        assert lm.cache.items() == []
        assert KEY not in shown and "sk-of-the-backup" not in shown
        assert KEY.encode() not in files and b"sk-of-the-backup" not in files
        assert KEY not in (tmp_path / "events.jsonl").read_text().replace("your key: Bearer " + KEY, "")
        await lm.aclose()
        await backup.aclose()
        lm.cache.close()
