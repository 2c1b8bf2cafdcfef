"""Tools in a call: what is offered, what goes over the wire, and which calls of a model are handed on."""

import pytest
from hypothesis import given, settings, strategies as st

import synmod as sm
from synmod.errors import BadReplyError, ConfigError, RequestError, SchemaError
from synmod.lm import LanguageModel, LMReply
from synmod.testing import FunctionLM, ScriptedLM
from tests.lm.loopback import ask, completion, failure

ADD = {
    "name": "add",
    "description": "Adds two numbers.",
    "parameters": {
        "type": "object",
        "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
        "required": ["a", "b"],
        "additionalProperties": False,
    },
}
NOW = {"type": "function", "function": {"name": "now", "description": None}}
ANSWER = {"type": "object", "title": "My Answer!", "properties": {"n": {"type": "integer"}}, "required": ["n"]}


def called(name="add", arguments='{"a": 1, "b": 2}', call_id="call_7"):
    """One tool call as it stands on the wire."""
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def calling(*calls, text=None, **message):
    """A chat completion that calls tools."""
    return completion(text, finish_reason="tool_calls", tool_calls=list(calls), **message)


# -- what is offered ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tools", "says"),
    [
        ("add", "list of tools"),
        ({"name": "add"}, "list of tools"),
        ([3], "wanted a Tool"),
        ([{"parameters": {}}], "wanted a Tool"),
        ([{"name": "../etc"}], "letters, digits"),
        ([{"name": "a" * 65}], "letters, digits"),
        ([ADD, ADD], "two of them have the name 'add'"),
    ],
)
async def test_what_is_not_a_tool_is_refused_before_sending(tools, says):
    """A ConfigError says what was got and what was wanted."""
    lm = FunctionLM(lambda request: "x")
    with pytest.raises(ConfigError, match=says):
        await lm("?", tools=tools)
    assert lm.requests == []


async def test_parameters_are_a_schema_of_an_object():
    """Other schemas are refused."""
    with pytest.raises(SchemaError):
        await ScriptedLM(["x"])("?", tools=[{"name": "add", "parameters": {"type": "string"}}])


@pytest.mark.parametrize(
    ("choice", "sent"),
    [
        ("auto", "auto"),
        ("required", "required"),
        ("add", {"type": "function", "function": {"name": "add"}}),
        ({"type": "function", "function": {"name": "add"}}, {"type": "function", "function": {"name": "add"}}),
    ],
)
async def test_tools_and_choice_on_the_wire(choice, sent):
    """Function schemas in the shape of chat completions; a choice by name in its long form."""
    reply, (arrived,) = await ask(calling(called()), call={"tools": [ADD, NOW], "tool_choice": choice})
    empty = {"type": "object", "properties": {}, "additionalProperties": False}
    functions = [ADD, {"name": "now", "parameters": empty}]
    assert arrived.body["tools"] == [{"type": "function", "function": function} for function in functions]
    assert arrived.body["tool_choice"] == sent
    assert reply.tool_calls == (sm.ToolCall("call_7", "add", '{"a": 1, "b": 2}'),)


async def test_parallel_tool_calls_is_sent_as_it_is():
    """It is a sampling parameter like others."""
    _, (arrived,) = await ask(call={"tools": [ADD], "parallel_tool_calls": False})
    assert arrived.body["parallel_tool_calls"] is False


async def test_an_unknown_choice_is_a_config_error():
    """With the word that was probably meant."""
    with pytest.raises(ConfigError, match="tool_choice.*Did you mean 'add'"):
        await ScriptedLM(["x"])("?", tools=[ADD], tool_choice="ad")


# -- what is called ----------------------------------------------------------------------------------------------------


async def test_calls_come_parsed_and_go_back_as_a_turn():
    """`reply.message` and a tool turn continue the conversation; the reasoning that a provider wants again is in it."""
    first = calling(called(), text="Let me see.", reasoning_content="hm", thinking_blocks=[{"signature": "s"}])
    reply, _ = await ask(first, schema=ANSWER, call={"tools": [ADD]})
    (call,) = reply.tool_calls
    assert (call.name, call.arguments, reply.text, reply.json) == ("add", {"a": 1, "b": 2}, "Let me see.", None)
    talk = [sm.ChatMessage("user", "1 + 2?"), reply.message, sm.ChatMessage("tool", "3", tool_call_id=call.id)]
    answer, (arrived,) = await ask(completion('{"n": 3}'), messages=talk, schema=ANSWER, call={"tools": [ADD]})
    assert answer["n"] == 3
    assert arrived.body["messages"][1:] == [
        {
            "role": "assistant",
            "content": "Let me see.",
            "tool_calls": [called()],
            "reasoning_content": "hm",
            "thinking_blocks": [{"signature": "s"}],
        },
        {"role": "tool", "content": "3", "tool_call_id": "call_7"},
    ]


@pytest.mark.parametrize(
    ("call", "pointer", "says"),
    [
        (called("ad"), "/tool_calls/0/name", "Did you mean 'add'"),
        (called("../../etc/passwd"), "/tool_calls/0/name", "no tool"),
        (called("{{7*7}}"), "/tool_calls/0/name", "no tool"),
        (called("os.system"), "/tool_calls/0/name", "no tool"),
        (called(arguments='{"a": 1}'), "/tool_calls/0/arguments", "'b'"),
        (called(arguments='{"a": "1", "b": 2}'), "/tool_calls/0/arguments/a", "integer"),
        (called(arguments='{"a": 1, "b": 2, "c": 3}'), "/tool_calls/0/arguments/c", "no key"),
        (called(arguments='{"a": 1, "b"'), "/tool_calls/0/arguments", "JSON"),
        (called(arguments="[1, 2]"), "/tool_calls/0/arguments", "object"),
        ({"id": "1"}, "/tool_calls/0/name", "no tool"),
        ("<|tool_call|>", "/tool_calls/0/name", "no tool"),
    ],
)
async def test_a_bad_call_gets_the_repair_turn_and_then_the_error(call, pointer, says):
    """Unknown names and invalid arguments are never handed on."""
    error, arrived = await ask(calling(call), call={"tools": [ADD, NOW]}, attempts=3)
    assert isinstance(error, BadReplyError)
    assert (error.reason, error.errors[0][0], len(arrived)) == ("tool", pointer, 2)
    assert says in error.errors[0][1]
    assert "arguments" in error.text
    assert [turn["role"] for turn in arrived[1].body["messages"]] == ["user", "assistant", "user"]
    assert says in arrived[1].body["messages"][-1]["content"]


async def test_a_repaired_call_is_handed_on():
    """The second try counts; the reply holds both requests."""
    lm = ScriptedLM([sm.ToolCall("1", "add", {"a": 1}), sm.ToolCall("1", "add", {"a": 1, "b": 2})])
    reply = await lm("?", tools=[ADD])
    assert (reply.tool_calls[0].arguments, reply.usage.requests) == ({"a": 1, "b": 2}, 2)


async def test_one_bad_call_among_several_spoils_all():
    """Nothing is run half."""
    lm = ScriptedLM([[sm.ToolCall("1", "add", {"a": 1, "b": 2}), sm.ToolCall("2", "sub", {})]] * 2)
    with pytest.raises(BadReplyError, match="sub"):
        await lm("?", tools=[ADD])


async def test_calls_that_were_cut_off_are_named_so():
    """Arguments that end too early are no fault of the model."""
    error, arrived = await ask(
        completion(None, finish_reason="length", tool_calls=[called(arguments='{"a"')]), call={"tools": [ADD]}
    )
    assert (error.reason, len(arrived)) == ("length", 1)


async def test_ids_that_are_missing_or_double_are_made():
    """So that each result can name its call."""
    calls = [called(call_id=None), called(call_id="x"), called(call_id="x")]
    reply, _ = await ask(calling(*calls), call={"tools": [ADD]})
    assert [call.id for call in reply.tool_calls] == ["call_0", "x", "x_1"]
    assert [call["id"] for call in reply.message["tool_calls"]] == ["call_0", "x", "x_1"]


@pytest.mark.parametrize("arguments", [None, "", " ", {}])
async def test_no_arguments_are_an_empty_object(arguments):
    """Servers write them in several ways."""
    reply, _ = await ask(calling(called("now", arguments)), call={"tools": [NOW]})
    assert reply.tool_calls[0].arguments == {}


@pytest.mark.parametrize("choice", ["required", "add"])
async def test_a_call_that_must_be_made_is_made(choice):
    """A text instead is a bad reply."""
    with pytest.raises(BadReplyError, match="one must be") as caught:
        await ScriptedLM(["No.", "No."])("?", tools=[ADD], tool_choice=choice)
    assert caught.value.reason == "tool"


async def test_a_call_of_another_tool_than_the_chosen_one_is_repaired():
    """Some servers ignore a choice by name."""
    error, arrived = await ask(
        calling(called("now", "{}")), call={"tools": [ADD, NOW], "tool_choice": "add"}, attempts=2
    )
    assert (error.reason, error.errors[0][0], len(arrived)) == ("tool", "/tool_calls/0/name", 2)
    assert "'add' must be called, not 'now'" in str(error)


async def test_a_local_model_that_calls_nothing_may_have_been_shown_nothing():
    """The error says so where the server is one's own."""
    error, _ = await ask(completion("No."), schema=ANSWER, call={"tools": [ADD]})
    assert "chat template" in str(error)
    error, _ = await ask(completion("No."), schema=ANSWER)
    assert "chat template" not in str(error)


async def test_a_budget_reserves_room_for_the_tools():
    """Their schemas are part of the prompt; what does not fit is not sent."""
    lm = FunctionLM(lambda request: "x")
    large = {**ADD, "description": "Adds. " * 100}
    with sm.budget(tokens=150), pytest.raises(sm.BudgetExceeded):
        await lm("?", tools=[large])
    assert lm.requests == []
    with sm.budget(tokens=150):
        await lm("?", tools=[NOW])


# -- a schema as a tool ------------------------------------------------------------------------------------------------


async def test_a_forced_tool_carries_the_schema():
    """`structured="tool"`: its arguments are the reply."""
    answer = calling(called("My_Answer", '{"n": 3}'))
    reply, (arrived,) = await ask(answer, schema=ANSWER, structured="tool")
    (tool,) = arrived.body["tools"]
    assert (tool["function"]["name"], tool["function"]["parameters"]) == ("My_Answer", ANSWER)
    assert arrived.body["tool_choice"] == "required"
    assert "response_format" not in arrived.body
    assert (reply.json, reply.text, reply.tool_calls, "tool_calls" in reply.message) == (
        {"n": 3},
        '{"n": 3}',
        (),
        False,
    )


@pytest.mark.parametrize("choice", ["add", {"type": "function", "function": {"name": "add"}}])
async def test_one_tool_is_not_chosen_by_name(choice):
    """llama.cpp ignores such a choice and LM Studio refuses it; `required` is equal where one tool is on offer."""
    _, (arrived,) = await ask(calling(called()), call={"tools": [ADD], "tool_choice": choice})
    assert arrived.body["tool_choice"] == "required"


@pytest.mark.parametrize(
    "model", ["openai/some-model", "vllm/m", "hosted_vllm/m", "ollama/m", "lm_studio/m", "llamafile/m"]
)
async def test_a_schema_beside_tools_is_one_more_tool(model):
    """At an `api_base`: a grammar made from `response_format` would forbid every call."""
    answer = calling(called("My_Answer", '{"n": 3}'))
    reply, (arrived,) = await ask(answer, model=model, schema=ANSWER, call={"tools": [ADD]})
    assert [tool["function"]["name"] for tool in arrived.body["tools"]] == ["add", "My_Answer"]
    assert (arrived.body["tool_choice"], "response_format" in arrived.body) == ("required", False)
    assert (reply.json, reply.tool_calls) == ({"n": 3}, ())


@pytest.mark.parametrize(
    ("call", "has_format", "choice"),
    [
        ({}, True, None),
        ({"tools": [ADD], "tool_choice": "none"}, True, "none"),
        ({"tools": [ADD], "structured": "schema"}, True, None),
        ({"tools": [ADD], "structured": "tool", "tool_choice": "none"}, False, "required"),
    ],
)
async def test_a_schema_is_native_where_no_tool_may_be_called(call, has_format, choice):
    """So it is by `structured="schema"`; as a tool it stands alone where the others must not be called."""
    _, (arrived,) = await ask(completion('{"n": 3}'), schema=ANSWER, call=call)
    assert ("response_format" in arrived.body, arrived.body.get("tool_choice")) == (has_format, choice)
    if call.get("structured") == "tool":
        assert [tool["function"]["name"] for tool in arrived.body["tools"]] == ["My_Answer"]


async def test_beside_tools_another_schema_than_an_object_is_asked_for_in_text():
    """It cannot be the arguments of a tool, and a grammar would forbid every call."""
    reply, (arrived,) = await ask(completion("3"), schema={"type": "integer"}, call={"tools": [ADD]})
    assert (reply.json, "response_format" in arrived.body, "tool_choice" in arrived.body) == (3, False, False)
    assert "<output_schema>" in arrived.body["messages"][0]["content"]


@pytest.mark.parametrize(
    ("refusal", "given", "hints"),
    [
        ("json mode cannot be combined with tool/function calling", {}, ['structured="tool"', 'structured="prompt"']),
        ("a response mime type: 'application/json' is unsupported", {}, ['structured="tool"', 'structured="prompt"']),
        ("Invalid tool_choice type: 'object'", {"tool_choice": "add"}, ['tool_choice="required"']),
        ("tool_choice: required is not supported", {}, ['structured="prompt"']),
    ],
)
async def test_a_refused_form_has_a_hint(refusal, given, hints):
    """The error names the other ways to ask."""
    error, _ = await ask(failure(400, refusal), schema=ANSWER, call={"tools": [ADD, NOW], **given})
    assert isinstance(error, RequestError)
    assert [hint for hint in hints if hint not in str(error)] == []


async def test_an_invalid_answer_of_the_forced_tool_is_repaired_like_any_other():
    """Its arguments are read as the reply."""
    error, arrived = await ask(calling(called("My_Answer", "{}")), schema=ANSWER, structured="tool", attempts=2)
    assert (error.reason, error.text, len(arrived)) == ("schema", "{}", 2)


async def test_a_forced_answer_beside_tools():
    """One of them must be called; no tool has the name of the answer; calls with effects come first."""
    own = {"name": "My_Answer"}
    both = calling(called("add"), called("My_Answer_1", '{"n": 3}', "x"))
    reply, (arrived,) = await ask(both, schema=ANSWER, structured="tool", call={"tools": [ADD, own]})
    assert [tool["function"]["name"] for tool in arrived.body["tools"]] == ["add", "My_Answer", "My_Answer_1"]
    assert arrived.body["tool_choice"] == "required"
    assert ([call.name for call in reply.tool_calls], reply.json) == (["add"], None)


async def test_a_schema_that_is_not_an_object_is_asked_for_in_text():
    """A tool has an object of arguments."""
    reply, (arrived,) = await ask(completion("3"), schema={"type": "integer"}, structured="tool")
    assert reply.json == 3
    assert "tools" not in arrived.body
    assert "<output_schema>" in arrived.body["messages"][0]["content"]


# -- media -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "part",
    [
        sm.Image.from_url("https://example.com/a.png"),
        sm.File.from_url("https://example.com/a.pdf"),
        {"type": "image_url", "image_url": {"url": "/etc/passwd"}},
        {"type": "file", "file": {"file_data": "http://169.254.169.254/"}},
    ],
)
@pytest.mark.parametrize(
    "make",
    [
        lambda **given: LanguageModel("anthropic/some-model", api_key="sk-some-secret-key", **given),
        lambda **given: LanguageModel("openai/some-model", api_base="http://127.0.0.1:9/v1", **given),
        lambda **given: FunctionLM(lambda request: "x", **given),
    ],
    ids=["litellm", "direct", "own"],
)
async def test_no_adapter_is_handed_an_address_unless_it_may(part, make):
    """Somebody would fetch it; the refusal comes before an import and before anything is sent."""
    with pytest.raises(RequestError, match=r"messages\[0\]: content\[1\].*allow_remote_media") as caught:
        await make()([{"role": "user", "content": ["Look:", part]}])
    assert caught.value.attempts == 0
    if isinstance(lm := make(allow_remote_media=True), FunctionLM):
        assert (await lm([{"role": "user", "content": ["Look:", part]}])).text == "x"


async def test_images_of_a_generator_reach_the_server():
    """The text holds `(image 1)`, the part follows."""

    class Seen(sm.DataModel):
        """What a camera saw."""

        photo: sm.Image

    photo = sm.Image.from_bytes(b"x", "image/png")
    rendered = sm.Generator(ANSWER).render(Seen(photo=photo))
    _, (arrived,) = await ask(completion('{"n": 1}'), messages=rendered, schema=ANSWER)
    text, part = arrived.body["messages"][-1]["content"]
    assert text == {"type": "text", "text": "(image 1)"}
    assert part == {"type": "image_url", "image_url": {"url": "data:image/png;base64,eA=="}}


async def test_a_reply_of_an_adapter_may_hold_calls_as_they_came():
    """An adapter of one's own need not know our records."""
    lm = FunctionLM(lambda request: LMReply("", tool_calls=(called(),)))
    assert (await lm("?", tools=[ADD])).tool_calls[0].arguments == {"a": 1, "b": 2}


JSON = st.recursive(
    st.none() | st.integers(-9, 9) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)
FUNCTIONS = st.fixed_dictionaries(
    {"name": st.sampled_from(["add", "now", "os.system"]) | JSON},
    optional={"arguments": st.sampled_from(['{"a": 1, "b": 2}', "{}", "", '{"a": ']) | JSON},
)
IDS = st.sampled_from("xy") | JSON
CALLS = st.fixed_dictionaries({"function": FUNCTIONS | JSON}, optional={"id": IDS, "type": JSON})


@settings(max_examples=40)
@given(st.lists(CALLS | JSON, min_size=1, max_size=3))
def test_whatever_a_provider_sends_as_calls_is_valid_or_a_bad_reply(calls):
    """No other exception, and nothing invalid is handed on; ids are distinct."""
    lm = FunctionLM(lambda request: LMReply("", tool_calls=tuple(calls)), attempts=1)
    try:
        reply = sm.run(lm, "?", tools=[ADD, NOW])
    except BadReplyError:
        return
    for call in reply.tool_calls:
        assert {*call.arguments} == {"add": {"a", "b"}, "now": set()}[call.name]
    assert len({call.id for call in reply.tool_calls}) == len(calls)
