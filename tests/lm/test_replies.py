"""Reading a reply: nothing is guessed, and nothing valid is missed."""

import time

import pytest
from hypothesis import given, strategies as st

import synmod as sm
from synmod.data import declare, dump_json
from synmod.lm.replies import read_reply
from synmod.testing import FunctionLM, ScriptedLM

OBJECT = declare({"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]})
ANY = {kind: declare({"type": kind}, root="any") for kind in ("array", "string", "integer", "boolean", "null")}


@pytest.mark.parametrize(
    "text",
    [
        '{"a": 1}',
        ' \n{"a": 1}\n',
        '\ufeff{"a": 1}',
        '```json\n{"a": 1}\n```',
        '```\n{"a": 1}\n```',
        '```JSON\r\n{"a": 1}\r\n```',
        '<think>maybe {"a": 2}?</think>{"a": 1}',
        '<think>hm</think>\n```json\n{"a": 1}\n```\n',
        'hm, {"a": 2}? no.</think>\n{"a": 1}',
        'Here it is: {"a": 1}. Anything else?',
        'Not {"b": 1} nor {a: 1} nor [1] nor { but {"a": 1} or {"a": 2}',
        'First:\n```json\n{"a": 1}\n```\nBye.',
        'It\'s {"a": 1}',
        '[see] {"a": 1}',
        'Within [0, 1) it is {"a": 1}',
    ],
)
def test_valid_values_are_found(text):
    """Strict JSON, then what stands around it is taken off, then the first valid value inside the text."""
    read = read_reply(text, OBJECT)
    assert not read.reason
    assert read.json == {"a": 1}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "empty"),
        ("  \n ", "empty"),
        ("I do not know.", "not_json"),
        ("{'a': 1}", "not_json"),
        ('{"a": 1', "not_json"),
        ('{"a": 1,}', "not_json"),
        ('{"a": NaN}', "not_json"),
        ('{"a": "1"}', "schema"),
        ('{"a": 1.5}', "schema"),
        ("{}", "schema"),
        ('[{"a": 1}]', "schema"),
        ('Here: [{"a": 1}]', "schema"),
        ('The value {"b": 1} is all.', "schema"),
        ("1", "schema"),
    ],
)
def test_nothing_is_guessed(text, reason):
    """No quotes are repaired, no numbers converted, no list is unwrapped."""
    read = read_reply(text, OBJECT)
    assert read.reason
    assert read.reason == reason
    assert read.json is None


@pytest.mark.parametrize(
    ("kind", "text", "json"),
    [
        ("array", "Here: [1, 2]!", [1, 2]),
        ("string", '"Paris"', "Paris"),
        ("integer", "-7", -7),
        ("boolean", "```\ntrue\n```", True),
        ("null", " null ", None),
    ],
)
def test_other_kinds_are_read_too(kind, text, json):
    """Objects and arrays are found in prose; other values must be the whole text."""
    read = read_reply(text, ANY[kind])
    assert (read.json, read.reason) == (json, "")


def test_faults_are_listed_with_pointers():
    """At most five errors, each with its pointer."""
    schema = declare({"type": "array", "items": {"type": "integer"}}, root="any")
    fault = read_reply(dump_json(["x"] * 9), schema)
    assert [pointer for pointer, _ in fault.errors] == ["/0", "/1", "/2", "/3", "/4"]
    assert all("integer" in said for _, said in fault.errors)


def test_the_meaning_is_that_of_json_schema():
    """1.0 is an integer, as in JSON Schema, and stays what it is."""
    read = read_reply('{"a": 1.0}', OBJECT)
    assert not read.reason
    assert isinstance(read.json["a"], float)


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text(), lambda inner: st.lists(inner, max_size=3)))
def test_whatever_is_written_is_read_again(json):
    """A JSON text gives its value, in prose or not."""
    schema = declare({"type": "object", "properties": {"v": True}, "required": ["v"]})
    text = dump_json({"v": json})
    assert read_reply(text, schema).json == {"v": json}
    assert read_reply(f"Well: {text} and so on", schema).json == {"v": json}


@given(st.text(alphabet='{}[]":,a1\\ \n`<think>/', max_size=60))
def test_any_text_is_read_or_refused(text):
    """No text raises."""
    read = read_reply(text, OBJECT)
    assert (not read.reason) == (read.json is not None)


SCALARS = st.none() | st.booleans() | st.integers() | st.text()
CONTAINERS = st.lists(SCALARS | st.lists(SCALARS, max_size=2), min_size=1, max_size=4) | st.dictionaries(
    st.text(), SCALARS | st.lists(SCALARS, max_size=2) | st.dictionaries(st.text(), SCALARS, max_size=2), min_size=1
)
EITHER = declare({"type": ["object", "array"]}, root="any")


@given(CONTAINERS, st.sampled_from(["", "Here: ", "```json\n"]), st.data())
def test_a_part_of_a_value_is_never_the_answer(json, before, data):
    """A value that is cut anywhere, or broken by what JSON does not allow, holds none that could be taken for it."""
    text = before + dump_json(json)
    assert read_reply(text[: data.draw(st.integers(0, len(text) - 1))], EITHER).reason
    for broken in ({"twice": json}, [json]):
        text = dump_json(broken)[:-1]
        twice = text + (', "twice": 1}' if isinstance(broken, dict) else ", NaN]")
        assert read_reply(before + twice, EITHER).reason == "not_json"


@pytest.mark.parametrize(
    "text",
    [
        '{"text": "root", "replies": [{"text": "leaf", "replies": []}, {"text": "se',
        '{"user": {"id": 1}, "text": "two\nlines", "re": "\\d", "more": {"id": 2}}',
        "[" * 60 + "1" + "]" * 60,
        '{"score": NaN, "detail": {"k": 1}}',
    ],
)
def test_a_broken_value_has_no_parts(text):
    """Examples of what models write: cut, with raw lines and escapes in strings, too deep, not a number."""
    assert read_reply(text, EITHER).reason == "not_json"


async def test_of_a_cut_reply_only_the_whole_counts():
    """What a model wrote before it was cut is not its answer."""
    draft = FunctionLM(lambda _: sm.LMReply('Draft: {"a": 1}. Now the', finish_reason="length"))
    with pytest.raises(sm.errors.BadReplyError) as caught:
        await draft("Hi", {"type": "object"})
    assert caught.value.reason == "length"
    whole = FunctionLM(lambda _: sm.LMReply('```json\n{"a": 1}\n```', finish_reason="length"))
    assert (await whole("Hi", {"type": "object"}))["a"] == 1


HOSTILE = [
    "[" * 99 + "1," * 400_000,
    "[" * 300_000,
    "{" * 300_000,
    '{"a":' * 60_000,
    '{"' * 150_000,
    '"' * 300_000,
    "```\n" + " " * 300_000 + "x",
    "```" + " " * 300_000 + "x```",
    "```a\n" + "`" * 300_000 + "x",
    "<think>" * 50_000,
    "<think>" + "</thin" * 50_000,
]


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_texts_are_refused_in_time(text):
    """A reply made of brackets cannot hold up the loop."""
    began = time.process_time()
    assert read_reply(text, OBJECT).reason == "not_json"
    assert time.process_time() - began < 1


def test_at_most_a_hundred_places_are_tried():
    """The first valid value counts, if it does not stand behind a hundred brackets that begin nothing."""
    assert read_reply("{ " * 99 + '{"a": 1}', OBJECT).json == {"a": 1}
    assert read_reply("{ " * 100 + '{"a": 1}', OBJECT).reason == "not_json"


@pytest.mark.parametrize("prose", ["Step [1: read the text.", 'The pipe is [5" wide].', "[true story:"])
def test_a_bracket_of_prose_hides_no_answer(prose):
    """A bracket before a number or a word need not begin an array."""
    assert read_reply(f'{prose} {{"x": 1}}', declare({"type": "object"}, root="any")).json == {"x": 1}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('"a \\ud83d"', "a \ufffd"),
        ('"\\uDE00 a"', "\ufffd a"),
        ('"\\ud83d\\ude00"', "\U0001f600"),
        ('"\\\\ud83d"', "\\ud83d"),
        ('"\\ud83d\\ud83d\\ude00"', "\ufffd\U0001f600"),
    ],
)
async def test_half_a_character_in_a_value_is_a_replacement_character(text, value):
    """In JSON that a model wrote, and in the arguments of a tool."""
    tool = {"name": "f", "parameters": {"type": "object", "properties": {"x": {}}}}
    call = {"id": "1", "function": {"name": "f", "arguments": f'{{"x": {text}}}'}}
    replies = [f'{{"x": {text}}}', sm.LMReply(tool_calls=(call,))]
    assert (await ScriptedLM(replies)("?", {"type": "object"}))["x"] == value
    assert (await ScriptedLM(replies[1:])("?", tools=[tool])).tool_calls[0].arguments == {"x": value}
