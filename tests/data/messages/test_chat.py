"""Messages of a conversation, in chat-completions shape."""

import pydantic
import pytest
from hypothesis import given, strategies as st

from synmod.data import (
    Audio,
    ChatMessage,
    ChatMessages,
    DataModel,
    File,
    Image,
    JsonDataModel,
    TextPart,
    ToolCall,
    contains,
    json_equal,
)
from synmod.errors import DataError

CALL = ToolCall("1", "add", '{"a":  1}')


def test_none_fields_stay():
    """The JSON holds every field."""
    assert ChatMessage("user", "Hi").get_json() == {
        "role": "user",
        "content": "Hi",
        "name": None,
        "tool_calls": None,
        "tool_call_id": None,
        "refusal": None,
        "reasoning_content": None,
        "thinking_blocks": None,
    }


@pytest.mark.parametrize(
    ("field", "fields"),
    [
        ("role", {"role": "bot", "content": "x"}),
        ("role", {"content": "x"}),
        ("tool_call_id", {"role": "tool", "content": "x"}),
        ("tool_call_id", {"role": "user", "content": "x", "tool_call_id": "1"}),
        ("tool_calls", {"role": "user", "content": "x", "tool_calls": [CALL]}),
        ("content", {"role": "user"}),
        ("content", {"role": "assistant"}),
        ("content", {"role": "assistant", "tool_calls": []}),
        ("content", {"role": "tool", "tool_call_id": "1"}),
        ("content", {"role": "user", "content": [{"type": "video", "x": 1}]}),
        ("more", {"role": "user", "content": "x", "more": 1}),
    ],
)
def test_violations(field, fields):
    """They are pydantic's errors, at the field."""
    with pytest.raises(pydantic.ValidationError) as error:
        ChatMessage(**fields)
    assert error.value.errors()[0]["loc"][0] == field
    with pytest.raises(pydantic.ValidationError):
        ChatMessages(messages=[fields])


@pytest.mark.parametrize(
    "fields",
    [
        {"tool_calls": [CALL]},
        {"refusal": "no"},
        {"reasoning_content": "hm"},
        {"thinking_blocks": [{"type": "thinking", "signature": "s"}]},
    ],
)
def test_an_assistant_may_say_something_else(fields):
    """Content may be None beside tool calls, a refusal or reasoning."""
    message = ChatMessage("assistant", **fields)
    assert message.to_json_data_model().to() == message


def test_content_parts():
    """A str and media in the list become their parts."""
    content = ["a", TextPart("b"), Image.from_url("https://x/y.png"), Audio.from_bytes(b"a", "audio/mpeg")]
    message = ChatMessage("user", [*content, File.from_bytes(b"f", "application/pdf")])
    assert [part["type"] for part in message.get_json()["content"]] == [
        "text",
        "text",
        "image_url",
        "input_audio",
        "file",
    ]
    assert message.get_json()["content"][3]["input_audio"] == {"data": "YQ==", "format": "mp3"}
    assert message.to_json_data_model().to() == message
    assert JsonDataModel(message.get_json(), data_model=ChatMessage).to() == message
    with pytest.raises(pydantic.ValidationError, match="fetch it"):
        ChatMessage("user", [Audio.from_url("https://x/y.wav")])


def test_conversations():
    """Required, may be empty; a model with further fields counts too."""

    class Chat(DataModel):
        messages: list[ChatMessage]
        user: str = ""

    class Maybe(DataModel):
        messages: list[ChatMessage] = []

    assert ChatMessages([]).get_json() == {"messages": []}
    assert ChatMessages in Chat
    assert contains(ChatMessages([]), ChatMessages)
    assert ChatMessages not in Maybe
    with pytest.raises(pydantic.ValidationError):
        ChatMessages()
    assert ChatMessages([{"role": "user", "content": "x"}]).messages == [ChatMessage("user", "x")]


def test_positional_arguments():
    """Role and content, each once."""
    with pytest.raises(TypeError, match="twice"):
        ChatMessage("user", role="user")
    with pytest.raises(TypeError, match="at most 2"):
        ChatMessage("user", "x", "y")


def test_tool_calls():
    """The wire's JSON; the arguments as text, to the letter, and parsed."""
    assert CALL.get_json() == {"id": "1", "type": "function", "function": {"name": "add", "arguments": '{"a":  1}'}}
    assert (CALL.name, CALL.arguments) == ("add", {"a": 1})
    assert ToolCall.model_validate(CALL.get_json()) == CALL
    assert ToolCall("1", "add", {"é": [1, None]}).function.arguments == '{"é":[1,null]}'
    assert ToolCall(id="1", name="add", arguments={}).function.arguments == "{}"
    assert list(ToolCall.get_schema()["properties"]) == ["id", "type", "function"]


@pytest.mark.parametrize("text", ["", "nope", "[1]", "1", '{"a": 1', '{"a": NaN}'])
def test_arguments_that_are_no_object(text):
    """A DataError with the text, when they are asked for."""
    call = ToolCall("1", "add", text)
    assert call.get_json()["function"]["arguments"] == text
    with pytest.raises(DataError) as error:
        call.arguments
    assert text in str(error.value)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text('aé\x00"'),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("ab"), inner, max_size=3),
    max_leaves=6,
)


@given(st.dictionaries(st.text("ab"), JSON, max_size=3))
def test_arguments_come_back(arguments):
    """What is given as a dict is what comes out, exactly."""
    assert json_equal(ToolCall("1", "f", arguments).arguments, arguments)


def test_thinking_blocks_come_back():
    """They are opaque JSON."""
    blocks = [{"type": "thinking", "thinking": "..", "signature": "x", "n": 1}, "odd", None]
    message = ChatMessage("assistant", "x", thinking_blocks=blocks)
    assert message.get_json()["thinking_blocks"] == blocks


def test_short_descriptions():
    """What a model is told of our own classes is one line."""
    for name, definition in [*ChatMessages.get_schema()["$defs"].items(), ("whole", ChatMessages.get_schema())]:
        assert "\n" not in definition.get("description", ""), name
