"""The text of a file: what pydantic writes with two spaces, a few more escapes, read strictly within limits."""

import json

import pytest
from hypothesis import example, given, strategies as st
from pydantic_core import to_json

import synmod as sm
from synmod.saving import dumps, loads
from tests.saving.hostile import document, minimal
from tests.saving.programs import Keep

texts = st.text(st.sampled_from('ab[]{},:"\\/\n\t\u0085\u2028é\U0001f600 ')) | st.text(
    st.characters(exclude_categories=["Cs"]), max_size=5
)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=20,
)
HIDDEN = {*map(chr, range(0x7F, 0xA0)), *"\u2028\u2029\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"}


def count(value):
    """Commas and opening brackets, and one."""
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    own = 1 + max(len(parts) - 1, 0) if isinstance(value, dict | list) else 0
    return own + sum(map(count, parts))


def depth(value):
    """Levels of containers."""
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else None
    return 0 if parts is None else 1 + max(map(depth, parts), default=0)


@given(values)
@example("\x7f")  # the one hidden character of ASCII that JSON does not escape
def test_any_value_comes_back_from_a_text_that_is_easy_to_review(value):
    """S3: the round trip is the identity; the text is the library's, hidden characters escaped."""
    text = dumps(Keep(value))
    assert repr(loads(text).thing) == repr(value)
    assert not HIDDEN & set(text)
    if not HIDDEN & set(json.dumps(value, ensure_ascii=False)):
        assert text == to_json(json.loads(text), indent=2).decode() + "\n"


@given(values)
def test_limits_are_exact(value):
    """A text loads within its own measures, and not within less; white space and escapes do not count."""
    whole = json.loads(document(minimal(graph__nodes__0__config={"thing": {"json": value}})))
    for text in (json.dumps(whole), json.dumps(whole, ensure_ascii=False, indent=1, separators=(",", ":"))):
        size, deep = 1 + count(whole), depth(whole)
        loads(text, limits=sm.FileLimits(max_values=size, max_depth=deep))
        for less in ({"max_values": size - 1}, {"max_depth": deep - 1}):
            with pytest.raises(sm.FormatError, match=next(iter(less))):
                loads(text, limits=sm.FileLimits(**less))


def test_the_deepest_limit():
    """`max_depth` is at most 200, so that reading may recurse; such a document loads."""
    with pytest.raises(sm.ArgumentError, match="from 1 to 200, got 201"):
        sm.FileLimits(max_depth=201)
    limits = sm.FileLimits(max_depth=200)
    value = "x"
    for _ in range(45):
        value = [value]
    assert loads(dumps(Keep(value), limits=limits), limits=limits).thing == value
    nested = '{"list": [' * 90 + '{"json": 1}' + "]}" * 90
    text = document(minimal()).replace('"config": {}', f'"config": {{"thing": {nested}}}')
    with pytest.raises(sm.FormatError, match="max_depth"):
        loads(text)
    assert loads(text, limits=limits).thing
