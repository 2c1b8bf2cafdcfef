"""LanguageModel: what it takes, what it never shows, and that it cannot be copied or pickled."""

import copy
import pickle

import pytest
from pydantic import SecretStr

import synmod as sm
from synmod.errors import ConfigError, DataError, SchemaError, UnboundModelError
from synmod.lm import LanguageModel, LMReply, unbound_model, use_language_models
from synmod.testing import FunctionLM, ScriptedLM

SCHEMA = {"type": "object", "properties": {"answer": {"type": "string"}}, "required": ["answer"]}


async def test_the_first_example_of_the_contract():
    """`reply["answer"]`, usage and cached are there."""
    lm = ScriptedLM(['{"answer": "Paris"}'])
    reply = await lm([{"role": "user", "content": "Capital of France?"}], schema=SCHEMA)
    assert reply["answer"] == "Paris"
    assert reply.cached is False
    assert reply.model == lm.model
    assert reply.message == {"role": "assistant", "content": '{"answer": "Paris"}'}
    assert len(reply.attempts) == reply.usage.requests == reply.usage.calls == 1
    assert reply.elapsed_s >= reply.attempts[0].elapsed_s >= 0


async def test_the_schema_may_be_a_data_model():
    """A data model class is a schema."""

    class Answer(sm.DataModel):
        answer: str

    lm = ScriptedLM(['{"answer": "Paris"}'])
    assert (await lm("?", Answer))["answer"] == "Paris"
    assert lm.requests[0].schema == Answer.get_schema()


async def test_json_is_there_exactly_with_a_schema():
    """Without a schema the reply is text, even if it looks like JSON."""
    reply = await ScriptedLM(['{"answer": "Paris"}'])("?")
    assert reply.json is None
    assert reply.text == '{"answer": "Paris"}'


async def test_call_parameters_win_over_defaults():
    """A parameter of the call replaces that of the model; None leaves it."""
    lm = FunctionLM(lambda request: "x", temperature=0.5, seed=1)
    await lm("?", temperature=0, seed=None, top_p=1)
    assert dict(lm.requests[0].params) == {"temperature": 0, "seed": 1, "top_p": 1}
    assert dict(lm.defaults) == {"temperature": 0.5, "seed": 1}


async def test_sample_numbers_draws():
    """`sample` reaches the request; a block says it for the calls inside."""
    lm = FunctionLM(lambda request: "x")
    await lm("?")
    await lm("?", sample=3)
    with sm.lm.sample_number(2):
        await lm("?")
    assert [request.sample for request in lm.requests] == [0, 3, 2]
    with pytest.raises(ConfigError, match="sample"):
        await lm("?", sample=-1)


@pytest.mark.parametrize(
    ("keywords", "says"),
    [
        ({"retries": 3}, "Did you mean 'attempts'"),
        ({"attempts": 0}, "attempts"),
        ({"attempts": True}, "attempts"),
        ({"attempts": 1.5}, "attempts"),
        ({"attempts": 101}, "attempts"),
        ({"repairs": -1}, "repairs"),
        ({"timeout_s": 0}, "timeout_s"),
        ({"timeout_s": float("nan")}, "timeout_s"),
        ({"attempt_timeout_s": "1"}, "attempt_timeout_s"),
        ({"structured": "tols"}, "structured"),
        ({"structured": "shema"}, "Did you mean 'schema'"),
        ({"price": (1,)}, "price"),
        ({"price": (1, -2)}, "price"),
        ({"price": "cheap"}, "price"),
        ({"api_key": 3}, "api_key"),
        ({"api_base": "localhost:8000"}, "api_base"),
        ({"api_base": "ftp://x/v1"}, "api_base"),
        ({"api_base": "https://user:pw@x/v1"}, "api_base"),
        ({"api_base": "https://x/v1?key=1"}, "api_base"),
        ({"api_base": "https://x/v1#a"}, "api_base"),
        ({"api_base": "http://[::1"}, "api_base"),
        ({"api_base": "https://x/v1?"}, "api_base"),
        ({"api_base": "https://x/v1#"}, "api_base"),
        ({"api_base": "https://x/v1\n"}, "api_base"),
        ({"api_base": "https://x/a v1"}, "api_base"),
        ({"headers": {"X": "a\nb"}}, "headers"),
        ({"headers": {"X": "é"}}, "headers"),
        ({"headers": {"X Y": "a"}}, "headers"),
        ({"headers": {"": "a"}}, "headers"),
        ({"extra_body": [1]}, "extra_body"),
        ({"headers": ["X"]}, "headers"),
        ({"adapter": "drect"}, "adapter"),
        ({"adapter": object()}, "name, version, send"),
        ({"name": ""}, "name"),
    ],
)
def test_what_cannot_be_is_a_config_error(keywords, says):
    """Every wrong argument is a ConfigError that names it."""
    with pytest.raises(ConfigError, match=says):
        LanguageModel("openai/gpt-4o-mini", **keywords)


@pytest.mark.parametrize("keyword", ["streams", "tolls", "cache", "retries", "temprature"])
async def test_what_a_call_does_not_know_is_a_config_error(keyword):
    """An unknown keyword of a call is refused before anything is sent."""
    lm = FunctionLM(lambda request: "x")
    with pytest.raises(ConfigError, match=f"unknown keyword '{keyword}'"):
        await lm("?", **{keyword: True})
    assert lm.requests == []


async def test_faults_of_a_call_come_before_sending():
    """Messages, schema and time are checked before anything is sent."""
    lm = FunctionLM(lambda request: "x")
    with pytest.raises(DataError, match=r"messages\[0\]"):
        await lm([{"role": "nobody", "content": "x"}])
    with pytest.raises(SchemaError):
        await lm("?", {"type": "nothing"})
    with pytest.raises(ConfigError, match="timeout_s"):
        await lm("?", timeout_s=-1)
    with pytest.raises(ConfigError, match="structured"):
        await lm("?", structured="tols")
    assert lm.requests == []


def test_repr_shows_model_and_attempts_only():
    """Key, base and headers are never shown."""
    lm = LanguageModel(
        "openai/x",
        api_key="sk-secret-key-1",
        api_base="https://secret.example/v1",
        headers={"X-Token": "secret-header"},
        attempts=2,
    )
    assert repr(lm) == "LanguageModel('openai/x', attempts=2)"
    assert "secret" not in repr(lm.settings) + repr(lm.adapter)


def test_keys_may_hide_themselves():
    """A SecretStr is a key, and known as a secret."""
    lm = LanguageModel(
        "openai/x", api_key=SecretStr("sk-secret-key-1"), headers={"Authorization": SecretStr("Bearer token-12345")}
    )
    assert {"sk-secret-key-1", "token-12345", "Bearer token-12345"} <= lm.all_secrets()


def test_a_model_is_not_pickled():
    """Pickling is a TypeError that says what to do."""
    with pytest.raises(TypeError, match="pickled"):
        pickle.dumps(FunctionLM(lambda request: "x"))


def test_a_model_is_its_own_copy():
    """Copies of a program share the model."""
    lm = FunctionLM(lambda request: "x")
    assert copy.copy(lm) is copy.deepcopy({"lm": lm})["lm"] is lm


def test_supply_names_what_a_file_must_not_hold():
    """A saved file gets the names of what was supplied, in one order, never the values."""
    lm = LanguageModel(
        "openai/x", extra_body={"c": 1}, headers={"A": "b"}, api_base="http://localhost:1/v1", api_key="k"
    )
    assert lm.settings.supply == ("api_base", "headers", "extra_body")
    assert FunctionLM(lambda request: "x").settings.supply == ("adapter",)
    assert LanguageModel("openai/x").settings.supply == ()


async def test_an_adapter_of_ones_own_gets_all_layers():
    """name, version and async send are enough; retries and counters come with it."""

    class Mine:
        name, version, sent = "mine", 1, 0

        async def send(self, request):
            self.sent += 1
            if self.sent == 1:
                raise sm.RateLimitError("busy", retry_after_s=0)
            return LMReply('```json\n{"answer": "yes"}\n```')

    lm = LanguageModel("my/model", adapter=Mine())
    reply = await lm("?", SCHEMA)
    assert reply["answer"] == "yes"
    assert [attempt.error is None for attempt in reply.attempts] == [False, True]
    assert "RateLimitError: busy" in reply.attempts[0].error


async def test_a_programming_error_of_an_adapter_is_itself():
    """Nothing is wrapped that is no ModelError; an adapter that gives something else is a TypeError."""

    class Broken(Exception):
        pass

    with pytest.raises(Broken):
        await ScriptedLM([Broken("oops")])("?")

    class Wrong:
        name, version = "wrong", 1

        async def send(self, request):
            return "text"

    with pytest.raises(TypeError, match="wanted an LMReply"):
        await LanguageModel("my/model", adapter=Wrong())("?")


async def test_an_unbound_model_says_what_it_needs():
    """A call raises UnboundModelError with name, needs and the line to write; a stand-in answers for it."""
    record = {"model": "openai/house", "defaults": {}, "supply": ["api_base"]}
    lm = unbound_model(LanguageModel, "house", record, ["api_base"])
    with pytest.raises(UnboundModelError) as caught:
        await lm("?")
    for words in ("'house'", "api_base", "load(..., language_models="):
        assert words in str(caught.value)
    assert caught.value.attempts == 0
    assert lm.adapter.record == record
    with use_language_models({"house": FunctionLM(lambda request: "x")}):
        assert (await lm("?")).text == "x"


def test_tokens_are_estimated_at_once():
    """A third of the characters, rounded up."""
    assert FunctionLM(lambda request: "x").estimate_tokens("Hello you!") == 4


def test_one_model_serves_many_loops(any_loop):
    """A model made outside any loop answers in each."""
    lm = FunctionLM(lambda request: "x", latency_s=0.001)

    async def ask():
        return (await lm("?")).text

    assert any_loop(ask) == any_loop(ask) == "x"
