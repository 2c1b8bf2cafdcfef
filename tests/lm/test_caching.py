"""The cache of a model: what makes requests equal, what is stored, and who sends the one request."""

import asyncio
import json
import signal
import subprocess
import sys
import threading
import traceback
from dataclasses import replace

import pytest

import synmod as sm
from synmod.data import declare
from synmod.leaves import aio
from synmod.leaves.aio import use_clock
from synmod.lm import LMRequest, turns
from synmod.lm.call import request_key
from synmod.testing import FunctionLM
from tests.clock import ManualClock
from tests.lm.in_module import inside
from tests.lm.loopback import completion

ANSWER = {"type": "object", "properties": {"answer": {"type": "string"}}, "required": ["answer"]}
OTHER = {"type": "object", "properties": {"answer": {"type": "integer"}}, "required": ["answer"]}

# -- keys ----------------------------------------------------------------------------------------------------------


def request(**given):
    """A request with every field that counts."""
    about = {
        "model": "openai/m", "messages": turns("Hi"), "schema": declare(ANSWER, root="any"),
        "tools": ({"name": "add"},), "tool_choice": "auto", "params": {"temperature": 0}, "sample": 1,
        "structured": "json", "reasoning_field": "why",
    }  # fmt: skip
    return LMRequest(**(about | given))


CHANGES = [
    {"model": "openai/n"}, {"messages": turns("Ho")}, {"messages": (*turns("Hi"), *turns("Hi"))},
    {"schema": declare(OTHER, root="any")}, {"schema": None}, {"tools": ({"name": "sub"},)}, {"tools": None},
    {"tool_choice": "none"}, {"params": {"temperature": 0.5}}, {"params": {"top_p": 0}}, {"params": {}}, {"sample": 2},
    {"structured": "prompt"}, {"structured": None}, {"reasoning_field": None},
]  # fmt: skip


class Adapter:
    """An adapter of the user's own."""

    def __init__(self, name="mine", version=1):
        self.name, self.version = name, version

    async def send(self, request):
        raise NotImplementedError


@pytest.mark.parametrize("change", CHANGES, ids=str)
def test_any_change_of_the_request_changes_its_key(change):
    """Promise C3, field by field."""
    lm = sm.LanguageModel("openai/m", api_key="k")
    assert request_key(lm, request(**change)) != request_key(lm, request())


def test_adapter_endpoint_and_extra_fields_are_in_the_key():
    """Promise C3: the same request elsewhere, or sent by another version of an adapter, is another one."""
    models = [
        sm.LanguageModel("openai/m"),
        sm.LanguageModel("openai/m", adapter="litellm"),
        sm.LanguageModel("openai/m", adapter=Adapter()),
        sm.LanguageModel("openai/m", adapter=Adapter("other")),
        sm.LanguageModel("openai/m", adapter=Adapter(version=2)),
        sm.LanguageModel("openai/m", api_base="http://localhost:1/v1"),
        sm.LanguageModel("openai/m", api_base="http://localhost:2/v1"),
        sm.LanguageModel("openai/m", extra_body={"min_p": 0.1}),
    ]
    assert len({request_key(lm, request()) for lm in models}) == len(models)


def test_keys_timeouts_and_names_are_not_in_the_key():
    """Promise C3: what does not reach the model does not count."""
    plain = sm.LanguageModel("openai/m")
    dressed = sm.LanguageModel(
        "openai/m", api_key="sk-1", timeout_s=3, attempts=1, attempt_timeout_s=2, name="n", price=(1, 1), repairs=0,
        headers={"x-team": "a"},
    )  # fmt: skip
    assert request_key(plain, request()) == request_key(dressed, request())


def test_a_fresh_request_of_the_same_content_is_equal():
    """Not the objects count but their JSON, and not the order of parameters."""
    one = request(params={"temperature": 0, "top_p": 1})
    two = replace(one, messages=turns([{"content": "Hi", "role": "user"}]), params={"top_p": 1, "temperature": 0})
    lm = FunctionLM(lambda request: "x")
    assert request_key(lm, one) == request_key(lm, two)


# -- hits --------------------------------------------------------------------------------------------------------------


class Events(sm.Hook):
    """Keeps the ends of model calls."""

    def __init__(self):
        self.ends = []

    def on_lm_end(self, event):
        self.ends.append(event)


async def test_a_hit_needs_no_request_and_costs_nothing(tmp_path):
    """The same reply, `cached`, with zero usage, from memory, a file, or another process's file."""
    for cache in (sm.Cache(), sm.Cache(tmp_path / "a.db"), tmp_path / "b.db", str(tmp_path / "c.db")):
        lm = FunctionLM(lambda request: {"answer": "Paris"}, cache=cache, price=(1, 1))
        with sm.track_usage() as usage, sm.hooks(hook := Events()):
            first = await lm("Capital?", ANSWER)
            second = await lm("Capital?", ANSWER)
        assert (first.cached, second.cached) == (False, True)
        assert (second.text, second.json, second.message) == (first.text, first.json, first.message)
        assert second["answer"] == "Paris"
        assert (second.model, second.finish_reason) == (first.model, first.finish_reason)
        assert (second.usage, second.attempts) == (sm.Usage(), ())
        assert len(lm.requests) == 1
        assert usage.calls == 1 and usage.cost_usd == first.usage.cost_usd
        assert (lm.cumulated_calls, lm.cumulated_cached_calls, lm.cumulated_requests) == (2, 1, 1)
        assert lm.cumulated_cost_usd == first.usage.cost_usd
        assert [event.cached for event in hook.ends] == [False, True]
        assert [event.attempts for event in hook.ends] == [1, 0]
        lm.cache.close()


async def test_every_field_of_a_reply_comes_back():
    """Reasoning, request id, finish reason, who answered, and a turn of its own."""
    message = turns([{"role": "assistant", "content": "x", "name": "bot"}])[0]
    reply = sm.LMReply(
        "x", reasoning="since", finish_reason="eos", model="m-2", request_id="r1", message=message, usage=sm.Usage()
    )
    lm = FunctionLM(lambda request: reply, cache=sm.Cache())
    first, second = await lm("?"), await lm("?")
    for name in ("text", "reasoning", "finish_reason", "model", "request_id", "message", "json", "tool_calls"):
        assert getattr(first, name) == getattr(second, name), name
    assert second.message.name == "bot"


async def test_calls_of_tools_come_back():
    """With their turn, which the next request shows; invalid calls are not stored."""
    add = {"name": "add", "parameters": {"type": "object", "properties": {"a": {"type": "integer"}}}}
    replies = [sm.ToolCall("1", "add", {"a": "one"}), sm.ToolCall("1", "add", {"a": 1})]
    lm = FunctionLM(lambda request: replies.pop(0), cache=sm.Cache(), repairs=0)
    with pytest.raises(sm.BadReplyError):
        await lm("?", tools=[add])
    first, second = await lm("?", tools=[add]), await lm("?", tools=[add])
    assert second.cached
    assert (second.tool_calls, second.message) == (first.tool_calls, first.message)
    assert type(second.tool_calls[0]) is type(first.tool_calls[0])


async def test_samples_and_parameters_have_replies_of_their_own():
    """A hit is only for an equal request."""
    lm = FunctionLM(lambda request: "1", cache=sm.Cache())
    for call in ({}, {"sample": 1}, {"temperature": 1}, {"schema": True}, {"structured": "json"}):
        await lm("?", **call)
    assert len(lm.requests) == 5


async def test_true_is_the_usual_place(tmp_path, monkeypatch):
    """`cache=True` is `.synmod/cache.db` of the working folder; False is off."""
    monkeypatch.chdir(tmp_path)
    lm = FunctionLM(lambda request: "x", cache=True)
    await lm("?")
    await lm.cache.aclose()
    assert (tmp_path / ".synmod" / "cache.db").exists()
    assert FunctionLM(lambda request: "x", cache=False).cache is None
    with pytest.raises(sm.ConfigError, match="cache is 3"):
        FunctionLM(lambda request: "x", cache=3)


async def test_without_a_cache_equal_calls_are_independent():
    """Off means no single flight either."""
    lm = FunctionLM(lambda request: "x", latency_s=0.01)
    await asyncio.gather(*(lm("?") for _ in range(5)))
    assert len(lm.requests) == 5


async def test_a_hit_is_a_cancellation_point():
    """A cancelled task ends there."""
    lm = FunctionLM(lambda request: "x", cache=sm.Cache())
    await lm("?")
    task = asyncio.create_task(lm("?"))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_a_hit_needs_no_key_and_no_budget(monkeypatch):
    """What was paid for once is there without the provider."""
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    cache = sm.Cache()
    lm = sm.LanguageModel("openai/m", cache=cache)
    await cache.keep(request_key(lm, LMRequest("openai/m", turns("?"))), {"text": "Paris"})
    with sm.budget(calls=0, cost_usd=0):
        assert (await lm("?")).text == "Paris"
    with pytest.raises(sm.AuthError):
        await lm("other")


async def test_a_row_of_another_shape_is_read_as_far_as_it_goes():
    """Unknown fields of an entry, as of a later release, do not matter."""
    cache = sm.Cache()
    lm = FunctionLM(lambda request: "live", cache=cache)
    await cache.keep(request_key(lm, LMRequest(lm.model, turns("?"))), {"text": "kept", "colour": "red"})
    assert (await lm("?")).text == "kept"


async def test_an_entry_grows_too_old():
    """`ttl_s` of the Cache holds."""
    clock = ManualClock()
    with use_clock(clock):
        lm = FunctionLM(lambda request: "x", cache=sm.Cache(ttl_s=10))
        assert [(await lm("?")).cached for _ in range(2)] == [False, True]
        clock.time = 11.0
        assert not (await lm("?")).cached


# -- what is never stored ----------------------------------------------------------------------------------------------

BAD = {
    "error": sm.UnavailableError("down"),
    "not JSON": "prose",
    "invalid": {"answer": 3},
    "cut": sm.LMReply('{"answer": "Par', finish_reason="length"),
    "refused": sm.LMReply('{"answer": "x"}', finish_reason="content_filter"),
    "empty": "",
}


@pytest.mark.parametrize("bad", BAD.values(), ids=BAD)
async def test_errors_and_invalid_replies_are_not_stored(bad):
    """Promise C2: the next call asks again."""
    cache = sm.Cache()
    replies = [bad, {"answer": "Paris"}]
    lm = FunctionLM(lambda request: replies.pop(0), cache=cache, repairs=0, attempts=1)
    with pytest.raises(sm.ModelError):
        await lm("?", ANSWER)
    assert cache.items() == []
    assert not (await lm("?", ANSWER)).cached
    assert len(cache.items()) == 1


async def test_a_reply_as_deep_as_a_value_may_be_is_stored():
    """Fifty levels are valid, and stand one deeper in the entry."""
    lm = FunctionLM(lambda _: "[" * 50 + "]" * 50, cache=sm.Cache())
    first, again = [await lm("?", {"type": "array"}) for _ in range(2)]
    assert (first.json == again.json, again.cached) == (True, True)


async def test_a_reply_that_is_not_json_is_returned_and_not_stored():
    """Half a character was paid for."""
    lm = FunctionLM(lambda _: "half: \ud83d", cache=sm.Cache())
    assert (await lm("?")).text == "half: \ud83d"
    assert lm.cache.items() == []


async def test_an_id_in_other_bytes_than_utf_8_does_no_harm():
    """What a server writes into a header is nobody's fault here."""
    body = json.dumps(completion("hello").body).encode()

    async def answer(reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nx-request-id: id-\xff\r\ncontent-length: %d\r\n\r\n%s" % (len(body), body))
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        base = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
        lm = sm.LanguageModel("openai/m", api_base=base, cache=sm.Cache())
        assert [(reply.request_id, reply.cached) for reply in [await lm("?") for _ in range(2)]] == [
            ("id-?", False),
            ("id-?", True),
        ]
        await lm.aclose()


async def test_a_text_that_was_cut_off_is_returned_and_not_stored():
    """Without a schema the cut text is a reply; nobody else gets it later."""
    lm = FunctionLM(lambda request: sm.LMReply("Once upon a", finish_reason="length"), cache=sm.Cache())
    assert [(await lm("?")).cached for _ in range(2)] == [False, False]
    assert lm.cache.items() == []


async def test_a_repaired_reply_is_stored_whole():
    """The entry holds the valid text, not the bad one."""
    replies = ["prose", '{"answer": "Paris"}']
    lm = FunctionLM(lambda request: replies.pop(0), cache=sm.Cache())
    await lm("?", ANSWER)
    again = await lm("?", ANSWER)
    assert (again.text, again.json) == ('{"answer": "Paris"}', {"answer": "Paris"})


# -- single flight -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("file", [False, True])
async def test_equal_concurrent_calls_send_one_request(tmp_path, file):
    """Promise C4, also of several models through one cache; only one call pays."""
    cache = sm.Cache(tmp_path / "c.db") if file else sm.Cache()
    first, second = (FunctionLM(lambda request: "x", cache=cache, latency_s=0.01) for _ in range(2))
    with sm.track_usage() as usage:
        replies = await asyncio.gather(*(lm("?") for lm in [first, second] * 50))
    assert len(first.requests) + len(second.requests) == 1
    assert [reply.text for reply in replies] == ["x"] * 100
    assert sum(not reply.cached for reply in replies) == 1
    assert (usage.calls, usage.prompt_tokens) == (1, 1)
    assert first.cumulated_calls + second.cumulated_calls == 100
    assert first.cumulated_cached_calls + second.cumulated_cached_calls == 99
    cache.close()


def test_equal_calls_of_one_module_are_one_request(any_loop):
    """A module that makes equal calls at once waits for itself in no circle; on every loop."""
    lm = FunctionLM(lambda request: "x", cache=sm.Cache(), latency_s=0.01)

    async def crowd():
        async with aio.task_group() as group:
            for _ in range(5):
                group.start_soon(lm, "?")

    async def main():
        await inside("a/b", crowd)
        return len(lm.requests)

    assert any_loop(main) == 1


async def test_threads_share_a_flight():
    """Callers in four threads and loops send one request."""
    lm, ready = FunctionLM(lambda request: "x", cache=sm.Cache(), latency_s=0.1), threading.Barrier(4)

    def ask():
        async def main():
            ready.wait(10)
            return (await lm("?")).text

        return asyncio.run(main())

    texts = await asyncio.gather(*(asyncio.to_thread(ask) for _ in range(4)))
    assert (texts, len(lm.requests)) == (["x"] * 4, 1)


class Late(sm.Cache):
    """A cache whose first search takes a while to come back."""

    __slots__ = ("searches",)

    async def find(self, key, **given):
        found = await super().find(key, **given)
        self.searches = getattr(self, "searches", 0) + 1
        if self.searches == 1:
            await asyncio.sleep(0.05)
        return found


async def test_a_call_that_just_missed_the_end_of_an_equal_one_is_a_hit():
    """It looks again before it sends a request."""
    lm = FunctionLM(lambda request: "x", cache=Late())
    late = asyncio.create_task(lm("?"))
    await asyncio.sleep(0.01)
    assert not (await lm("?")).cached
    assert (await late).cached
    assert len(lm.requests) == 1


class Gated:
    """Answers when the gate opens; `begun` counts."""

    def __init__(self):
        self.gate, self.begun = asyncio.Event(), 0

    async def __call__(self, request):
        self.begun += 1
        await self.gate.wait()
        return "x"


async def crowd_behind(leader, lm, count=4):
    """Start a leader, then others who wait for it."""
    tasks = [asyncio.create_task(leader)]
    await asyncio.sleep(0.01)
    tasks += [asyncio.create_task(lm("?")) for _ in range(count)]
    await asyncio.sleep(0.01)
    return tasks


async def test_a_cancelled_leader_hands_over():
    """One of those who wait sends the request; nobody else is cancelled."""
    answer = Gated()
    lm = FunctionLM(answer, cache=sm.Cache())
    leader, *others = await crowd_behind(lm("?"), lm)
    leader.cancel()
    with pytest.raises(asyncio.CancelledError):
        await leader
    await asyncio.sleep(0.01)
    assert answer.begun == 2
    answer.gate.set()
    replies = await asyncio.gather(*others)
    assert sorted(reply.cached for reply in replies) == [False, True, True, True]
    assert lm.counters.cancelled == 1


async def limited(block, calling):
    """Call in a block."""
    with block:
        return await calling


OWN_LIMITS = {
    "timeout": (lambda lm: lm("?", timeout_s=0.05), sm.ModelTimeout),
    "deadline": (lambda lm: limited(sm.deadline(0.05), lm("?")), sm.DeadlineExceeded),
    "budget": (lambda lm: limited(sm.budget(calls=0), lm("?")), sm.BudgetExceeded),
    "cost of no known price": (lambda lm: limited(sm.budget(cost_usd=1), lm("?")), sm.ConfigError),
}


@pytest.mark.parametrize("kind", OWN_LIMITS)
async def test_a_leader_stopped_by_a_limit_of_its_own_hands_over(kind):
    """Promise C4: its failure is its own."""
    call, error = OWN_LIMITS[kind]
    answer = Gated()
    lm = sm.LanguageModel("mine/m", adapter=Unpriced(answer), cache=sm.Cache())
    leader, *others = await asyncio.gather(
        call(lm), *(opened_later(answer, lm) for _ in range(3)), return_exceptions=True
    )
    assert isinstance(leader, error)
    assert [reply.text for reply in others] == ["x"] * 3
    assert sum(not reply.cached for reply in others) == 1


class Unpriced:
    """An adapter that takes a while to find out that there is no price."""

    name, version = "unpriced", 1

    def __init__(self, answer):
        self.answer = answer

    async def price(self):
        await asyncio.sleep(0.01)

    async def send(self, request):
        return sm.LMReply(await self.answer(request))


async def opened_later(answer, lm):
    """Call a model, and open its gate after a while."""
    asyncio.get_running_loop().call_later(0.15, answer.gate.set)
    return await lm("?")


async def test_another_failure_reaches_each_waiter_as_its_own():
    """With its own path and counts, and without a second request."""

    async def fail(request):
        await asyncio.sleep(0.02)
        return sm.BadReplyError("no sense", text="raw", reason="empty")

    lm = FunctionLM(fail, cache=sm.Cache())
    tasks = [asyncio.create_task(inside(f"m{n}", lambda: lm("?"))) for n in range(4)]
    errors = await asyncio.gather(*tasks, return_exceptions=True)
    assert len(lm.requests) == 1
    assert len({id(error) for error in errors}) == 4
    assert {(type(error), error.text) for error in errors} == {(sm.BadReplyError, "raw")}
    assert sorted(error.path for error in errors) == ["m0", "m1", "m2", "m3"]
    assert sorted(error.attempts for error in errors) == [0, 0, 0, 1]
    assert lm.cumulated_failed_calls == 4


async def test_a_waiter_keeps_to_its_own_time():
    """Its ModelTimeout leaves the leader and the others alone."""
    answer = Gated()
    lm = FunctionLM(answer, cache=sm.Cache())
    tasks = await crowd_behind(lm("?"), lm)
    with pytest.raises(sm.ModelTimeout, match="timeout_s"):
        await lm("?", timeout_s=0.02)
    answer.gate.set()
    assert [(await task).text for task in tasks] == ["x"] * 5
    assert answer.begun == 1


async def test_the_key_of_a_leader_is_in_no_error_of_a_waiter():
    """Models with keys of their own share a cache: a quoted key does not cross over."""

    async def quoting(request):
        await asyncio.sleep(0.02)
        return sm.UnavailableError("your key sk-leader-secret is fine", provider_message="sk-leader-secret")

    cache = sm.Cache()
    leader = FunctionLM(quoting, cache=cache, api_key="sk-leader-secret", attempts=1)
    waiter = FunctionLM(quoting, cache=cache, api_key="sk-other-secret", attempts=1)
    errors = await asyncio.gather(leader("?"), waiter("?"), return_exceptions=True)
    assert len(waiter.requests) == 0
    for error in errors:
        assert "***" in str(error)
        assert "sk-leader" not in f"{error} {error.provider_message} {''.join(traceback.format_exception(error))}"


@pytest.mark.parametrize("k", range(0, 24, 2))
async def test_cancelled_at_the_kth_await_another_one_leads(tmp_path, k):
    """For every k: the others get their reply, and nothing is left under way."""
    lm = FunctionLM(lambda request: "x", cache=sm.Cache(tmp_path / "c.db"))
    tasks = [asyncio.create_task(lm("?")) for _ in range(3)]
    for _ in range(k):
        await asyncio.sleep(0)
    tasks[0].cancel()
    first, *others = await asyncio.gather(*tasks, return_exceptions=True)
    assert isinstance(first, asyncio.CancelledError) or first.text == "x"
    assert [reply.text for reply in others] == ["x", "x"]
    assert (await lm("?")).cached
    await lm.cache.aclose()


# -- streams -----------------------------------------------------------------------------------------------------------


async def test_a_hit_streams_as_one_chunk():
    """And a stream that was read to its end is stored like any reply."""
    lm = FunctionLM(lambda request: [sm.LMChunk("Par"), sm.LMChunk("is")], cache=sm.Cache())
    pieces = []
    for _ in range(2):
        async with await lm("?", stream=True) as stream:
            pieces.append([chunk.text async for chunk in stream if chunk.text])
        pieces.append(stream.reply.cached)
    assert pieces == [["Par", "is"], False, ["Paris"], True]
    assert len(lm.requests) == 1
    assert (await lm("?")).cached


async def test_an_aborted_stream_is_not_stored_and_hands_over():
    """Whoever waited for it sends a request of its own; so it is where the provider breaks off."""
    for fault in (None, sm.UnavailableError("gone")):
        replies = [[sm.LMChunk("Par"), fault or 60, sm.LMChunk("is")], "Paris"]
        lm = sm.LanguageModel("mine/m", adapter=Breaking(replies), cache=sm.Cache())
        async with await lm("?", stream=True) as stream:
            chunks = aiter(stream)
            assert (await anext(chunks)).text == "Par"
            waiter = asyncio.create_task(lm("?"))
            await asyncio.sleep(0.01)
            if fault:
                with pytest.raises(sm.UnavailableError):
                    await anext(chunks)
        reply = await waiter
        assert (reply.text, reply.cached) == ("Paris", False)
        assert len(lm.cache.items()) == 1


class Breaking:
    """An adapter whose streams wait after a piece, and may break off."""

    name, version = "breaking", 1

    def __init__(self, replies):
        self.replies = replies

    async def send(self, request):
        return sm.LMReply(self.replies.pop(0))

    async def stream(self, request):
        for piece in self.replies.pop(0):
            if not isinstance(piece, sm.LMChunk):
                await asyncio.sleep(piece if isinstance(piece, int) else 0.02)
                raise piece
            yield piece


KILLED = """
import asyncio, sys
from synmod.testing import FunctionLM
async def main(path):
    lm = FunctionLM(lambda request: "x" * 500, cache=path)
    async def one(n):
        await lm(f"question {n}")
        print(n, flush=True)
    for n in range(0, 100_000, 20):
        await asyncio.gather(*map(one, range(n, n + 20)))
asyncio.run(main(sys.argv[1]))
"""


@pytest.mark.slow
def test_what_was_answered_survives_a_kill(tmp_path):
    """Promise C1: after SIGKILL every reply that a call had returned is found."""
    path = tmp_path / "cache.db"
    process = subprocess.Popen([sys.executable, "-c", KILLED, path], stdout=subprocess.PIPE, text=True)
    told = [int(process.stdout.readline()) for _ in range(200)]
    process.send_signal(signal.SIGKILL)
    told += map(int, process.stdout.read().split("\n")[:-1])
    process.stdout.close()
    process.wait()
    lm = FunctionLM(lambda request: "live", cache=path)

    async def main():
        return [n for n in told if not (await lm(f"question {n}")).cached]

    assert asyncio.run(main()) == []
    assert lm.requests == []
    lm.cache.close()


async def test_equal_calls_of_classes_made_anew_send_one_request():
    """A program that is made for each request still joins equal calls."""
    requests = []

    async def slow(request):
        requests.append(request)
        await asyncio.sleep(0)
        return '{"a": "x"}'

    model = FunctionLM(slow, cache=sm.Cache())
    query = sm.JsonDataModel({"q": "x"}, schema={"type": "object"})
    await asyncio.gather(*(sm.Generator({"a": str}, language_model=model)(query) for _ in range(5)))
    assert len(requests) == 1


FOREIGN = [
    {},
    {"zz": 1},
    {"text": 5},
    {"text": None},
    {"text": "hi"},
    {"json": 5},
    {"json": {"a": "x"}, "reasoning": 5},
    {"json": {"a": "x"}, "message": {"content": 5}},
    {"json": {"a": "x"}, "message": [1]},
    {"tool_calls": [5]},
    {"tool_calls": 5},
    {"tool_calls": [{"id": 1}]},
]


class Overwritten(sm.Cache):
    """A cache whose first row another program has overwritten."""

    def __init__(self, entry):
        super().__init__()
        self.entries = [entry]

    async def keep(self, key, value):
        return await super().keep(key, self.entries.pop() if self.entries else value)


@pytest.mark.parametrize("entry", FOREIGN, ids=str)
async def test_a_row_of_another_program_is_no_reply(entry):
    """The model is asked again, and its reply takes the place of the row."""
    lm = FunctionLM(lambda request: {"answer": "Paris"}, cache=Overwritten(entry))
    replies = [await lm("Capital?", schema=ANSWER) for _ in range(3)]
    assert [reply.json for reply in replies] == [{"answer": "Paris"}] * 3
    assert [reply.cached for reply in replies] == [False, False, True]


@pytest.mark.parametrize("entry", [{}, {"vector": 5}, {"vector": []}, {"vector": ["x"]}, {"vector": None}], ids=str)
async def test_a_row_of_another_program_is_no_vector(entry):
    """The text is embedded again."""
    model = sm.EmbeddingModel("embedded/hash", cache=Overwritten(entry))
    first, *others = [await model(["a"]) for _ in range(3)]
    assert [reply.vectors for reply in others] == [first.vectors] * 2
    assert [reply.cached for reply in (first, *others)] == [False, False, True]
