"""JSON as text: what is written is read back to the letter, and foreign text is read strictly."""

import json
import re

import pytest
from hypothesis import given, strategies as st

from synmod.data import dump_json, parse_json
from synmod.errors import ArgumentError, DataError
from synmod.leaves.frozen import frozen, json_equal

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT
JSON = st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4))


@given(JSON, st.sampled_from([None, 2]))
def test_reading_what_was_written_gives_the_value(value, indent):
    """The round trip through text keeps kinds, digits, signs, characters and the order of keys."""
    text = dump_json(value, indent)
    again = parse_json(text)
    assert json_equal(again, value)
    assert json.dumps(again) == json.dumps(value)
    assert parse_json(text.encode()) == again


def test_text_is_written_as_it_is():
    """Letters of any script stay readable; two spaces indent on request."""
    assert dump_json({"a": "é漢🙂"}) == '{"a": "é漢🙂"}'
    assert dump_json(frozen({"a": [1]}), indent=2) == '{\n  "a": [\n    1\n  ]\n}'
    with pytest.raises(DataError, match="/a"):
        dump_json({"a": (1,)})


def test_what_is_read_is_plain():
    """The reader gives plain dicts and lists."""
    value = parse_json('{"a": [1]}')
    assert type(value) is dict
    assert type(value["a"]) is list


@pytest.mark.parametrize(
    ("text", "line", "column", "said"),
    [
        ("{} {}", 1, 4, "after the JSON value"),
        ("[1] x", 1, 5, "after the JSON value"),
        ("", 1, 1, "Expecting value"),
        ("[1,\n2", 2, 2, "delimiter"),
        ("{'a': 1}", 1, 2, "double quotes"),
        ("\ufeff{}", 1, 1, "BOM"),
        (b"\xef\xbb\xbf{}", 1, 1, "BOM"),
        (b'[1,\n "\xff"]', 2, 3, "UTF-8"),
        ("[1]".encode("utf-16"), 1, 1, "UTF-8"),
        ('"\x01"', 1, 2, "control character"),
        ("01", 1, 2, "after the JSON value"),
        (".5", 1, 1, "Expecting value"),
    ],
)
def test_wrong_syntax_is_named_with_line_and_column(text, line, column, said):
    """A DataError begins with the place."""
    with pytest.raises(DataError) as caught:
        parse_json(text)
    assert str(caught.value).startswith(f"line {line} column {column}: ")
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("NaN", "nan"),
        ("[1,\n Infinity]", "/1"),
        ("[-Infinity]", "/0"),
        ("[1e999]", "/0"),
        ('{"a": -1.5e400}', "/a"),
        ("[" + "1" * 1001 + "]", "1,000"),
        ("[-" + "1" * 1001 + "]", "1,000"),
        ("1" * 5000, "1,000"),
        (r'["x", "\ud800"]', "/1"),
        ('["\ud800"]', "surrogate"),
        (r'{"\udc00": 1}', "surrogate"),
        ('{"a": 1,\n  "b": {"a": 1},\n  "a": 2}', "'a' appears twice"),
        ('[{"x": "x", "y": 1, "x" : 2}]', "'x' appears twice"),
        ('{"a": 1, "\\u0061": 2}', "'a' appears twice"),
        ("[" * 51 + "]" * 51, "over 50 levels"),
        ("[" * 100_000, "over 50 levels"),
        ('{"a":' * 100_000 + "1" + "}" * 100_000, "over 50 levels"),
    ],
)
def test_what_is_not_json_for_us_is_named_with_the_pointer_or_the_key(text, named):
    """NaN, what overflows, long ints, lone surrogates, keys that stand twice, and deep nesting."""
    with pytest.raises(DataError, match=re.escape(named)):
        parse_json(text)


def test_limits_are_inclusive():
    """50 levels and 1,000 digits are read."""
    assert parse_json("[" * 50 + "]" * 50) == json.loads("[" * 50 + "]" * 50)
    assert parse_json("9" * 1000) == 10**1000 - 1
    assert parse_json("-0.0").hex() == "-0x0.0p+0"
    assert parse_json(" \n1 ") == 1
    assert parse_json('"\\ud83d\\ude42"') == "🙂"


def test_only_text_is_read():
    """What is neither str nor bytes is an ArgumentError."""
    with pytest.raises(ArgumentError, match="NoneType"):
        parse_json(None)
    assert parse_json(bytearray(b"[]")) == []


@given(st.text(max_size=30) | st.binary(max_size=30) | st.text('[]{}",:0eE.-+\\u d8', max_size=30))
@pytest.mark.slow
def test_any_text_is_read_or_refused(text):
    """Whatever comes, it is either JSON that survives the round trip or a DataError."""
    try:
        value = parse_json(text)
    except DataError:
        return
    assert json_equal(parse_json(dump_json(value)), value)
