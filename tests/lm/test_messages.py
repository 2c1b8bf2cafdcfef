"""Messages: whatever a caller hands in, checked turns come out."""

import json

import pytest

import synmod as sm
from synmod.data import ChatMessage, ChatMessages
from synmod.errors import DataError
from synmod.lm import message, turns
from synmod.lm.records import estimate_tokens


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


CALL = {"id": "1", "type": "function", "function": {"name": "add", "arguments": "{}"}}


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
        ([{"role": "user", "content": [{"type": "image_url"}]}], r"content\[0\].*image_url"),
        ([{"role": "tool", "content": "3"}], "tool_call_id"),
        ([{"role": "user", "content": "3", "tool_call_id": "1"}], "tool_call_id"),
        ([{"role": "assistant", "tool_calls": [{"id": "1"}]}], r"tool_calls\[0\]"),
        ([{"role": "assistant", "tool_calls": [{"function": {"name": "a", "arguments": {}}}]}], r"tool_calls\[0\]"),
        ([{"role": "assistant", "content": "a", "tool_calls": 5}], "tool_calls: got 5, wanted a list"),
        ([{"role": "user", "content": "a", "tool_calls": [CALL]}], "only an assistant"),
        ([{"role": "user", "content": "a", "name": 5}], "name: got 5, wanted a text"),
        ([{"role": "user", "content": "a", "tool_call_id": 5}], "tool_call_id: got 5"),
        ([{"role": "assistant", "tool_calls": [{"function": CALL["function"]}]}], r"tool_calls\[0\].*\"id\""),
        ([{"role": "user", "refusal": "no"}], "no content"),
        ([{"role": "user", "content": {}}], "content of type object"),
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


SEEN = sm.Image.from_bytes(b"x", "image/png")
HEARD = sm.Audio.from_bytes(b"y", "audio/mpeg")
READ = sm.File.from_bytes(b"z", "application/pdf")


@pytest.mark.parametrize("message", [ChatMessage, lambda role, content: {"role": role, "content": content}])
def test_media_go_out_as_parts(message):
    """Images, sound and files of a ChatMessage or a dict become parts, without keys that are null."""
    (turn,) = turns([message("user", ["Look:", SEEN, HEARD, READ])])
    assert list(turn["content"]) == [
        {"type": "text", "text": "Look:"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,eA=="}},
        {"type": "input_audio", "input_audio": {"data": "eQ==", "format": "mp3"}},
        {"type": "file", "file": {"file_data": "data:application/pdf;base64,eg==", "format": "application/pdf"}},
    ]


def test_media_count_as_some_tokens():
    """The base64 of an image is not what it costs."""
    large = sm.Image.from_bytes(bytes(300_000), "image/png")
    assert estimate_tokens(turns([ChatMessage("user", ["abc", large])])) == 1_001


def test_sound_at_an_address_is_refused():
    """No message can hold it."""
    with pytest.raises(DataError, match=r"messages\[0\].*fetch it"):
        turns([{"role": "user", "content": [sm.Audio.from_url("https://example.com/a.mp3")]}])


def test_parts_of_text_are_turns():
    """A list of text parts is content too."""
    parts = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    assert turns([{"role": "user", "content": parts}])[0]["content"] == parts


def test_tool_turns_of_a_conversation_pass():
    """An assistant that called a tool has no content, and the tool's answer follows it."""
    checked = turns(
        [{"role": "assistant", "tool_calls": [CALL]}, {"role": "tool", "tool_call_id": "1", "content": "3"}]
    )
    assert checked[0]["tool_calls"] == [CALL]


@pytest.mark.parametrize(
    "more", [{"refusal": "I cannot"}, {"reasoning_content": "hm"}, {"thinking_blocks": [{"type": "thinking"}]}]
)
def test_an_assistant_that_refused_or_reasoned_may_lack_content(more):
    """Whatever a ChatMessage may be is a turn."""
    for given in (ChatMessage("assistant", None, **more), {"role": "assistant", **more}):
        assert turns([given]) == ({"role": "assistant", "content": None, **more},)
