"""Prefix and suffix: every top-level field under another name."""

import pytest
from hypothesis import given

from synmod.data import DataModel, JsonDataModel, ops, schema_of
from synmod.errors import DataError
from tests.data.model_strategies import is_sound, symbol_of, values


class Query(DataModel):
    question: str
    top: int = 3


def test_all_fields_are_renamed():
    """Required and order stay."""
    schema = ops.prefix(Query, "my").get_schema()
    assert list(schema["properties"]) == ["my_question", "my_top"]
    assert schema["required"] == ["my_question"]
    assert Query(question="q").to_json_data_model().suffix("2").get_json() == {"question_2": "q", "top_2": 3}
    assert ops.prefix(None, "my") is None


def test_extra_keys_are_renamed():
    """Keys that no schema declares are renamed like the others."""
    value = JsonDataModel({"a": 1, "b": 2}, schema={"type": "object", "properties": {"a": {}}})
    assert value.prefix("p").get_json() == {"p_a": 1, "p_b": 2}


@pytest.mark.parametrize("bad", ["", "1a", "a b", "a-b", None, 5])
def test_a_prefix_is_an_identifier(bad):
    """Another text is refused."""
    with pytest.raises(DataError, match="identifier"):
        ops.prefix(Query, bad)


@pytest.mark.parametrize("bad", ["", "a b", "a-b", None, 5])
def test_a_suffix_is_part_of_an_identifier(bad):
    """Another text is refused."""
    with pytest.raises(DataError, match="identifier"):
        ops.suffix(Query, bad)


@given(values())
def test_values_agree_with_their_symbol(value):
    """The renamed value satisfies the schema of the renamed symbol."""
    for rename in (lambda x: ops.prefix(x, "p"), lambda x: ops.suffix(x, "1")):
        assert is_sound(rename(value))
        assert schema_of(rename(value)) is schema_of(rename(symbol_of(value)))
