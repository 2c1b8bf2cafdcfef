"""The text of documents: written as the library would, measured exactly, parsed strictly, however deep."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import synmod as sm
from synmod.data import schema_from
from synmod.leaves.frozen import frozen
from synmod.saving import FileLimits, compact, compact_plain, layout, measure, parse_document

texts = st.text(st.sampled_from('ab[]{},:"\\/\n\t\u0085\u2028é\U0001f600 ')) | st.text(
    st.characters(exclude_categories=["Cs"]), max_size=5
)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=20,
)
EVERYTHING = FileLimits(max_bytes=10**9, max_depth=10**6, max_values=10**9)


def count(value):
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return 1 + sum(map(count, parts))


def depth(value):
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else None
    return 0 if parts is None else 1 + max(map(depth, parts), default=0)


@settings(deadline=None)
@given(values)
def test_texts_measures_and_parsers_agree(value):
    """Two writers, two parsers and the scan say the same as the json library."""
    text = layout(value)
    library = json.dumps(value, indent=2, ensure_ascii=False) + "\n"
    assert json.loads(text.text) == value
    if not any(ord(sign) in range(0x80, 0xA0) or sign in "\u2028\u2029" for sign in library):
        assert text.text == library
    assert (text.depth, text.values) == (depth(value), count(value))
    one_line = json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    assert compact(value) == compact_plain(value, 1) == compact(frozen(value)) == one_line
    assert measure(text.text.encode(), 10**9)[:3] == (depth(value), count(value), True)
    for data in (text.text.encode(), one_line.encode()):
        parsed, deep, number = parse_document(data, EVERYTHING)
        assert repr(parsed) == repr(value)
        assert (deep, number) == (depth(value), count(value))


@settings(deadline=None)
@given(values)
def test_deep_documents_are_parsed_alike(value):
    """Below 200 levels the library parses, above them our own parser, with the same result."""
    for _ in range(250):
        value = [value, {"k": 1}]
    text = layout(value).text
    parsed, deep, _ = parse_document(text.encode(), EVERYTHING)
    assert deep > 200
    assert compact(parsed) == compact(value)


@pytest.mark.parametrize(
    "inside",
    [
        "",
        "1,",
        "{",
        '{"a"}',
        '{"a":}',
        '{"a":1,}',
        "[1,]",
        "01",
        "1.",
        "+1",
        "tru",
        "nul",
        "'a'",
        '"\\x"',
        '"a\nb"',
        "1 2",
    ],
)
def test_deep_documents_are_parsed_as_strictly(inside):
    """What the library refuses is refused."""
    text = "[" * 250 + inside + "]" * 250
    with pytest.raises(json.JSONDecodeError):
        json.loads(f"[{inside}]") if inside else json.loads("[,]")
    if inside:
        with pytest.raises(sm.FormatError):
            parse_document(text.encode(), EVERYTHING)


@pytest.mark.parametrize(
    "word", ["NaN", "Infinity", "-Infinity", "1e999", "-1e999", "1E+309", "1" * 310 + ".5", '{"a":1,"a":2}', "1" * 1001]
)
def test_deep_documents_have_no_constants_overflow_or_doubles(word):
    """The same hooks hold in both parsers."""
    for levels in (1, 250):
        with pytest.raises(sm.FormatError):
            parse_document(("[" * levels + word + "]" * levels).encode(), EVERYTHING)


def test_schemas_that_repeat_are_written_alike():
    """A schema is written once a depth; the text is that of the library."""
    schema = schema_from({"type": "object", "properties": {"a": {"type": "string"}, "b": {"enum": [[], {}]}}})
    empty = schema_from({}, root="any")
    document = {"one": schema, "list": [schema, empty, schema, {"deep": schema, "x": empty}], "two": schema}
    text = layout(document)
    assert text.text == json.dumps(document, indent=2) + "\n"
    assert text.values == count(json.loads(text.text))
    assert text.depth == depth(json.loads(text.text))
    assert compact(document) == json.dumps(document, separators=(",", ":"))
