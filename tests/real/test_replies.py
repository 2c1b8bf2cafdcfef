"""What a server with a grammar answers: typed replies, repairs, ways to ask for a schema, and what is counted."""

import datetime as dt
import uuid
from enum import Enum
from typing import Literal

import pydantic
import pytest

import synmod as sm
from synmod.errors import BadReplyError, ContextWindowError, RequestError

pytestmark = pytest.mark.real


class Mood(Enum):
    GLAD = "glad"
    SAD = 'a bit "sad"'
    OTHER = "größer 日本 😀"


class Address(sm.DataModel):
    street: str = sm.Field(max_length=12)
    number: int = sm.Field(ge=1, le=99)


class Verdict(sm.DataModel):
    verdict: Literal["yes", "no"]


class Query(sm.DataModel):
    query: str


class Tree(sm.DataModel):
    name: Literal["oak", "elm"]
    seedling: "Tree | None"


KINDS = {
    "an enum": Mood,
    "literals of several types": Literal[1, "two"] | None,
    "a bool": bool,
    "an integer with bounds": (int, sm.Field(ge=3, le=17)),
    "a date": dt.date,
    "a time with a date": dt.datetime,
    "a UUID": uuid.UUID,
    "a text with a pattern": (str, sm.Field(pattern="^[A-Z]{2}-[0-9]{3}$")),
    "a short text": (str, sm.Field(max_length=8)),
    "a list": (list[int], sm.Field(min_length=2, max_length=3)),
    "a list of models": (list[Address], sm.Field(min_length=1, max_length=1)),
    "a set": (set[Literal["red", "blue"]], sm.Field(max_length=1)),
    "a tuple": tuple[Literal[1, 2], bool],
    "a nested model": Address,
    "an optional value": bool | None,
    "a field that may lack": (Mood | None, None),
    "a union": Address | Literal["none"],
    "a union of models": Address | Verdict,
}


@pytest.mark.parametrize("kind", KINDS)
async def test_a_typed_reply_is_a_value_of_its_type(model, kind):
    """Of every kind of field the server writes a value that the data model takes."""
    given = KINDS[kind]
    fields = {"value": given if isinstance(given, tuple) else (given, ...)}
    Reply = pydantic.create_model("Reply", __base__=sm.DataModel, **fields)
    reply = await model(max_tokens=128)("The cat sat on the mat in Elm Street 7. Fill in the form.", Reply)
    value = sm.JsonDataModel(reply.json, data_model=Reply).to(Reply)
    assert pydantic.TypeAdapter(Reply).validate_python(value.get_json()) == value


async def test_a_recursive_model_is_filled_to_the_depth_that_is_asked_for(model):
    """Its schema refers to itself, in the grammar, too."""
    tree = Tree(name="oak", seedling=Tree(name="elm", seedling=None))
    reply = await model()(f"Repeat: {tree.model_dump_json()}", Tree)
    assert sm.JsonDataModel(reply.json, data_model=Tree).to().seedling.seedling is None


@pytest.mark.parametrize("kind", [{"type": "boolean"}, {"enum": ["a", 2]}, {"type": "array", "maxItems": 2}])
async def test_a_reply_need_not_be_an_object(model, kind):
    """A schema of another type is enforced alike."""
    reply = await model(attempts=1)("Is water wet?", kind)
    assert isinstance(reply.json, {"boolean": bool, "array": list}.get(kind.get("type"), str | int))


LET_PASS = {
    "a pattern with a class": (str, sm.Field(pattern=r"^\d{3}$")),
    "a bound alone": (int, sm.Field(ge=1_000)),
    "bounds of a float": (float, sm.Field(ge=0, le=1)),
    "a multiple": (int, sm.Field(multiple_of=7, ge=1, le=20)),
}


@pytest.mark.parametrize("kind", LET_PASS)
async def test_what_the_grammar_lets_pass_is_checked_here(model, kind):
    """Keywords that llama.cpp leaves out of its grammar: the reply is valid, or an error after one repair."""
    Reply = pydantic.create_model("Reply", __base__=sm.DataModel, value=LET_PASS[kind])
    value, error = None, None
    try:
        value = (await model()("The cat sat on the mat in Elm Street 7. Fill in the form.", Reply))["value"]
    except BadReplyError as raised:
        error = raised
    if error is None:
        assert Reply(value=value)
    else:
        assert (error.reason, error.attempts, error.errors[0][0]) == ("schema", 2, "/value")


async def test_a_reply_that_the_grammar_lets_pass_is_repaired(model):
    """What the data model alone checks is handed back to the model with the fault, as often as `repairs` allows."""
    seen = []

    class Pick(sm.DataModel):
        tag: str = sm.Field(max_length=8)

        @pydantic.field_validator("tag")
        @classmethod
        def is_free(cls, tag):
            seen.append(tag)
            if len(seen) < 3:  # a model of this size seldom finds another one
                raise ValueError(f"{tag!r} is taken, choose another")
            return tag

    reply = await model(temperature=1, seed=1, attempts=6, repairs=5)("Choose a tag.", Pick)
    assert reply.json["tag"] == seen[2]
    assert reply.usage.requests == len(reply.attempts) == 3


async def test_what_stays_invalid_is_an_error(model):
    """With the reply and its faults; nothing invalid is returned."""

    class Pick(sm.DataModel):
        tag: Literal["a", "b"]

        @pydantic.field_validator("tag")
        @classmethod
        def is_free(cls, tag):
            raise ValueError("is taken")

    with pytest.raises(BadReplyError, match="is taken") as raised:
        await model(repairs=1)("Choose a tag.", Pick)
    assert (raised.value.reason, raised.value.attempts, raised.value.text[:1]) == ("schema", 2, "{")


@pytest.mark.parametrize("structured", [None, "schema", "tool"])
async def test_each_enforced_way_to_ask_for_a_schema_gives_a_valid_reply(model, structured):
    """A native schema, and a tool that must be called."""
    reply = await model(structured=structured, attempts=1)("Is water wet?", Verdict)
    assert reply["verdict"] in ("yes", "no")
    assert reply.tool_calls == ()


@pytest.mark.parametrize("structured", ["json", "prompt"])
async def test_the_other_ways_return_a_valid_reply_or_none(model, structured):
    """JSON mode and the bare prompt enforce nothing: a small model is valid or refused, never taken at its word."""
    valid, error = False, None
    try:
        reply = await model(structured=structured, max_tokens=24)("Is water wet? Reply with JSON.", Verdict)
        valid = reply["verdict"] in ("yes", "no")
    except BadReplyError as raised:
        error = raised
    assert valid or error.reason in ("not_json", "schema", "length")
    assert valid or structured == "prompt" or error.text.lstrip()[:1] == "{"


async def test_a_schema_that_the_server_refuses_teaches_another_way(model):
    """The error quotes the server and names `structured=`."""
    pair = {"type": "array", "prefixItems": [{"type": "integer"}], "items": False, "minItems": 1}
    with pytest.raises(RequestError, match=r'structured="prompt"') as raised:
        await model()("Name a number.", pair)
    assert (raised.value.attempts, raised.value.transient) == (1, False)


async def test_a_reply_cut_by_max_tokens_is_no_value(model):
    """It names `max_tokens`, and is not asked for again."""
    with pytest.raises(BadReplyError, match="max_tokens") as raised:
        await model(max_tokens=1)("Is water wet?", Verdict)
    assert (raised.value.reason, raised.value.attempts) == ("length", 1)


@pytest.mark.parametrize("streams", [False, True])
async def test_a_prompt_over_the_context_is_a_context_window_error(model, streams):
    """Whole and streamed alike, and after one request."""
    with pytest.raises(ContextWindowError, match="4096") as raised:
        if streams:
            async with await model()("word " * 5_000, stream=True) as stream:
                [piece async for piece in stream]
        else:
            await model()("word " * 5_000)
    assert raised.value.attempts == 1


async def test_usage_is_what_the_server_counts(model, server):
    """Whole and streamed: tokens of the prompt, those of them from the server's cache, and of the reply."""
    read, written = server.counts()
    lm = model(max_tokens=16, extra_body={})
    replies = [await lm(f"Name a colour, and {number}.") for number in range(2)]
    async with await lm("Name a colour, and 1.", stream=True) as stream:
        [piece async for piece in stream]
    replies.append(stream.reply)
    now = server.counts()
    fresh = sum(reply.usage.prompt_tokens - reply.usage.cached_tokens for reply in replies)
    completed = sum(reply.usage.completion_tokens for reply in replies)
    assert (now[0] - read, now[1] - written) == (fresh, completed)
    assert replies[2].usage.cached_tokens > 0
    assert not any(reply.usage.estimated for reply in replies)
    assert (lm.cumulated_prompt_tokens, lm.cumulated_completion_tokens) == (
        sum(reply.usage.prompt_tokens for reply in replies),
        completed,
    )


async def test_equal_requests_have_equal_replies(model, server):
    """At temperature 0 the server repeats itself; with a cache it is asked once."""
    plain, cached = model(), model(cache=sm.Cache())
    first, second = [await plain("Describe a house.", Address) for _ in range(2)]
    third, fourth = [await cached("Describe a house.", Address) for _ in range(2)]
    assert first.text == second.text == third.text == fourth.text
    assert (third.cached, fourth.cached, fourth.usage) == (False, True, sm.Usage())


async def test_a_seed_repeats_a_sample(model):
    """And another seed draws another one."""
    lm = model(temperature=1.5, max_tokens=24)
    first, second, other = [await lm("Tell me a story.", seed=seed) for seed in (7, 7, 8)]
    assert first.text == second.text != other.text


async def test_a_stop_text_ends_the_reply(model):
    """The text before it is the reply."""
    whole = await model(max_tokens=24)("Tell me about cats.")
    first, second = whole.text.split()[:2]
    assert (await model(stop=[f" {second}"])("Tell me about cats.")).text == first


async def test_the_second_prompt_comes_from_the_cache_of_the_server(model):
    """Of the constant part of a prompt, instructions and examples, at least 80 percent."""
    lm = model(prompt_cache=True, extra_body={})
    shots = [{"inputs": {"query": f"Is {number} even?"}, "outputs": {"verdict": "yes"}} for number in range(0, 20, 2)]
    judge = sm.Generator(Verdict, instructions="Judge with great care. " * 8, examples=shots, language_model=lm)
    used = []
    for query in ("Is the sky blue on a clear day?", "Do fish fly over Berlin?"):
        with sm.track_usage() as meter:
            await judge(Query(query=query))
        used.append(meter.total())
    constant = await lm.count_tokens(judge.render(Query(query="x"))[:-1])
    assert used[1].cached_tokens >= 0.8 * constant
