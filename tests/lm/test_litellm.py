"""The door to litellm: what its adapter sends, what becomes of its exceptions, and what the import leaves behind.

litellm takes seconds to import, so these are slow; only the loopback is ever reached.
"""

import asyncio
import gc
import json
import logging
import os
import socket
import subprocess
import sys
import time
import warnings

import pytest

import synmod as sm
from synmod.errors import AuthError, BadReplyError, ModelError, RequestError, UnavailableError
from synmod.lm import LanguageModel
from synmod.lm.failures import litellm_error
from synmod.lm.options import ENVIRONMENT
from tests.lm.loopback import DONE, KEY, STOP, Answer, Loopback, ask, completion, failure, record, streamed

pytestmark = pytest.mark.slow

ANSWER = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"], "additionalProperties": False}
CLAUDE = {
    "id": "m",
    "type": "message",
    "role": "assistant",
    "model": "claude",
    "stop_reason": "end_turn",
    "stop_sequence": None,
    "content": [{"type": "text", "text": "hi"}],
    "usage": {"input_tokens": 3, "output_tokens": 2},
}
BY_HAND = {"adapter": "litellm"}


@pytest.fixture(autouse=True)
def environment(monkeypatch):
    """No key of the machine reaches a test, no proxy stands between, and no address but the loopback is looked up."""
    for names in ENVIRONMENT.values():
        for name in names:
            monkeypatch.delenv(name, raising=False)
    for name in [name for name in os.environ if name.lower().endswith("_proxy")]:
        monkeypatch.delenv(name)
    look_up = socket.getaddrinfo

    def loopback_only(host, *args, **kwargs):
        if host not in ("127.0.0.1", "localhost"):
            raise OSError(f"{host!r} was to be reached")
        return look_up(host, *args, **kwargs)

    monkeypatch.setattr(socket, "getaddrinfo", loopback_only)


async def test_the_providers_own_protocol():
    """A provider that speaks otherwise is reached in its own way, with an explicit key, at an `api_base` too."""
    reply, (arrived,) = await ask(Answer(200, CLAUDE), model="anthropic/claude-x", api_key=None, **BY_HAND)
    assert arrived.path.endswith("/messages")
    assert arrived.headers["x-api-key"] == "none"
    assert (reply.text, reply.usage.prompt_tokens, reply.usage.completion_tokens) == ("hi", 3, 2)


CLAUDE_EVENTS = [
    {"type": "message_start", "message": {**CLAUDE, "content": [], "stop_reason": None}},
    {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "h"}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "i"}},
    {"type": "content_block_stop", "index": 0},
    {
        "type": "message_delta",
        "delta": {"stop_reason": "end_turn", "stop_sequence": None},
        "usage": {"output_tokens": 2},
    },
    {"type": "message_stop"},
]


def test_streams_leave_nothing_open_at_exit():
    """Also those of a provider whose streams go through one client of litellm's, in one loop after another."""
    run = "asyncio.run(tests.test_replies_are_streamed('anthropic'))"
    code = f"import asyncio, tests.lm.test_litellm as tests; {run}; {run}"
    ended = subprocess.run([sys.executable, "-W", "always", "-c", code], capture_output=True, text=True)
    assert "Unclosed" not in ended.stderr
    assert ended.returncode == 0, ended.stderr


@pytest.mark.parametrize("provider", ["openai", "anthropic"])
async def test_replies_are_streamed(provider):
    """Pieces as they arrive, the usage of the final record, in the protocol of either provider."""
    events = [f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode() for event in CLAUDE_EVENTS]
    answer = streamed("h", "i", usage=(3, 2)) if provider == "openai" else Answer(packets=tuple(events))
    async with Loopback(answer) as server:
        lm = LanguageModel(f"{provider}/m", api_base=server.base, api_key=KEY, **BY_HAND)
        async with await lm("Hi", stream=True) as stream:
            pieces = [piece async for piece in stream]
        await lm.aclose()
    assert [piece.text for piece in pieces] == ["h", "i", ""]
    assert (stream.reply.usage.prompt_tokens, stream.reply.usage.completion_tokens) == (3, 2)
    assert (stream.reply.finish_reason, stream.reply.usage.estimated) == ("stop", False)


async def test_what_litellm_makes_up_of_a_stream_is_not_believed():
    """Tokens that the provider did not count are an estimate; a stream of nothing has no end."""
    counted, nothing = (record({"content": "hi"}), STOP, DONE), (b": nothing\n\n",)
    async with Loopback(Answer(packets=counted), Answer(packets=nothing)) as server:
        lm = LanguageModel("openai/m", api_base=server.base, api_key=KEY, attempts=1, **BY_HAND)
        async with await lm("Hi", stream=True) as stream:
            assert [piece.text async for piece in stream] == ["hi", ""]
        assert stream.reply.usage.estimated
        async with await lm("Hi", stream=True) as stream:
            with pytest.raises(UnavailableError, match="ended before the reply did"):
                await anext(stream)
        await lm.aclose()


async def test_thinking_that_was_streamed_goes_back_with_its_signature():
    """Beside the calls of tools, where Claude wants it again."""
    start = [("thinking", {"thinking": "", "signature": ""}), ("tool_use", {"id": "t1", "name": "add", "input": {}})]
    deltas = [
        (0, {"type": "thinking_delta", "thinking": "Let me "}),
        (0, {"type": "thinking_delta", "thinking": "add."}),
        (0, {"type": "signature_delta", "signature": "signed"}),
        (1, {"type": "input_json_delta", "partial_json": '{"x": '}),
        (1, {"type": "input_json_delta", "partial_json": "1}"}),
    ]
    events = [CLAUDE_EVENTS[0]]
    for index, (kind, fields) in enumerate(start):
        events.append({"type": "content_block_start", "index": index, "content_block": {"type": kind, **fields}})
        events += [{"type": "content_block_delta", "index": at, "delta": delta} for at, delta in deltas if at == index]
        events.append({"type": "content_block_stop", "index": index})
    events += [{**CLAUDE_EVENTS[-2], "delta": {"stop_reason": "tool_use"}}, CLAUDE_EVENTS[-1]]
    packets = tuple(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode() for event in events)
    add = {"name": "add", "parameters": {"type": "object", "properties": {"x": {"type": "integer"}}}}
    async with Loopback(Answer(packets=packets)) as server:
        lm = LanguageModel("anthropic/m", api_base=server.base, api_key=KEY, **BY_HAND)
        async with await lm("Hi", tools=[add], stream=True) as stream:
            pieces = [piece async for piece in stream]
        await lm.aclose()
    assert "".join(piece.reasoning for piece in pieces) == "Let me add."
    assert [call.arguments for call in pieces[-1].tool_calls] == [{"x": 1}]
    block = {"type": "thinking", "thinking": "Let me add.", "signature": "signed"}
    assert stream.reply.message["thinking_blocks"] == [block]


async def test_closing_a_stream_early_hangs_up():
    """litellm's connection is closed, and nothing of it is left."""
    forever = asyncio.Event()
    async with Loopback(Answer(packets=(record({"content": "h"}), forever.wait))) as server:
        lm = LanguageModel("openai/m", api_base=server.base, api_key=KEY, **BY_HAND)
        async with await lm("Hi", stream=True) as stream:
            assert (await anext(stream)).text == "h"
        await asyncio.wait_for(server.hung_up.wait(), 5)
        await lm.aclose()
    assert lm.cumulated_completion_tokens == 1


async def test_a_failure_inside_a_stream_has_its_class():
    """After the pieces before it; not retried; no key."""
    error = json.dumps({"error": {"message": f"boom {KEY}", "type": "server_error", "code": 500}})
    answer = Answer(packets=(record({"content": "h"}), f"data: {error}\n\n".encode()))
    got = []
    async with Loopback(answer) as server:
        lm = LanguageModel("openai/m", api_base=server.base, api_key=KEY, **BY_HAND)
        with pytest.raises(ModelError) as caught:
            async with await lm("Hi", stream=True) as stream:
                async for piece in stream:
                    got.append(piece.text)
        await lm.aclose()
        assert (got, len(server.arrived)) == (["h"], 1)
    assert "boom" in str(caught.value)
    assert KEY not in str(caught.value)
    assert caught.value.__cause__ is None


async def test_replies_are_read_like_any_other():
    """Text, reasoning, usage, id; headers and parameters arrive; a request is sent once."""
    answer = completion("hello", reasoning_content="because")
    about = {"headers": {"X-Mine": "yes"}, "extra_body": {"guided": 1}, "temperature": 0.5} | BY_HAND
    reply, (arrived,) = await ask(answer, **about)
    assert (reply.text, reply.reasoning, reply.request_id) == ("hello", "because", "chatcmpl-1")
    assert (reply.usage.prompt_tokens, reply.usage.cost_usd) == (7, None)
    assert (arrived.headers["x-mine"], arrived.headers["authorization"]) == ("yes", f"Bearer {KEY}")
    assert (arrived.body["guided"], arrived.body["temperature"]) == (1, 0.5)


async def test_the_schema_is_sent_and_the_reply_is_valid():
    """Native JSON schema at an `api_base`."""
    reply, (arrived,) = await ask(completion('{"a": 1}'), schema=ANSWER, **BY_HAND)
    assert reply.json == {"a": 1}
    assert arrived.body["response_format"]["json_schema"]["schema"] == ANSWER


@pytest.mark.parametrize(
    ("status", "name"),
    [(400, "RequestError"), (401, "AuthError"), (403, "AuthError"), (404, "RequestError"),
     (422, "RequestError"), (429, "RateLimitError"), (500, "UnavailableError"), (503, "UnavailableError")],
)  # fmt: skip
async def test_statuses_have_their_classes(status, name):
    """As through the direct adapter; one request each, nothing chained, no key."""
    error, arrived = await ask(failure(status, f"said {status} of {KEY}"), **BY_HAND)
    assert (type(error).__name__, len(arrived)) == (name, 1)
    assert "said" in str(error)
    assert KEY not in str(error) + error.provider_message
    assert error.__cause__ is None
    assert error.__context__ is None


async def test_a_refused_connection_is_unavailable():
    """Nothing listens: transient, without a status."""
    with pytest.raises(UnavailableError) as caught:
        await LanguageModel("openai/m", api_base="http://127.0.0.1:9/v1", attempts=1, **BY_HAND)("x")
    assert caught.value.status is None


async def test_a_misspelt_provider_is_guessed():
    """Before anything is sent; litellm alone knows them all."""
    with pytest.raises(RequestError, match=r"litellm has no provider 'opnai'. Did you mean 'openai'\?"):
        await LanguageModel("opnai/gpt-4o-mini", api_key=KEY)([{"role": "user", "content": "hi"}])


async def test_every_exception_class_becomes_one_of_ours():
    """Whatever class litellm raises, now or in a later release."""
    await ask(**BY_HAND)
    import litellm.exceptions as module

    own = [one for one in vars(module).values() if isinstance(one, type) and issubclass(one, Exception)]
    own = [one for one in own if one.__module__ == module.__name__]
    assert len(own) > 25
    for kind in own:
        error = kind.__new__(kind)
        for name, value in {"message": "it failed", "status_code": 500}.items():
            try:
                setattr(error, name, value)
            except AttributeError:
                pass
        ours = litellm_error(error, "it failed")
        assert isinstance(ours, ModelError), kind
    refused = litellm_error(module.ContentPolicyViolationError("no", "m", "openai"), "no")
    assert isinstance(refused, BadReplyError)
    assert refused.reason == "refused"
    long = module.ContextWindowExceededError("long", "m", "openai")
    assert type(litellm_error(long, "long")).__name__ == "ContextWindowError"


@pytest.mark.parametrize(
    ("model", "given", "kind", "says"),
    [
        ("azure/m", {}, AuthError, "AZURE_API_KEY"),
        ("no_such_provider/m", {}, RequestError, "no_such_provider"),
        ("groq/llama-3.1-8b-instant", {"api_key": "x", "top_k": 3}, RequestError, "top_k"),
    ],
)
async def test_what_litellm_knows_is_refused_before_sending(model, given, kind, says):
    """Missing credentials are named; an unknown provider and a refused parameter cost no request."""
    with pytest.raises(kind, match=says) as caught:
        await LanguageModel(model, **given)("x")
    assert caught.value.attempts == 0


@pytest.mark.parametrize(
    ("model", "effort", "known"),
    [
        ("deepseek/deepseek-reasoner", None, True),
        ("deepseek/deepseek-chat", None, False),
        ("vertex_ai/claude-sonnet-4@20250514", None, False),
        ("vertex_ai/claude-sonnet-4@20250514", "low", True),
        ("gemini/gemini-2.5-flash", "none", False),
    ],
)
async def test_providers_that_reason_by_themselves(model, effort, known):
    """By the model, or where `reasoning_effort` asks: then the field is left out and filled from the reasoning."""
    schema = {"type": "object", "properties": {"thinking": {"type": "string"}, "a": {"type": "integer"}}}
    lm = LanguageModel(model, api_key=KEY, attempts=1)
    seen = []

    async def acompletion(**given):
        seen.append(given)
        raise ConnectionError("nothing leaves this machine")

    await ask(**BY_HAND)
    import litellm

    original, litellm.acompletion = litellm.acompletion, acompletion
    try:
        with pytest.raises(sm.ModelError):
            await lm("x", schema, reasoning_field="thinking", reasoning_effort=effort)
    finally:
        litellm.acompletion = original
    assert ("thinking" not in str(seen[0])) == known


async def test_prices_are_those_of_litellm():
    """`litellm.cost_per_token` where litellm answers; an unknown model has none."""
    price = await LanguageModel("gemini/gemini-2.5-flash", api_key="k").price()
    assert price.cost_usd(1_000_000, 0) > price.cost_usd(1_000_000, 0, cached_tokens=500_000) > 0
    assert await LanguageModel("gemini/no-such-model", api_key="k").price() is None


async def test_tokens_are_counted_where_a_tokenizer_is_known():
    """The tokenizer that litellm carries, without a network; else the estimate."""
    assert 6 <= await LanguageModel("openai/gpt-4o", api_key="x").count_tokens("Hello, how are you?") <= 20
    assert await LanguageModel("vllm/m").count_tokens("Hello, how are you?") == 7


async def test_aclose_ends_what_litellm_left():
    """Its logging task is gone, and the model still works."""
    async with Loopback(completion("x")) as server:
        lm = LanguageModel("openai/m", api_base=server.base, api_key="k", **BY_HAND)
        assert (await lm("x")).text == "x"
        await lm.aclose()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        left = [task for task in others if "litellm" in repr(task)]
        assert left == []
        assert (await lm("x")).text == "x"
        await lm.aclose()


async def test_a_cancelled_call_leaves_no_warning():
    """Cancelled a few turns after its start, when litellm has made a coroutine that nothing awaits any more."""
    await ask(**BY_HAND)  # litellm is there
    async with Loopback(Answer(200, completion().body, delay_s=60)) as server:
        lm = LanguageModel("openai/m", api_base=server.base, api_key="k", **BY_HAND)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            for turns in range(40):
                task = asyncio.create_task(lm("x"))
                for _ in range(turns // 2):
                    await asyncio.sleep(0)
                time.sleep(0.005)  # its worker thread gets on
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
            await asyncio.sleep(0.2)
            gc.collect()
        await lm.aclose()
    assert [str(one.message) for one in caught if "never awaited" in str(one.message)] == []


def test_the_import_leaves_nothing_behind():
    """Hints and handlers are quiet, nothing is dropped, no callback is installed."""
    asyncio.run(ask(**BY_HAND))
    import litellm

    for name in ("LiteLLM", "LiteLLM Router", "LiteLLM Proxy"):
        assert [type(handler).__name__ for handler in logging.getLogger(name).handlers] == ["NullHandler"]
    assert litellm.suppress_debug_info
    assert not litellm.drop_params
    assert (litellm.success_callback, litellm.failure_callback, litellm.callbacks) == ([], [], [])
    assert os.environ["LITELLM_MODE"] == "PRODUCTION"


REFUSED = """
import asyncio, sys, synmod.errors as e
from synmod.lm import LanguageModel

sys.modules["litellm"] = None
for _ in range(2):
    try:
        asyncio.run(LanguageModel("groq/m", api_key="x")("hi"))
    except e.UnavailableError as error:
        print(error.attempts, *str(error).splitlines())
print(asyncio.run(LanguageModel("embedded/nearest")("works")).text)
"""


def test_a_missing_litellm_is_unavailable_with_the_install_line():
    """Everything else keeps working, and a later call tries again."""
    done = subprocess.run([sys.executable, "-c", REFUSED], capture_output=True, text=True, check=True)
    first, second, works = done.stdout.splitlines()
    assert first == second
    assert first.startswith("0 groq/m: litellm")
    assert 'pip install "litellm>=1.84,<2"' in first
    assert works == "works"


SLOW_IMPORT = """
import asyncio, time, synmod as sm, synmod.leaves.aio, anyio.to_thread
from importlib.abc import MetaPathFinder
import sys

class Slow(MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name == "litellm":
            time.sleep(1.5)
            raise ImportError("long after its caller has left")

sys.meta_path.insert(0, Slow())

async def main():
    began = time.monotonic()
    try:
        with sm.deadline(0.2):
            await sm.LanguageModel("groq/m", api_key="x")("hi")
    except sm.DeadlineExceeded as error:
        print(type(error).__name__, time.monotonic() - began < 1)

asyncio.run(main())
"""


def test_a_cancelled_first_call_does_not_wait_for_the_import():
    """The import goes on in its thread; a deadline ends the call at once."""
    done = subprocess.run([sys.executable, "-c", SLOW_IMPORT], capture_output=True, text=True, check=True)
    assert done.stdout == "DeadlineExceeded True\n"


ADD = {
    "name": "add",
    "description": "Adds two numbers.",
    "parameters": {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]},
}
TALK = [
    sm.ChatMessage("user", "1 + 1?"),
    sm.ChatMessage("assistant", tool_calls=[sm.ToolCall("c0", "add", {"a": 0})]),
    sm.ChatMessage("tool", "1", tool_call_id="c0"),
]


async def test_tools_and_their_calls_pass_unchanged():
    """At an `api_base` in the shape of chat completions; parameters and a choice by name, too."""
    called = [{"id": "c1", "type": "function", "function": {"name": "add", "arguments": '{"a": 1}'}}]
    answer = completion(None, finish_reason="tool_calls", tool_calls=called)
    offered = {"tools": [ADD, {**ADD, "name": "sum"}], "tool_choice": "add", "parallel_tool_calls": False}
    reply, (arrived,) = await ask(answer, messages=TALK, call=offered, **BY_HAND)
    assert reply.tool_calls == (sm.ToolCall("c1", "add", '{"a": 1}'),)
    assert arrived.body["tools"][0] == {"type": "function", "function": ADD}
    assert arrived.body["tool_choice"] == {"type": "function", "function": {"name": "add"}}
    assert arrived.body["parallel_tool_calls"] is False
    assert [turn["role"] for turn in arrived.body["messages"]] == ["user", "assistant", "tool"]


async def test_tools_in_the_providers_own_protocol():
    """litellm writes and reads them as the provider does; beside tools a schema is asked for in text."""
    use = {"type": "tool_use", "id": "c1", "name": "add", "input": {"a": 1}}
    answer = Answer(200, {**CLAUDE, "stop_reason": "tool_use", "content": [use]})
    about = {"model": "anthropic/claude-x", "api_key": None, "messages": TALK, "schema": ANSWER}
    reply, (arrived,) = await ask(answer, call={"tools": [ADD]}, **about, **BY_HAND)
    (call,) = reply.tool_calls
    assert (call.id, call.name, call.arguments) == ("c1", "add", {"a": 1})
    (tool,) = arrived.body["tools"]
    assert (tool["name"], tool["input_schema"]["required"]) == ("add", ["a"])
    assert arrived.body["messages"][-1]["content"][0]["type"] == "tool_result"
    assert "<output_schema>" in str(arrived.body["system"])


@pytest.mark.parametrize(
    ("provider", "tools", "has_format"), [("openai", ["add", "reply"], False), ("azure", ["add"], True)]
)
async def test_a_schema_beside_tools_at_an_address(provider, tools, has_format):
    """A compatible server may make a grammar of the schema, and so has the answer as one more tool; Azure does not."""
    answer = completion('{"a": 1}')
    about = {"model": f"{provider}/m", "messages": TALK, "schema": ANSWER, "call": {"tools": [ADD]}}
    reply, (arrived,) = await ask(answer, **about, **BY_HAND)
    assert reply.json == {"a": 1}
    assert [tool["function"]["name"] for tool in arrived.body["tools"]] == tools
    assert ("response_format" in arrived.body) == has_format


async def test_a_forced_tool_carries_the_schema_to_any_provider():
    """`structured="tool"` in the provider's own protocol; the only tool is chosen as any."""
    use = {"type": "tool_use", "id": "c1", "name": "reply", "input": {"a": 1}}
    answer = Answer(200, {**CLAUDE, "stop_reason": "tool_use", "content": [use]})
    about = {"model": "anthropic/claude-x", "api_key": None, "schema": ANSWER, "structured": "tool"}
    reply, (arrived,) = await ask(answer, **about, **BY_HAND)
    assert reply.json == {"a": 1}
    assert [tool["name"] for tool in arrived.body["tools"]] == ["reply"]
    assert arrived.body["tool_choice"] == {"type": "any"}
