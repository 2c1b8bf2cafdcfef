"""Factorize: numbered repeats become one array."""

import pytest
from hypothesis import given

from synmod.data import DataModel, JsonDataModel, ops, schema_from, schema_of, symbol
from synmod.errors import ArgumentError, SchemaError
from tests.data.model_strategies import is_sound, symbol_of, values


def fields(*names, required=(), **more):
    return {
        "type": "object",
        "properties": dict.fromkeys(names, {"type": "integer"}),
        "required": list(required),
        **more,
    }


def grouped(*names, **more):
    return list(ops.factorize(symbol(schema_from(fields(*names))), **more).keys())


def test_groups():
    """A group is a field with all its numbers from 1 on; nothing is guessed."""
    assert grouped("x", "a", "x_1", "x_2") == ["x_list", "a"]
    assert grouped("gpt_4") == ["gpt_4"]
    assert grouped("query_1", "query_2") == ["query_1", "query_2"]
    assert grouped("x", "x_2") == ["x", "x_2"]
    assert grouped("x", "x_1", "x_3") == ["x_list", "x_3"]
    assert grouped("x", "xs", "x_01") == ["x", "xs", "x_01"]


def test_a_member_heads_no_group():
    """Groups are found in field order."""
    assert grouped("a", "a_1", "a_1_1") == ["a_list", "a_1_1"]
    assert grouped("a_1", "a_1_1", "a") == ["a_1_list", "a"]


def test_names():
    """`names` says how an array is called; a taken name takes the suffix rule."""
    assert grouped("x", "x_1", names={"x": "all"}) == ["all"]
    assert grouped("x", "x_1", "x_list") == ["x_list_1", "x_list"]
    assert grouped("x", "x_1", names={"x": "x"}) == ["x"]
    with pytest.raises(SchemaError, match="Did you mean 'query'"):
        grouped("query", "query_1", names={"qery": "all"})
    with pytest.raises(ArgumentError):
        grouped("x", "x_1", names=["x"])


def test_the_array():
    """Required, members in number order, as many as may be there."""
    schema = fields("x_1", "x", "x_2", required=["x", "x_2"])
    value = JsonDataModel({"x_2": 2, "x": 0}, schema=schema)
    assert value.factorize().get_json() == {"x_list": [0, 2]}
    made = value.factorize().get_schema()
    assert made["properties"]["x_list"] == {"items": {"type": "integer"}, "maxItems": 3, "minItems": 2, "type": "array"}
    assert made["required"] == ["x_list"]


def test_an_item_each():
    """A list is one item, None is one item."""

    class Many(DataModel):
        x: list[int]
        x_1: None
        x_2: str

    value = Many(x=[1, 2], x_1=None, x_2="s").to_json_data_model()
    assert value.factorize().get_json() == {"x_list": [[1, 2], None, "s"]}
    assert len(value.factorize().get_schema()["properties"]["x_list"]["items"]["anyOf"]) == 3


def test_extra_keys_give_way():
    """An extra key with the name of the array takes the suffix rule."""
    value = JsonDataModel({"x_list": 9, "x": 0, "x_1": 1, "x_2": 2}, schema=fields("x", "x_1"))
    assert value.factorize().get_json() == {"x_list": [0, 1], "x_list_1": 9, "x_2": 2}
    assert ops.factorize(None) is None


@pytest.mark.slow
@given(values())
def test_values_agree_with_their_symbol(value):
    """No value is lost, and the result satisfies its schema, which is the symbol's."""
    made = value.factorize()
    assert is_sound(made)
    assert schema_of(made) is schema_of(symbol_of(value).factorize())
    declared = value.get_schema()["properties"]
    flat = []
    for key, content in made.get_json().items():
        is_group = key.endswith("_list") and key not in declared
        flat.extend(content if is_group else [content])
    assert sorted(map(str, flat)) == sorted(map(str, value.get_json().values()))
