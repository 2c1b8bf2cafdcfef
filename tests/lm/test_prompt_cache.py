"""The provider's cache of prompts: what is constant comes first, is marked where it ends, and has its price."""

import json

import pytest
from hypothesis import given, settings, strategies as st

import synmod as sm
from synmod.errors import ConfigError
from synmod.leaves import thaw
from synmod.lm import LanguageModel, LMRequest, chat_body, turns
from synmod.lm.chat_completions import with_prompt_cache
from synmod.lm.litellm_adapter import list_price
from synmod.testing import ScriptedLM
from tests.lm.loopback import Loopback, ask, completion

MARK = {"type": "ephemeral"}


class Query(sm.DataModel):
    question: str


class Answer(sm.DataModel):
    answer: str


def lookup(word: str) -> str:
    """Look a word up."""
    return f"about {word}"


def body_of(request, model="anthropic/claude-sonnet-4-5", **given):
    """The body of a request with the marks of a model."""
    own = LanguageModel(model, **{"prompt_cache": True, **given}).settings
    return thaw(with_prompt_cache(chat_body(request), own))


def prefix(body):
    """The text of a body up to its end, in the order in which providers read it: tools, then turns."""
    return json.dumps([body.get("tools"), *body["messages"]])


WIRES = {
    "chat completions": {"model": "openai/m"},
    "responses": {"model": "openai/m", "adapter": "responses"},
    "messages": {"model": "anthropic/claude-sonnet-4-5"},
}


def assert_constant(requests, answers, model):
    """On the wire of a model, all but the turns is equal, and the constant part of these comes first."""
    adapter = LanguageModel(**model, api_base="http://127.0.0.1:1/v1").adapter
    bodies = [adapter.line_of(request) for request in requests]
    read = ("tools", "system", "messages", "input")  # in the order in which providers read them
    constant = common_prefix([json.dumps([body.get(name) for name in read]) for body in bodies])
    assert all(answer in constant for answer in answers)
    others = [json.dumps({name: body[name] for name in body if name not in ("messages", "input")}) for body in bodies]
    assert len(set(others)) == 1


def common_prefix(texts):
    """The characters with which all texts begin."""
    first, last = min(texts), max(texts)
    return first[: next((at for at, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), len(first))]


LAYOUTS = {
    "turns": {},
    "tags": {"layout": "tags"},
    "template": {"template": {"system": "{instructions}", "user": "{examples}\n{output_schema}\n{inputs}"}},
}


def generator(lm, layout, count, instructions, *, agent):
    """A generator or an agent with this many examples."""
    shots = [{"inputs": {"question": f"q{at}"}, "outputs": {"answer": f"a{at}"}} for at in range(count)]
    options = {"instructions": instructions, "examples": shots, "language_model": lm, **LAYOUTS[layout]}
    return sm.Agent([lookup], Answer, **options) if agent else sm.Generator(Answer, **options)


@pytest.mark.parametrize("agent", [False, True], ids=["generator", "agent"])
@pytest.mark.parametrize("layout", LAYOUTS)
@settings(max_examples=25, deadline=None)
@given(
    questions=st.lists(st.text(st.characters(codec="utf-8"), min_size=1), min_size=2, max_size=3, unique=True),
    count=st.integers(0, 3),
    instructions=st.text(st.characters(codec="utf-8"), min_size=1, max_size=40).filter(str.strip),
)
def test_constant_bytes_come_first(layout, agent, questions, count, instructions):
    """The requests of one program are the same bytes up to the inputs, whatever the inputs are."""
    lm = ScriptedLM([{"answer": "x"}] * len(questions))
    program = generator(lm, layout, count, instructions, agent=agent)

    async def main():
        for question in questions:
            await program(Query(question=question))

    sm.run(main)
    bodies = [thaw(chat_body(request)) for request in lm.requests]
    constant = common_prefix([prefix(body) for body in bodies])
    assert all(f"a{at}" in constant for at in range(count))
    for model in WIRES.values():
        assert_constant(lm.requests, [f"a{at}" for at in range(count)], model)
    marks = 1 + (count > 0 or layout == "template")  # this template has the schema before the inputs
    for request, body in zip(lm.requests, bodies, strict=True):
        marked = body_of(request)["messages"]
        parts = [part for turn in marked if isinstance(turn["content"], list) for part in turn["content"]]
        before = [part["text"] for part in parts if "cache_control" in part]
        assert len(before) == marks + agent
        assert all(json.dumps(text)[1:-1] in constant for text in before[:marks])
        assert [_text(turn) for turn in marked] == [_text(turn) for turn in body["messages"]]


def _text(turn):
    content = turn["content"]
    return content if isinstance(content, str) else "".join(part["text"] for part in content)


async def test_the_marks_of_an_agent_roll():
    """The last mark is behind the last turn; the one before stays where the request before ended; at most four."""
    calls = [sm.ToolCall(str(at), "lookup", {"word": "w"}) for at in range(3)]
    lm = ScriptedLM([*calls, {"answer": "x"}])
    await generator(lm, "turns", 2, "Be brief.", agent=True)(Query(question="Why?"))
    places = []
    for request in lm.requests:
        messages = body_of(request)["messages"]
        places.append([at for at, turn in enumerate(messages) if "cache_control" in str(turn)])
    assert places == [[0, 4, 5], [0, 4, 5, 7], [0, 4, 7, 9], [0, 4, 9, 11]]


def test_marks_are_of_the_kind_that_was_chosen():
    """An hour is written in the mark; a model of Anthropic at another provider is marked alike, others are not."""
    request = LMRequest("m", turns([{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi"}]))
    part = {"type": "text", "text": "Be brief."}
    assert body_of(request)["messages"][0]["content"] == [{**part, "cache_control": MARK}]
    hour = body_of(request, "bedrock/anthropic.claude-sonnet-4-5-v1:0", prompt_cache="1h")
    assert hour["messages"][0]["content"] == [{**part, "cache_control": {**MARK, "ttl": "1h"}}]
    assert body_of(request, "gemini/gemini-2.5-pro") == thaw(chat_body(request))


async def test_openai_gets_a_key_of_the_constant_part():
    """Equal for other inputs, different for other instructions; nothing is sent without `prompt_cache`."""
    async with Loopback(completion('{"answer": "x"}')) as server:
        lm = LanguageModel("openai/m", api_base=server.base, prompt_cache=True)
        for words, question in (("A", "1"), ("A", "2"), ("B", "1")):
            await generator(lm, "turns", 1, words, agent=False)(Query(question=question))
        await lm.aclose()
    keys = [arrived.body["prompt_cache_key"] for arrived in server.arrived]
    assert keys[0] == keys[1] != keys[2]
    _, arrived = await ask(completion("x"))
    assert "prompt_cache_key" not in arrived[0].body


def test_a_wrong_lifetime_is_refused():
    """There are two; `False` is none."""
    assert LanguageModel("openai/m", prompt_cache=False).settings.prompt_cache is None
    with pytest.raises(ConfigError, match="prompt_cache"):
        LanguageModel("openai/m", prompt_cache="2h")


# -- usage and prices --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("usage", "cost"),
    [
        ({"prompt_tokens_details": {"cached_tokens": 600, "cache_write_tokens": 300}}, 100 + 60 + 375 + 20),
        ({"cache_read_input_tokens": 600, "cache_creation_input_tokens": 300}, 100 + 60 + 375 + 20),
        ({}, 1000 + 20),
    ],
)
async def test_reads_and_writes_are_counted_and_priced(usage, cost):
    """A million tokens: 1 USD, 2 written by the model, 0.1 read from the cache, 1.25 written to it."""
    answer = completion("x")
    answer.body["usage"] = {"prompt_tokens": 1000, "completion_tokens": 10, **usage}
    reply, _ = await ask(answer, price=(1.0, 2.0, 0.1, 1.25))
    assert (reply.usage.cached_tokens, reply.usage.cache_write_tokens) == ((600, 300) if usage else (0, 0))
    assert reply.usage.cost_usd == pytest.approx(cost / 1e6)
    assert (reply.usage + reply.usage).cache_write_tokens == 2 * reply.usage.cache_write_tokens


def test_the_list_knows_what_a_write_costs():
    """For five minutes, and for an hour."""
    short, long = list_price("anthropic/claude-sonnet-4-5"), list_price("anthropic/claude-sonnet-4-5", "1h")
    assert short.written == pytest.approx(1.25 * short.prompt)
    assert long.written == pytest.approx(2 * long.prompt)
    assert short.cost_usd(1000, 0, 500, 400) == pytest.approx(
        100 * short.prompt + 500 * short.cached + 400 * short.written
    )
    assert list_price("openai/gpt-4o-mini", "1h") == list_price("openai/gpt-4o-mini")
