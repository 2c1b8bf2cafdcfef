"""Keys: where they come from, when they are missing, and that they do not show."""

import json

import pytest
from pydantic import SecretStr

import synmod as sm
from synmod.errors import AuthError, BadReplyError
from synmod.leaves import without_secrets
from synmod.lm import LanguageModel
from synmod.lm.options import ENVIRONMENT
from synmod.testing import FunctionLM
from tests.lm.in_module import inside
from tests.lm.loopback import Answer, ask


@pytest.fixture(autouse=True)
def bare_environment(monkeypatch):
    """No key of the machine reaches a test."""
    for names in ENVIRONMENT.values():
        for name in names:
            monkeypatch.delenv(name, raising=False)


def secrets(model="openai/x", **given):
    return LanguageModel(model, **given).secrets


@pytest.mark.parametrize("provider", sorted(ENVIRONMENT))
async def test_a_missing_key_is_known_at_once(provider):
    """AuthError at once, without wait or request; names the variables and the argument."""
    lm = LanguageModel(f"{provider}/some-model")
    with pytest.raises(AuthError) as caught:
        await lm("?")
    assert caught.value.attempts == lm.cumulated_requests == 0
    assert lm.cumulated_failed_calls == 1
    for name in (*ENVIRONMENT[provider], "api_key="):
        assert name in str(caught.value)


async def test_the_text_is_that_of_the_contract():
    """The exact words, with module and requests sent."""
    with pytest.raises(AuthError) as caught:
        await inside("pipeline/writer", lambda: LanguageModel("openai/gpt-4o-mini")("?"))
    assert str(caught.value) == (
        "openai/gpt-4o-mini: no API key. Set OPENAI_API_KEY, or pass api_key=... to the model.\n"
        "  module: pipeline/writer   requests sent: 0"
    )


async def test_the_argument_wins_over_the_environment(monkeypatch):
    """A key given is used; else the usual variable, read at call time."""
    monkeypatch.setenv("OPENAI_API_KEY", "from-environment")
    assert await secrets(api_key="given").key() == SecretStr("given")
    plain = secrets()
    assert await plain.key() == SecretStr("from-environment")
    monkeypatch.setenv("OPENAI_API_KEY", "another")
    assert await plain.key() == SecretStr("another")
    monkeypatch.setenv("OPENAI_API_KEY", "  ")
    assert plain.missing() is not None
    assert isinstance(await plain.key(), AuthError)


async def test_a_callable_is_asked_for_each_request():
    """Rotating tokens, plain or async."""
    tokens = iter(["one", "two"])

    async def later():
        return "async"

    rotating = secrets(api_key=lambda: next(tokens))
    assert [await rotating.key(), await rotating.key()] == [SecretStr("one"), SecretStr("two")]
    assert await secrets(api_key=later).key() == SecretStr("async")
    assert rotating.missing() is None


async def test_no_key_of_the_environment_for_an_api_base(monkeypatch):
    """With an `api_base` only the given key counts, and none is needed."""
    monkeypatch.setenv("OPENAI_API_KEY", "from-environment")
    away = secrets(api_base="http://localhost:1/v1")
    assert await away.key() is None
    assert away.missing() is None


def test_second_names_count(monkeypatch):
    """Gemini's key may stand under Google's name."""
    monkeypatch.setenv("GOOGLE_API_KEY", "from-environment")
    assert secrets("gemini/x").missing() is None


def test_other_providers_look_after_themselves():
    """Azure, Bedrock and Vertex have credentials of other kinds."""
    for model in ("azure/x", "bedrock/x", "vertex_ai/x"):
        assert secrets(model).missing() is None


def test_secrets_are_keys_in_use_and_hidden_headers(monkeypatch):
    """One secret may hold another, so the longest goes first; a plain header value is not a secret, nor a short one."""
    monkeypatch.setenv("GROQ_API_KEY", "gsk-environment")
    headers = {"A": SecretStr("Bearer secret-key-longer"), "B": SecretStr("short"), "X-Title": "Question Answering"}
    held = secrets(api_key="secret-key", headers=headers)
    assert held.hidden_texts() == {"secret-key", "secret-key-longer", "Bearer secret-key-longer", "gsk-environment"}
    assert held.scrub("secret-key-longer secret-key gsk-environment, short") == "*** *** ***, short"
    assert held.headers() == {"A": "Bearer secret-key-longer", "B": "short", "X-Title": "Question Answering"}


async def test_the_keys_of_a_callable_are_secrets_once_they_were_used():
    """What a callable returned stays known, so that a late error shows none of it."""
    rotating = secrets(api_key=iter(["first-key-1", "second-key-2"]).__next__)
    assert rotating.hidden_texts() == frozenset()
    await rotating.key()
    await rotating.key()
    assert rotating.hidden_texts() == {"first-key-1", "second-key-2"}


async def test_words_of_a_header_are_not_starred_out():
    """A title that is sent as a header leaves questions, replies and traces as they are."""
    lm = FunctionLM(
        lambda request: "Answering is easy", headers={"X-Title": "Question Answering", "X-Role": "assistant"}
    )
    with sm.trace() as trace:
        reply = await lm("What is Question Answering about?")
    assert reply.text == "Answering is easy"
    shown = trace.to_json()["lm_calls"][0]
    assert shown["request"]["messages"] == [{"role": "user", "content": "What is Question Answering about?"}]
    assert "***" not in str(shown)
    with pytest.raises(BadReplyError) as caught:
        await FunctionLM(lambda request: "assistant, not JSON", headers={"X-Role": "assistant"}, repairs=0)("?", {})
    assert caught.value.text == "assistant, not JSON"


async def test_a_key_in_a_bad_reply_is_not_shown():
    """`BadReplyError.text` holds no key in use."""
    lm = FunctionLM(lambda request: "not JSON: sk-12345678", api_key="sk-12345678", repairs=0)
    with pytest.raises(BadReplyError) as caught:
        await lm("?", {})
    assert caught.value.text == "not JSON: ***"


LONG = "sk-abcdefghijklmnopqrstuvwxyz0123456789"
STRICT = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"], "additionalProperties": False}
SEARCH = {"name": "search", "parameters": {"type": "object", "properties": {"q": {"type": "integer"}}}}
ECHOES = {
    "a value": lambda text: json.dumps({"a": text}),
    "a key": lambda text: json.dumps({"a": 1, text: 1}),
    "a key that repeats": lambda text: f'{{"{text}": 1, "{text}": 2}}',
    "a tool": lambda text: sm.ToolCall("1", text, {}),
    "an argument": lambda text: sm.ToolCall("1", "search", {"q": text}),
    "arguments": lambda text: sm.ToolCall("1", "search", text),
}


def shown(error):
    """All that an error shows."""
    return repr([str(error), error.text, error.errors, error.provider_message])


@pytest.mark.parametrize("echo", ECHOES)
async def test_no_beginning_of_a_key_stays_where_a_text_is_cut(echo):
    """Wherever the key stands in what a model writes: errors quote the beginnings of texts."""
    for before in range(0, 240, 5):
        lm = FunctionLM(lambda _, text="x" * before + LONG: ECHOES[echo](text), api_key=LONG, attempts=1)
        tools = [SEARCH] if "tool" in echo or "argument" in echo else None
        with pytest.raises(BadReplyError) as caught:
            async with await lm("?", None if tools else STRICT, tools, stream=True) as stream:
                async for _ in stream:
                    pass
        assert LONG[:8] not in shown(caught.value), before


@pytest.mark.parametrize("before", [140, 150, 170, 190, 1_300, 1_470, 1_490, 1_980])
async def test_no_beginning_of_a_key_stays_of_what_a_provider_sends(before):
    """A body that writes it in escapes; a reply that cannot be read."""
    escaped = json.dumps({"error": {"message": "x" * before + LONG}}).replace("-", "\\u002d").encode()
    for answer in (Answer(400, raw=escaped), Answer(200, raw=f"{'x' * before}{LONG}".encode())):
        error, _ = await ask(answer, api_key=LONG)
        assert LONG[:8] not in f"{error} {error.provider_message}"


async def test_a_key_with_signs_is_found_however_it_is_written():
    """With quotes and slashes, as text, in JSON, and in JSON within JSON."""
    key = 'sk-quote"back\\slash/xyz-0123456789'
    written = [key, json.dumps(key), json.dumps(json.dumps(key)), repr(key), json.dumps({"a": [key]})]
    assert without_secrets("\n".join(written), [key]).count("***") == 5
    lm = FunctionLM(lambda _: json.dumps({key: key, "b": json.dumps(key)}), api_key=key, attempts=1)
    with pytest.raises(BadReplyError) as caught:
        await lm("?", STRICT)
    assert "0123456789" not in shown(caught.value)
    kept = FunctionLM(lambda _: json.dumps({"b": key}), api_key=key, cache=sm.Cache())
    await kept("?")
    assert kept.cache.items() == []


def test_only_what_was_cut_is_taken_for_the_beginning_of_a_key():
    """Words that begin as a key does stay."""
    held = secrets(api_key="/home/user/keys.json")
    assert held.scrub("/home/user/notes.txt") == "/home/user/notes.txt"
    assert held.scrub("got '/home/user") == "got '***"
