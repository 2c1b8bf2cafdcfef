"""Messages: whatever a caller hands in, checked turns come out."""

import json

import pytest

from synmod.data import ChatMessage, ChatMessages
from synmod.errors import ConfigError, DataError
from synmod.lm import message, turns


def test_a_str_is_one_user_turn():
    """The shortest way to ask is a text."""
    assert turns("Hi") == ({"role": "user", "content": "Hi"},)


def test_a_turn_reads_both_ways():
    """A turn reads as JSON and by attribute, like ChatMessage."""
    (turn,) = turns("Hi")
    assert turn["content"] == turn.content == "Hi"
    assert json.dumps(turn) == '{"role": "user", "content": "Hi"}'
    with pytest.raises(AttributeError, match="no 'colour'"):
        turn.colour


@pytest.mark.parametrize(
    "given",
    [
        ChatMessage(role="user", content="Hi"),
        ChatMessages(messages=[ChatMessage(role="user", content="Hi")]),
        [ChatMessage(role="user", content="Hi")],
        [{"role": "user", "content": "Hi"}],
        ({"role": "user", "content": "Hi"} for _ in range(1)),
        {"role": "user", "content": "Hi"},
        {"messages": [{"role": "user", "content": "Hi"}]},
        ChatMessages(messages=[ChatMessage(role="user", content="Hi")]).to_json_data_model(),
        [message("user", "Hi")],
    ],
)
def test_every_form_gives_the_same_turns(given):
    """Data models, their JSON, lists and iterators mean the same; keys that are null say nothing."""
    assert turns(given) == ({"role": "user", "content": "Hi"},)


def test_turns_are_frozen_copies():
    """What a caller changes afterwards does not reach the request."""
    given = [{"role": "user", "content": "Hi"}]
    checked = turns(given)
    given[0]["content"] = "changed"
    assert checked[0]["content"] == "Hi"
    with pytest.raises(TypeError):
        checked[0]["content"] = "changed"


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ([{"role": "user", "content": "a"}, {"role": "user"}], r"messages\[1\].*no content"),
        ([{"role": "robot", "content": "a"}], r"messages\[0\].*'robot'.*user"),
        ([{"role": "usr", "content": "a"}], r"Did you mean 'user'"),
        ([{"content": "a"}], r"messages\[0\]"),
        (["a"], r"messages\[0\].*str"),
        ([{"role": "user", "content": 3}], r"messages\[0\].*int"),
        ([{"role": "user", "content": b"x"}], r"messages\[0\]"),
        ([{"role": "user", "content": [{"type": "sketch"}]}], r"messages\[0\].*sketch"),
        ({"role": "user", "content": float("nan")}, r"messages\[0\]"),
        ("half a character: \ud800", r"messages\[0\].*surrogate"),
        ([{"role": ["user"], "content": "a"}], r"messages\[0\]"),
        ([], "empty"),
        (3, "int"),
        (None, "NoneType"),
        (b"bytes", "bytes"),
    ],
)
def test_what_is_no_turn_is_refused_with_its_index(given, says):
    """A fault is a DataError that names the index, what was got and what was wanted."""
    with pytest.raises(DataError, match=says):
        turns(given)


@pytest.mark.parametrize("kind", ["image_url", "input_audio", "file"])
def test_media_are_refused_in_words(kind):
    """No model is sent images, sound or files yet: a ConfigError says so, and names the index."""
    with pytest.raises(ConfigError, match=rf"messages\[0\].*{kind}.*yet"):
        turns([{"role": "user", "content": [{"type": kind, kind: {"url": "x"}}]}])


def test_parts_of_text_are_turns():
    """A list of text parts is content too."""
    parts = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    assert turns([{"role": "user", "content": parts}])[0]["content"] == parts


def test_tool_turns_of_a_conversation_pass():
    """An assistant that called a tool has no content, and the tool's answer follows it."""
    call = {"id": "1", "type": "function", "function": {"name": "add", "arguments": "{}"}}
    checked = turns(
        [{"role": "assistant", "tool_calls": [call]}, {"role": "tool", "tool_call_id": "1", "content": "3"}]
    )
    assert checked[0]["tool_calls"] == [call]
