"""The direct adapter against a real server on the loopback: what is sent, and what becomes of each answer."""

import asyncio
import gzip
import json
import os
import subprocess
import sys
import time

import aiohttp
import pytest
from pydantic import SecretStr

import synmod as sm
from synmod.errors import AuthError, ConfigError, ModelTimeout, SynmodWarning, UnavailableError
from synmod.lm import SAMPLING, LanguageModel
from synmod.lm.options import ENVIRONMENT
from tests.lm.loopback import KEY, Answer, Loopback, ask, completion, failure

ANSWER = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"], "additionalProperties": False}
OPEN = {"type": "object", "properties": {"a": {"type": "integer"}}, "title": "My Answer!"}
LATE_S = 20.0  # between 100 ms, which a quiet machine needs, and the minute that is cut short: a busy one must not fail


@pytest.fixture(autouse=True)
def environment(monkeypatch):
    """Every provider has a key in the environment, and no proxy stands between."""
    for names in ENVIRONMENT.values():
        for name in names:
            monkeypatch.setenv(name, f"sk-environment-{name}")
    for name in [name for name in os.environ if name.lower().endswith("_proxy")]:
        monkeypatch.delenv(name)


STATUSES = {
    "RequestError": [301, 302, 307, 400, 404, 405, 413, 415, 418, 422],
    "AuthError": [401, 402, 403],
    "RateLimitError": [429],
    "UnavailableError": [408, 409, 425, 500, 501, 502, 503, 504, 529],
}


@pytest.mark.parametrize(("name", "status"), [(name, one) for name, many in STATUSES.items() for one in many])
async def test_each_status_has_its_class(name, status):
    """The table of failures, by status; one request each, and what the provider answered."""
    error, arrived = await ask(failure(status, f"said {status}"))
    assert (type(error).__name__, error.status, len(arrived)) == (name, status, 1)
    assert f"the provider answered {status}: said {status}" in str(error)
    assert error.transient == (name in ("RateLimitError", "UnavailableError"))
    assert error.__cause__ is None
    assert error.__context__ is None


@pytest.mark.parametrize(
    ("answer", "name"),
    [
        (failure(429, "You exceeded your current quota", code="insufficient_quota"), "AuthError"),
        (failure(429, "no more", code="insufficient_quota"), "AuthError"),
        (failure(429, "You exceeded your current quota. Please retry in 3 s."), "RateLimitError"),
        (failure(429, "Rate limit reached. Add a card at https://example.com/billing"), "RateLimitError"),
        (failure(400, "no", code="context_length_exceeded"), "ContextWindowError"),
        (failure(400, "This model's maximum context length is 10 tokens"), "ContextWindowError"),
        (failure(413, "prompt is too long"), "ContextWindowError"),
        (failure(500, "input (801 tokens) is too large to process. increase the batch size"), "ContextWindowError"),
        (failure(400, "no", code="content_filter"), "BadReplyError"),
        (Answer(302, {}, {"location": "http://127.0.0.1:9/elsewhere"}), "RequestError"),
        (Answer(500, raw=b"<html>down</html>"), "UnavailableError"),
        (failure(500, "image input is not supported"), "RequestError"),
        (failure(501, "This server does not support embeddings"), "RequestError"),
        (Answer(400, raw=b'{"detail": "no such field"}'), "RequestError"),
    ],
)
async def test_the_words_decide_where_a_status_does_not(answer, name):
    """An empty account is not a rate limit, a long prompt not a bad request; a redirect is not followed."""
    error, arrived = await ask(answer)
    assert (type(error).__name__, len(arrived)) == (name, 1)


async def test_retry_after_and_request_id_are_kept():
    """Headers of the provider reach the error."""
    error, _ = await ask(failure(429, "slow", retry_after="7", x_request_id="req-1"))
    assert (error.retry_after_s, error.request_id) == (7, "req-1")


async def test_secrets_that_a_provider_echoes_are_scrubbed():
    """Key, hidden header value and credentials of the environment become `***`; a plain header value stays."""
    echoed = f"bad key {KEY} and {os.environ['GROQ_API_KEY']} and token-of-header and plain-header"
    headers = {"X-Token": SecretStr("token-of-header"), "X-Mine": "plain-header"}
    error, _ = await ask(failure(401, echoed), headers=headers)
    assert "bad key *** and *** and *** and plain-header" in str(error)
    assert "bad key *** and *** and ***" in error.provider_message


async def test_no_frame_of_a_traceback_holds_a_key():
    """Whoever prints the locals of a traceback prints no secret."""
    async with Loopback(failure(401, "no")) as server:
        with pytest.raises(AuthError) as caught:
            await LanguageModel("openai/m", api_base=server.base, api_key=KEY)("x")
    trace, held = caught.value.__traceback__.tb_next, ""
    while trace is not None:
        held, trace = held + repr(trace.tb_frame.f_locals), trace.tb_next
    assert KEY not in held


@pytest.mark.parametrize("before", [1_484, 1_492, 1_984, 1_992])
async def test_no_part_of_a_secret_stays_where_a_text_is_cut(before):
    """What a provider echoes is scrubbed before it is cut to its length of at most 2 kB."""
    error, _ = await ask(failure(400, "y" * before + KEY + "z" * 9_000))
    assert "ysk" not in str(error) + error.provider_message
    assert len(error.provider_message) == 2_000


async def test_rotating_keys_are_scrubbed_however_many_are_in_flight():
    """Twenty requests at once, each with another key that the server echoes."""
    keys = iter(range(100_000, 200_000))
    async with Loopback(failure(401, "bad key {authorization}")) as server:
        lm = LanguageModel("openai/m", api_base=server.base, api_key=lambda: f"rotating-key-{next(keys)}", attempts=1)
        got = await asyncio.gather(*[lm("x") for _ in range(20)], return_exceptions=True)
    assert len(server.arrived) == 20
    assert not any("rotating-key-1" in f"{one} {one.provider_message}" for one in got)


@pytest.mark.parametrize(
    ("answer", "name", "reason"),
    [
        (Answer(200, raw=b"<html>hello</html>"), "UnavailableError", None),
        (Answer(200, raw=b""), "UnavailableError", None),
        (Answer(200, raw=b"[1]"), "UnavailableError", None),
        (Answer(200, raw=b'{"x": NaN}'), "UnavailableError", None),
        (Answer(200, raw=gzip.compress(b"{}")[:12], headers={"content-encoding": "gzip"}), "UnavailableError", None),
        (Answer(200, {"id": "x", "object": "chat.completion", "choices": []}), "UnavailableError", None),
        (completion("", finish_reason="content_filter"), "BadReplyError", "refused"),
        (completion(None, refusal="I cannot"), "BadReplyError", "refused"),
        (Answer(200, completion().body, cut=True), "UnavailableError", None),
        (Answer(200, raw=b"x" * (33 * 2**20)), "BadReplyError", "not_json"),
        (Answer(500, raw=b"x" * (33 * 2**20)), "UnavailableError", None),
    ],
)
async def test_answers_that_are_not_replies(answer, name, reason):
    """Refused replies are BadReplyErrors, an answer without a reply is the server's fault; 32 MiB are read."""
    error, arrived = await ask(answer)
    assert (type(error).__name__, getattr(error, "reason", None), len(arrived)) == (name, reason, 1)
    assert len(error.provider_message) <= 2_000
    if answer.raw and answer.raw.startswith(b"<html>"):
        assert error.provider_message == "<html>hello</html>"


async def test_a_reply_holds_what_the_provider_returned():
    """Text, reasoning, finish reason, usage and id."""
    reply, _ = await ask(completion("hello", reasoning_content="because"))
    assert (reply.text, reply.reasoning, reply.finish_reason) == ("hello", "because", "stop")
    assert (reply.usage.prompt_tokens, reply.usage.completion_tokens, reply.usage.cost_usd) == (7, 3, None)
    assert (reply.model, reply.request_id) == ("openai/some-model", "chatcmpl-1")
    assert (await ask(completion("half", finish_reason="length")))[0].finish_reason == "length"
    assert (await ask(completion(None)))[0].text == ""
    estimated, _ = await ask(completion("x" * 30, usage=(0, 0)), messages="y" * 9)
    assert (estimated.usage.prompt_tokens, estimated.usage.completion_tokens, estimated.usage.estimated) == (
        3,
        10,
        True,
    )


async def test_reasoning_of_a_server_fills_its_field():
    """Nothing is known of a server, so the field is asked for."""
    schema = {"type": "object", "properties": {"thinking": {"type": "string"}, **ANSWER["properties"]}}
    thought = completion('{"a": 1}', reasoning_content="because")
    reply, arrived = await ask(thought, schema=schema, call={"reasoning_field": "thinking"})
    assert reply.json == {"thinking": "because", "a": 1}
    assert '"thinking"' in json.dumps(arrived[0].body)


async def test_repair_and_retry_reach_the_wire_exactly():
    """As many requests as promised, never more."""
    reply, arrived = await ask(completion("prose"), completion('{"a": 1}'), schema=ANSWER, attempts=2)
    assert (reply.usage.prompt_tokens, len(arrived)) == (14, 2)
    assert [turn["role"] for turn in arrived[1].body["messages"]] == ["user", "assistant", "user"]
    soon = failure(500, retry_after="0")
    assert len((await ask(soon, soon, completion("third"), attempts=3))[1]) == 3
    assert len((await ask(soon, attempts=3))[1]) == 3


@pytest.mark.parametrize(
    "model", ["vllm/m", "hosted_vllm/m", "ollama/m", "lm_studio/m", "llamafile/m", "groq/m", "openai/m"]
)
async def test_an_api_base_gets_chat_completions_and_no_key_of_the_environment(model):
    """Any model with an `api_base`, without an Authorization header unless a key is given."""
    _, (arrived,) = await ask(model=model, api_key=None)
    assert arrived.path == "/v1/chat/completions"
    assert arrived.body["model"] == model.partition("/")[2]
    assert "authorization" not in arrived.headers
    assert "sk-environment" not in str(arrived.headers)
    _, (arrived,) = await ask(model=model)
    assert arrived.headers["authorization"] == f"Bearer {KEY}"


async def test_headers_and_extra_fields_are_sent():
    """`headers` and `extra_body` reach the server; headers that hide themselves, too."""
    headers = {"X-Mine": "yes", "X-Token": SecretStr("hidden-token")}
    _, (arrived,) = await ask(headers=headers, extra_body={"guided": {"x": 1}}, temperature=0.5)
    assert (arrived.headers["x-mine"], arrived.headers["x-token"]) == ("yes", "hidden-token")
    assert arrived.body == {
        "model": "some-model",
        "temperature": 0.5,
        "messages": [{"role": "user", "content": "Hi"}],
        "guided": {"x": 1},
    }


async def test_no_parameter_is_dropped():
    """Every sampling parameter whose result a reply can hold reaches a server, under its own name."""
    every = dict.fromkeys(SAMPLING, 1) | {"logprobs": False, "top_logprobs": 0, "modalities": ["text"]}
    _, (arrived,) = await ask(call=every)
    assert every.items() <= arrived.body.items()


@pytest.mark.parametrize("adapter", ["direct", "litellm"])
@pytest.mark.parametrize("wanted", [{"best_of": 2}, {"n": 3}, {"n_probs": 4}])
async def test_what_no_reply_can_hold_is_refused_before_sending(wanted, adapter):
    """It would be paid for and lost; a value that requests nothing is sent."""
    (name,) = wanted
    error, arrived = await ask(adapter=adapter, extra_body=wanted)
    assert isinstance(error, sm.RequestError)
    assert (name in str(error), error.attempts, arrived) == (True, 0, [])
    _, arrived = await ask(extra_body={"n": 1, "best_of": 1})
    assert len(arrived) == 1


async def test_openai_itself_gets_its_own_names(monkeypatch):
    """`max_tokens` is sent as `max_completion_tokens`; `top_k` is refused before sending; a key is required."""
    lm = LanguageModel("openai/gpt-4o-mini", max_tokens=5, api_key=KEY)
    with pytest.raises(sm.RequestError, match="top_k") as caught:
        await lm("x", top_k=3)
    assert caught.value.attempts == 0
    sent = []

    def post(session, url, **given):
        sent.append((url, given["data"]))
        raise aiohttp.ClientConnectionError("nothing leaves this machine")

    monkeypatch.setattr(aiohttp.ClientSession, "post", post)
    with pytest.raises(UnavailableError):
        await LanguageModel("openai/gpt-4o-mini", max_tokens=5, api_key=KEY, attempts=1)("x")
    ((url, body),) = sent
    assert url == "https://api.openai.com/v1/chat/completions"
    assert json.loads(body)["max_completion_tokens"] == 5
    assert "max_tokens" not in json.loads(body)


async def test_the_schema_is_sent_as_it_is():
    """Native JSON schema; `strict` only within the strict subset; a valid name; nothing rewritten."""
    _, (arrived,) = await ask(completion('{"a": 1}'), schema=ANSWER)
    strict = arrived.body["response_format"]
    assert (strict["type"], strict["json_schema"]["strict"], strict["json_schema"]["schema"]) == (
        "json_schema",
        True,
        ANSWER,
    )
    _, (arrived,) = await ask(completion('{"a": 1}'), schema=OPEN)
    assert arrived.body["response_format"]["json_schema"] == {"name": "My_Answer", "schema": OPEN}


@pytest.mark.parametrize(("level", "field"), [("json", {"type": "json_object"}), ("prompt", None)])
async def test_other_levels_write_the_schema_into_the_text(level, field):
    """JSON mode and text only: the model reads the schema, once."""
    for given in ({"structured": level}, {"call": {"structured": level}}):
        _, (arrived,) = await ask(completion('{"a": 1}'), schema=ANSWER, **given)
        assert arrived.body.get("response_format") == field
        assert '"integer"' in arrived.body["messages"][0]["content"]
    shown = [{"role": "system", "content": "<output_schema>{}</output_schema>"}, {"role": "user", "content": "x"}]
    _, (arrived,) = await ask(completion('{"a": 1}'), schema=ANSWER, messages=shown, structured=level)
    assert len(arrived.body["messages"]) == 2


async def test_hints_name_the_remedy():
    """A refused field proposes structured="prompt", without a second call; a 404 names the missing /v1."""
    error, arrived = await ask(failure(400, "unknown field response_format"), schema=ANSWER)
    assert (type(error).__name__, len(arrived)) == ("RequestError", 1)
    assert 'structured="prompt"' in str(error)
    for message in ("the model `m` does not exist", "temperature is not supported"):
        error, _ = await ask(failure(400, message), schema=ANSWER)
        assert "structured" not in str(error)
    error, arrived = await ask(failure(404, "not found"), path="")
    assert arrived[0].path == "/chat/completions"
    assert "/v1" in str(error)


async def test_rotating_keys_are_read_for_each_request():
    """A callable returns the key of each request, retries included."""
    rotating = iter(["one-key-1", "two-key-2"]).__next__
    _, arrived = await ask(failure(500, retry_after="0"), completion("x"), attempts=2, api_key=rotating)
    assert [one.headers["authorization"] for one in arrived] == ["Bearer one-key-1", "Bearer two-key-2"]


async def test_a_key_that_cannot_be_sent_is_not_a_lost_connection():
    """The end of a line is taken off; another fault of a key is an AuthError that shows nothing of it, unsent."""
    assert (await ask(api_key=KEY + "\n"))[1][0].headers["authorization"] == f"Bearer {KEY}"
    for key in ("one\ntwo", lambda: "clé", lambda: b"bytes-would-be-sent-as-repr"):
        error, arrived = await ask(api_key=key)
        assert (type(error), error.attempts, arrived) == (AuthError, 0, [])
        assert "clé" not in str(error)
    with pytest.raises(AuthError) as caught:
        await LanguageModel("openai/m", api_key=lambda: None)("x")
    assert caught.value.attempts == 0


async def test_time_limits_hold():
    """`timeout_s` and `attempt_timeout_s`, at most 50 ms late."""
    async with Loopback(Answer(200, completion().body, delay_s=60)) as server:
        began = time.monotonic()
        with pytest.raises(ModelTimeout):
            await LanguageModel("openai/m", api_base=server.base, timeout_s=0.2)("x")
        assert 0.2 <= time.monotonic() - began < 0.2 + LATE_S
        with pytest.raises(ModelTimeout) as caught:
            lm = LanguageModel("openai/m", api_base=server.base, attempt_timeout_s=0.1, attempts=2, timeout_s=60)
            lm.backoff = False
            await lm("x")
        assert caught.value.attempts == 2


async def test_cancelling_closes_the_connection():
    """Within 100 ms (promise A2)."""
    async with Loopback(Answer(200, completion().body, delay_s=60)) as server:
        task = asyncio.create_task(LanguageModel("openai/m", api_base=server.base)("x"))
        while not server.arrived:
            await asyncio.sleep(0.01)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        assert task.cancelled()
        await asyncio.wait_for(server.hung_up.wait(), LATE_S)


async def test_a_refused_connection_is_unavailable():
    """Nothing listens: transient, without a status, all attempts used."""
    lm = LanguageModel("openai/m", api_base="http://127.0.0.1:9/v1", attempts=2)
    lm.backoff = False
    with pytest.raises(UnavailableError) as caught:
        await lm("x")
    assert (caught.value.status, caught.value.attempts) == (None, 2)


async def test_aclose_closes_the_connections_and_the_model_still_works():
    """The next call opens new ones; other models of the loop keep theirs."""
    async with Loopback(completion("x")) as server:
        one, two = (LanguageModel("openai/m", api_base=server.base) for _ in range(2))
        for lm in (one, two, one):
            assert (await lm("x")).text == "x"
            await lm.aclose()
        await asyncio.gather(*[one("x") for _ in range(30)])
        assert len(server.arrived) == 33


def test_a_model_that_was_never_called_has_nothing_to_close():
    """`aclose` opens no session and imports nothing."""
    code = (
        "import asyncio, sys; from synmod.lm import LanguageModel\n"
        "asyncio.run(LanguageModel('openai/m').aclose()); print('aiohttp' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def test_what_a_first_request_imports_costs_it_no_time():
    """It is loaded before `timeout_s` begins, in a thread."""
    code = (
        "import sys; import synmod as sm; adapter = sm.LanguageModel('openai/m', api_base='http://127.0.0.1:9').adapter\n"
        "loaded = 'aiohttp' in sys.modules; sm.run(adapter.prepare, None); print(loaded, 'aiohttp' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False True\n"


async def test_a_key_over_plain_http_to_a_public_host_warns():
    """A SynmodWarning; private networks and https do not warn."""
    with pytest.warns(SynmodWarning, match="plain http"):
        LanguageModel("openai/m", api_base="http://llm.example.com/v1", api_key=KEY)
    for base in ("https://llm.example.com/v1", "http://10.0.0.3/v1", "http://gpu7:8000/v1", "http://[::1]:8000/v1"):
        LanguageModel("openai/m", api_base=base, api_key=KEY)


def test_direct_by_hand_needs_an_address():
    """`adapter="direct"` for a provider without a known address is a ConfigError that names api_base."""
    with pytest.raises(ConfigError, match="api_base"):
        LanguageModel("groq/m", adapter="direct")
    assert LanguageModel("ollama/m", adapter="direct").adapter.name == "direct"


async def test_proxies_come_from_the_environment(monkeypatch):
    """A proxy of the usual variables gets the request, unless the host is excepted."""
    async with Loopback(completion("by proxy")) as proxy:
        monkeypatch.setenv("http_proxy", proxy.base.removesuffix("/v1"))
        monkeypatch.delenv("no_proxy", raising=False)
        reply = await LanguageModel("openai/m", api_base="http://llm.invalid/v1")("x")
        assert reply.text == "by proxy"
        assert proxy.arrived[0].headers["host"] == "llm.invalid"


def test_trio_is_refused():
    """Network adapters need asyncio; the error is not transient."""
    import trio

    async def ask_it():
        with pytest.raises(UnavailableError, match="asyncio") as caught:
            await LanguageModel("openai/m", api_base="http://127.0.0.1:9/v1")("x")
        assert not caught.value.transient

    trio.run(ask_it)


PURITY = """
import asyncio, sys
from synmod.lm import LanguageModel
assert not {"litellm", "aiohttp", "httpx"} & set(sys.modules), "imported too early"

async def server(reader, writer):
    await reader.readuntil(b"}]}")
    body = b'{"choices": [{"message": {"content": "hi"}, "finish_reason": "stop"}]}'
    writer.write(b"HTTP/1.1 200 OK\\r\\ncontent-length: %d\\r\\n\\r\\n" % len(body) + body)
    await writer.drain()

async def main():
    served = await asyncio.start_server(server, "127.0.0.1", 0)
    base = f"http://127.0.0.1:{served.sockets[0].getsockname()[1]}/v1"
    print((await LanguageModel("openai/m", api_base=base)("x")).text)

if sys.argv[1] == "run":
    asyncio.run(main())
else:
    loop = asyncio.new_event_loop()
    loop.run_until_complete(main())
    if sys.argv[1] == "closed":
        loop.close()
print([name for name in ("litellm", "httpx") if name in sys.modules])
"""


@pytest.mark.parametrize("way", ["run", "closed", "open"])
def test_the_first_call_imports_no_litellm_and_leaves_no_word(way):
    """In a new process, whether its loop is ended, closed without an end, or left open."""
    done = subprocess.run(
        [sys.executable, "-W", "always", "-c", PURITY, way], capture_output=True, text=True, check=True
    )
    assert done.stdout == "hi\n[]\n"
    noise = [line for line in done.stderr.splitlines() if "aiohttp" in line or "Unclosed client" in line]
    assert noise == []


async def test_a_loop_that_ends_forgets_its_session():
    """Hundreds of loops, one after the other, leave no session behind."""
    import threading

    async with Loopback(completion("x")) as server:
        lm = LanguageModel("openai/m", api_base=server.base)
        texts = []
        thread = threading.Thread(target=lambda: texts.extend(asyncio.run(lm("x")).text for _ in range(5)))
        thread.start()
        while thread.is_alive():
            await asyncio.sleep(0.01)
    assert texts == ["x"] * 5


@pytest.mark.parametrize(
    ("message", "text"),
    [
        ({"content": "a", "tool_calls": 5}, "a"),
        ({"content": [1, None, {"type": "text", "text": "b"}]}, "b"),
        ({"content": "c", "reasoning_content": 7}, "c"),
    ],
)
async def test_odd_parts_of_a_reply_are_passed_over(message, text):
    """A server that sends numbers where texts and lists belong is read as far as it goes."""
    body = {"id": {}, "choices": [{"finish_reason": 5, "message": message}], "usage": {"completion_tokens": True}}
    reply, _ = await ask(Answer(200, body))
    assert (reply.text, reply.tool_calls, reply.reasoning, reply.finish_reason) == (text, (), None, None)
    assert (reply.request_id, reply.usage.estimated) == (None, True)


async def test_an_error_sent_with_status_200_is_quoted():
    """Some routers answer 200 with an error inside; its message reaches the user, without the key."""
    error, _ = await ask(Answer(200, {"error": {"message": f"the backend of {KEY} is down"}}))
    assert isinstance(error, sm.UnavailableError)
    assert "the backend of *** is down" in str(error)
    assert error.provider_message == "the backend of *** is down"


@pytest.mark.parametrize(
    "body",
    [{"error": [{"message": "busy", "code": 503}]}, {"success": False, "errors": [{"code": 7009, "message": "busy"}]}],
)
async def test_the_message_of_a_list_of_one_error_is_quoted(body):
    """Without the JSON around it."""
    error, _ = await ask(Answer(200, body))
    assert (type(error), error.provider_message) == (sm.UnavailableError, "busy")


@pytest.mark.parametrize(
    ("answers", "count", "paths"),
    [
        ([Answer(200, {"count": 7, "tokens": [1] * 7, "max_model_len": 9})], 7, ["/tokenize"]),
        (
            [Answer(200, {"tokens": []}), Answer(200, {"prompt": "<s>Hello"}), Answer(200, {"tokens": [1, 2]})],
            2,
            ["/tokenize", "/apply-template", "/tokenize"],
        ),
        ([failure(404)], None, ["/tokenize"]),
        ([Answer(200, raw=b"<html>")], None, ["/tokenize"]),
        ([Answer(200, {"count": "many"})], None, ["/tokenize"]),
        ([Answer(200, {"tokens": []}), failure(404)], None, ["/tokenize", "/apply-template"]),
        ([Answer(200, [], cut=True)], None, ["/tokenize"]),
    ],
    ids=str,
)
async def test_a_local_server_counts_tokens_by_its_own_tokenizer(answers, count, paths):
    """vLLM's, and llama.cpp's after its template; without one the count is an estimate, and marked."""
    async with Loopback(*answers) as server:
        lm = LanguageModel("openai/m", api_base=server.base, api_key=KEY)
        tokens = await lm.count_tokens("Hello, how are you?")
        await lm.aclose()
    assert (tokens, tokens.estimated) == ((7, True) if count is None else (count, False))
    assert [one.path for one in server.arrived] == paths
    assert {one.headers["authorization"] for one in server.arrived} == {f"Bearer {KEY}"}
