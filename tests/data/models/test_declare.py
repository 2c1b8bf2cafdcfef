"""Declarations: whatever may stand where a data model is expected."""

import pydantic
import pytest

from synmod.data import DataModel, JsonDataModel, declare, intern_schema, label_of, model_of, schema_of
from synmod.errors import ArgumentError, SchemaError


class HTTPQuery(DataModel):
    question: str


class Plain(pydantic.BaseModel):
    n: int


def test_what_declares():
    """Classes, instances, values, symbols and schema dicts."""
    instance = HTTPQuery(question="q")
    value = instance.to_json_data_model()
    symbol = HTTPQuery.to_symbolic_data_model()
    schemas = {id(declare(x)) for x in (HTTPQuery, instance, value, symbol, HTTPQuery.get_schema())}
    assert len(schemas) == 1
    assert [model_of(x) for x in (HTTPQuery, instance, value, symbol)] == [HTTPQuery] * 4
    assert model_of(HTTPQuery.get_schema()) is None
    assert model_of(value + value) is None
    assert all(schema_of(x) is schema_of(value) for x in (HTTPQuery, instance, value, symbol))
    assert declare(Plain)["required"] == ["n"]


def test_any_root():
    """A Variable's schema may be of any kind, True included."""
    assert declare(True, root="any") == {}
    assert declare({"type": "array"}, root="any") == {"type": "array"}
    assert declare(pydantic.RootModel[list[int]], root="any")["type"] == "array"
    for x in (True, False, {"type": "array"}, pydantic.RootModel[list[int]]):
        with pytest.raises(SchemaError):
            declare(x)
    with pytest.raises(SchemaError):
        declare(False, root="any")


def test_what_declares_nothing():
    """Anything else is an ArgumentError."""
    for x in (5, "text", None, [HTTPQuery], int, JsonDataModel):
        with pytest.raises(ArgumentError):
            declare(x)
    with pytest.raises(ArgumentError):
        schema_of({"type": "object"})


@pytest.mark.parametrize(
    ("schema", "label"),
    [
        ({"title": "HTTPQuery"}, "http_query"),
        ({"title": "My title!"}, "my_title"),
        ({}, "data_model"),
        ({"title": "Class"}, "class_"),
    ],
)
def test_labels(schema, label):
    """The snake case of the title."""
    assert label_of(intern_schema(schema)) == label
