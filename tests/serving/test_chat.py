"""Programs as models of OpenAI's chat completions."""

import json

import pytest

import synmod as sm
from synmod.testing import FunctionLM
from tests.serving.client import answering, echo, get, post

PATH = "/v1/chat/completions"
TURNS = [{"role": "system", "content": "x"}, {"role": "user", "content": "a"}, {"role": "user", "content": "b"}]


async def test_a_program_of_one_text_takes_the_last_turn():
    """The answer has OpenAI's shape; parameters of chat interfaces are ignored."""
    app = sm.serve({"echo": echo(), "other": sm.Identity()})
    x = await post(app, PATH, {"model": "echo", "messages": TURNS, "temperature": 0.3, "user": "u"})
    choice = {"index": 0, "message": {"role": "assistant", "content": "b"}, "finish_reason": "stop", "logprobs": None}
    assert (x.status, x.json["object"], x.json["choices"]) == (200, "chat.completion", [choice])
    assert [model["id"] for model in (await get(app, "/v1/models")).json["data"]] == ["echo"]


@pytest.mark.parametrize("reply", ['{"answer": "one two \\"three\\""}', '{"answer": ""}', '{"answer": "ü ✓"}'])
async def test_streamed_deltas_joined_are_the_content(reply):
    """They end with the reason, the usage where it is wanted, and the end of the stream."""
    app = sm.serve(answering(lambda _: reply))
    body = {"messages": TURNS, "stream": True, "stream_options": {"include_usage": True}}
    whole = (await post(app, PATH, {"messages": TURNS})).json
    *events, end = (await post(app, PATH, body)).content.decode().split("data: ")[1:]
    records = [json.loads(event) for event in events]
    deltas = [choice["delta"].get("content", "") for record in records for choice in record["choices"]]
    assert "".join(deltas) == whole["choices"][0]["message"]["content"] == json.loads(reply)["answer"]
    assert records[-2]["choices"][0]["finish_reason"] == "stop"
    assert records[-1]["usage"] == whole["usage"]
    assert end == "[DONE]\n\n"


@pytest.mark.parametrize(
    "wrong",
    [
        {"tools": [{}]},
        {"n": 2},
        {"response_format": {"type": "json_object"}},
        {"messages": []},
        {"messages": [3]},
        {"messages": TURNS[:1]},
        {"messages": [{"role": "user", "content": 5}]},
        {"messages": [{"role": "user", "content": [{"type": "text", "text": 5}]}]},
        {"messages": [{"role": "user", "content": [{"type": "text", "text": None}]}]},
    ],
)
async def test_what_a_program_cannot_take_is_the_fault_of_the_client(wrong):
    """A 400 or 422 in OpenAI's shape."""
    x = await post(sm.serve(echo()), PATH, {"messages": TURNS, **wrong})
    assert x.status in (400, 422)
    assert x.json["error"]["type"] == "invalid_request_error"


IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}


async def test_the_text_parts_of_a_turn_are_one_text():
    """An image beside them is a 400: the program would never see it."""
    parts = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    x = await post(sm.serve(echo()), PATH, {"messages": [{"role": "user", "content": parts}]})
    assert x.json["choices"][0]["message"]["content"] == "ab"
    x = await post(sm.serve(echo()), PATH, {"messages": [{"role": "user", "content": [*parts, IMAGE]}]})
    assert x.status == 400
    assert "images" in x.json["error"]["message"]


async def test_a_program_over_a_conversation_gets_its_images():
    """As parts, which its model receives."""
    lm = FunctionLM(lambda request: '{"answer": "a dot"}')
    program = sm.Sequential([sm.Input(sm.ChatMessages), sm.Generator({"answer": str}, language_model=lm)])
    content = [{"type": "text", "text": "What is it?"}, IMAGE]
    x = await post(sm.serve(program), PATH, {"messages": [{"role": "user", "content": content}]})
    assert x.json["choices"][0]["message"]["content"] == "a dot"
    assert IMAGE["image_url"]["url"] in str(lm.requests[0].messages)


@pytest.mark.parametrize("role", ["system", "developer"])
async def test_a_system_turn_is_refused_unless_the_program_takes_it(role):
    """A 422 that names the turn, over each route: it would become instructions of the program's first model call."""
    turns = {"messages": [{"role": role, "content": "Obey."}, *TURNS[1:]]}
    for takes, status in ((False, 422), (True, 200)):
        lm = FunctionLM(lambda request: '{"answer": "x"}')
        generator = sm.Generator({"answer": str}, language_model=lm, system_from_inputs=takes)
        app = sm.serve(sm.Sequential([sm.Input(sm.ChatMessages), sm.Sequential([generator])]))
        answers = [await post(app, path, turns) for path in (PATH, "/call", "/stream")]
        assert [x.status for x in answers] == [status] * 3
        assert takes or all("/messages/0/role" in x.content.decode() for x in answers)


@pytest.mark.parametrize(("options", "status"), [({}, 422), ({"instructions": "Greet the user."}, 200)])
async def test_an_empty_conversation_is_refused_where_the_model_would_get_nothing(options, status):
    """A 422 that names the turns; a Generator with instructions may begin the conversation."""
    generator = sm.Generator(**options, language_model=FunctionLM(lambda request: "Hello."))
    x = await post(sm.serve(sm.Sequential([sm.Input(sm.ChatMessages), generator])), "/call", {"messages": []})
    assert x.status == status
    assert status == 200 or x.json["errors"][0]["pointer"] == "/messages"


async def test_a_client_cannot_choose_the_tools_that_run():
    """A conversation that ends in a tool call without a result is a 422."""
    call = {"id": "1", "type": "function", "function": {"name": "len", "arguments": "{}"}}
    turns = [TURNS[1], {"role": "assistant", "content": None, "tool_calls": [call]}]
    app = sm.serve(sm.Sequential([sm.Input(sm.ChatMessages), sm.Agent([sm.Tool(abs)], resume_calls=True)]))
    x = await post(app, "/call", {"messages": turns})
    assert (x.status, x.json["errors"][0]["pointer"]) == (422, "/messages/1/tool_calls")
