"""The emptiest value of a schema."""

import pytest

import synmod as sm
from synmod.tree import Variable, empty_value


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({}, None),
        ({"type": "string"}, ""),
        ({"type": "integer"}, 0),
        ({"type": "number"}, 0),
        ({"type": "boolean"}, False),
        ({"type": "array"}, []),
        ({"type": "object"}, {}),
        ({"type": "string", "default": "x"}, "x"),
        ({"type": ["string", "null"]}, None),
        ({"enum": ["b", "a"]}, "b"),
        ({"enum": ["b", None]}, None),
        ({"const": 4}, 4),
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, None),
        ({"anyOf": [{"type": "string"}, {"type": "integer"}]}, ""),
        ({"$ref": "#/$defs/A", "$defs": {"A": {"type": "array"}}}, []),
        (
            {
                "type": "object",
                "properties": {
                    "a": {"type": "string"},
                    "b": {"type": "integer", "default": 3},
                    "c": {"type": "string"},
                },
                "required": ["a"],
            },
            {"a": "", "b": 3},
        ),
    ],
)
def test_emptiest_value(schema, value):
    """Default, else null if allowed, the first enum value, the zero of the type, or required and defaulted fields."""
    assert empty_value(schema) == value
    assert Variable(schema=schema).value == value


def test_model_with_defaults_is_made_by_its_class():
    """All fields with defaults: the JSON of `Model()`, factories included."""

    class Plan(sm.DataModel):
        steps: list[str] = ["think"]
        note: str | None = None

    assert Variable(data_model=Plan).value == {"steps": ["think"], "note": None}


def test_an_emptiest_value_that_is_none_is_refused():
    """The first value is validated: a minimum above zero needs a value of its own."""
    with pytest.raises(sm.errors.SchemaError):
        Variable(schema={"type": "integer", "minimum": 1})


def test_recursive_schema_ends():
    """A reference that leads to itself does not hang."""
    schema = {
        "type": "object",
        "properties": {"next": {"$ref": "#"}},
        "required": ["next"],
    }
    with pytest.raises(sm.errors.SchemaError):
        Variable(schema=schema)
