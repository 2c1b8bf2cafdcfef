"""Repair: an invalid reply is handed back once, or is an error; never passed on."""

import pytest

from synmod.data import dump_json
from synmod.errors import BadReplyError
from synmod.lm import REPAIR_OPENING, LMReply
from synmod.testing import FunctionLM, ScriptedLM
from tests.lm.loopback import ask, completion

SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}


async def test_a_repair_turn_names_what_is_wrong():
    """One more request, with the bad text as assistant turn and the errors as user turn."""
    lm = ScriptedLM(['{"a": "x"}', '{"a": 1}'])
    reply = await lm("?", SCHEMA, sample=4, seed=2)
    assert reply["a"] == 1
    first, second = lm.requests
    assert second.messages[0] == first.messages[0]
    assert second.messages[1] == {"role": "assistant", "content": '{"a": "x"}'}
    assert second.messages[2]["role"] == "user"
    assert second.messages[2]["content"].startswith(REPAIR_OPENING)
    assert "/a" in second.messages[2]["content"]
    assert (second.schema, second.sample, second.params) == (first.schema, first.sample, first.params)
    assert reply.usage.requests == 2
    assert reply.usage.calls == 1


TOOL = {"name": "look", "description": "Look.", "parameters": {"type": "object"}}


@pytest.mark.parametrize(
    ("schema", "tools", "bad", "good", "lines"),
    [
        (SCHEMA, None, "prose", {"a": 1}, ["- the whole reply: ", "one JSON object with the fields a, and nothing"]),
        (SCHEMA, None, {"a": "<"}, {"a": 1}, ['- /a: wanted integer, got "\\u003c"', "with the fields a, and"]),
        ({"type": "integer"}, None, {"a": 1}, "1", ["one JSON value that satisfies the schema, and nothing else"]),
        (None, None, " ", "Yes.", ["- the whole reply: the reply is empty", "valid reply is text, and nothing else"]),
        (SCHEMA, [TOOL], {"b": 1}, {"a": 1}, ["fields a, or calls of the tools by their names, with arguments"]),
        (None, [TOOL], "", "Yes.", ["valid reply is text, or calls of the tools by their names, with arguments"]),
    ],
)
async def test_a_repair_turn_repeats_what_a_valid_reply_is(schema, tools, bad, good, lines):
    """So that a model need not look for it above; where the server enforces the schema, it is not even there."""
    lm = ScriptedLM([bad if isinstance(bad, str) else dump_json(bad), good])
    await lm("?", schema, tools=tools)
    repair = lm.requests[1].messages[-1]["content"]
    assert repair.startswith("<repair>\nYour last reply is not valid:\n- ")
    assert [line for line in lines if line not in repair] == []


async def test_a_repair_turn_for_tools_in_text_wants_a_call():
    """Of which the answer is one, too."""
    lm = ScriptedLM(["prose", {"a": 1}], structured="calls")
    with pytest.raises(BadReplyError):
        await lm("?", SCHEMA, tools=[TOOL], tool_choice="required")
    assert "is one call of a function, as one JSON object with the fields name, arguments, and" in str(lm.requests[1])


async def test_prose_twice_costs_two_requests():
    """A model that answers prose twice costs two requests, not `attempts`."""
    lm = ScriptedLM(["hello", "still prose"], attempts=5)
    with pytest.raises(BadReplyError) as caught:
        await lm("?", SCHEMA)
    assert caught.value.reason == "not_json"
    assert caught.value.text == "still prose"
    assert caught.value.attempts == 2
    assert caught.value.transient is False


@pytest.mark.parametrize(("keywords", "sent"), [({"attempts": 1}, 1), ({"repairs": 0}, 1), ({"repairs": 9}, 3)])
async def test_repairs_count_against_attempts(keywords, sent):
    """`attempts` caps everything that a call sends; `attempts=1` means exactly one."""
    lm = FunctionLM(lambda request: "prose", **keywords)
    with pytest.raises(BadReplyError):
        await lm("?", SCHEMA)
    assert len(lm.requests) == sent


async def test_the_error_holds_text_errors_and_reason():
    """BadReplyError tells what came and what is wrong with it."""
    lm = ScriptedLM(['{"a": "x", "b": 1}'], attempts=1)
    with pytest.raises(BadReplyError) as caught:
        await lm("?", SCHEMA)
    error = caught.value
    assert (error.text, error.reason) == ('{"a": "x", "b": 1}', "schema")
    assert error.errors[0][0] == "/a"
    assert "/a" in str(error)


@pytest.mark.parametrize(
    ("reply", "reason", "says"),
    [
        (LMReply('{"a": ', finish_reason="length"), "length", "max_tokens"),
        (LMReply("", finish_reason="content_filter"), "refused", "refused"),
        (LMReply("I cannot", finish_reason="refusal"), "refused", "refused"),
    ],
)
async def test_cut_and_refused_replies_get_no_repair_turn(reply, reason, says):
    """Asking again would not help."""
    lm = ScriptedLM([reply, '{"a": 1}'])
    with pytest.raises(BadReplyError, match=says) as caught:
        await lm("?", SCHEMA)
    assert caught.value.reason == reason
    assert len(lm.requests) == 1


async def test_a_refusal_is_an_error_without_schema_too():
    """A refusal is never a text."""
    with pytest.raises(BadReplyError):
        await ScriptedLM([LMReply("no", finish_reason="content_filter")])("?")


@pytest.mark.parametrize("schema", [None, {"type": "object"}])
async def test_a_tool_that_nobody_offered_is_a_bad_reply(schema):
    """A call of a tool is never dropped in silence: it gets the repair turn, then the error."""
    called = LMReply("", tool_calls=({"id": "1"},))
    lm = ScriptedLM([called, called])
    with pytest.raises(BadReplyError) as caught:
        await lm("?", schema)
    assert caught.value.reason == "tool"
    assert len(lm.requests) == 2
    assert ("schema" in lm.requests[1].messages[-1]["content"]) == (schema is not None)


async def test_a_cut_text_is_a_text():
    """Without a schema a reply that was cut off is given, and says so."""
    reply = await ScriptedLM([LMReply("half a", finish_reason="length")])("?")
    assert (reply.text, reply.finish_reason) == ("half a", "length")


async def test_an_empty_reply_is_asked_for_again_without_quoting_it():
    """Some providers refuse a turn without content."""
    lm = ScriptedLM(["", '{"a": 1}'])
    assert (await lm("?", SCHEMA))["a"] == 1
    assert [turn["role"] for turn in lm.requests[1].messages] == ["user", "user"]


async def test_transient_failures_and_repairs_share_the_attempts():
    """Whatever asks for a request, `attempts` is the cap."""
    from synmod.errors import UnavailableError

    lm = ScriptedLM([UnavailableError("down"), "prose", '{"a": 1}'])
    assert (await lm("?", SCHEMA))["a"] == 1
    lm = ScriptedLM([UnavailableError("down"), UnavailableError("down"), "prose", '{"a": 1}'])
    with pytest.raises(BadReplyError):
        await lm("?", SCHEMA)
    assert len(lm.requests) == 3


CUT_CALL = {"id": "1", "type": "function", "function": {"name": "look", "arguments": '{"city": "Par'}}


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (completion('{"a": "x'), "not_json"),
        (completion("{}"), "schema"),
        (completion(""), "empty"),
        (completion(None, tool_calls=[CUT_CALL]), "tool"),
    ],
)
@pytest.mark.parametrize("keywords", [{"stop": ["\n"]}, {"extra_body": {"stop": ["\n"]}}], ids=["parameter", "body"])
async def test_what_a_stop_sequence_may_have_cut_has_a_hint(answer, reason, keywords):
    """A provider that stops there reports the same end as for a whole reply."""
    schema, tools = {"type": "object", "required": ["a"]}, [{"name": "look", "parameters": {"type": "object"}}]
    error, _ = await ask(answer, schema=schema, call={"tools": tools}, **keywords)
    assert error.reason == reason
    assert "If stop=['\\n'] cut the reply, leave it out" in str(error)


async def test_a_reply_that_is_too_long_has_no_hint_about_stop():
    """Its own hint is the way out."""
    error, _ = await ask(completion('{"a"', finish_reason="length"), schema={"type": "object"}, stop="\n")
    assert error.reason == "length"
    assert "stop=" not in str(error)
