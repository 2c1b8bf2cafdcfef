"""The strict subset: told word for word, never reached by rewriting."""

import pytest

from synmod.lm.chat_completions import is_strict

CLOSED = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"], "additionalProperties": False}


@pytest.mark.parametrize(
    "schema",
    [
        CLOSED,
        {"type": "object", "properties": {}, "required": [], "additionalProperties": False},
        CLOSED | {"title": "T", "description": "d"},
        CLOSED | {"properties": {"a": {"anyOf": [{"type": "string"}, {"type": "null"}]}}},
        CLOSED | {"properties": {"a": {"type": "array", "items": CLOSED, "maxItems": 3}}},
        CLOSED | {"properties": {"a": {"$ref": "#/$defs/B"}}, "$defs": {"B": CLOSED}},
        CLOSED | {"properties": {"a": {"type": "string", "enum": ["x", "y"]}}},
        CLOSED | {"properties": {"a": {"type": "string", "enum": [f"c{number}" for number in range(1_000)]}}},
        CLOSED | {"properties": {"a": {"type": ["string", "null"], "format": "date-time"}}},
        CLOSED | {"properties": {"a": {"type": "array", "items": {"$ref": "#"}}}},
    ],
)
def test_closed_and_whole_objects_are_strict(schema):
    """Every object names all its properties, requires them and allows no other."""
    assert is_strict(schema)


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "string"},
        {"type": "array", "items": CLOSED},
        {"anyOf": [CLOSED]},
        CLOSED | {"additionalProperties": True},
        CLOSED | {"required": []},
        {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]},
        CLOSED | {"properties": {"a": {"type": "object"}}},
        CLOSED | {"properties": {"a": {"type": "string", "minLength": 1}}},
        CLOSED | {"properties": {"a": {"type": "string", "default": "x"}}},
        CLOSED | {"properties": {"a": {"oneOf": [{"type": "string"}]}}},
        CLOSED | {"properties": {"a": {"$ref": "#/$defs/B", "description": "d"}}, "$defs": {"B": CLOSED}},
        CLOSED | {"properties": {"a": {"allOf": [CLOSED]}}},
        CLOSED | {"properties": {"a": True}},
        CLOSED | {"properties": {"a": {}}},
        CLOSED | {"properties": {"a": {"title": "A"}}},
        CLOSED | {"properties": {"a": {"enum": ["x", 1]}}},
        CLOSED | {"properties": {"a": {"type": "array"}}},
        CLOSED | {"properties": {"a": {"type": "array", "items": {}}}},
        CLOSED | {"properties": {"a": {"type": "object", "additionalProperties": {"type": "integer"}}}},
        CLOSED | {"properties": {"a": {"type": "object", "patternProperties": {"x": {"type": "string"}}}}},
        CLOSED | {"properties": {"a": {"type": "array", "prefixItems": [{"type": "string"}]}}},
        CLOSED | {"properties": {"a": {"type": "array", "items": {"type": "string"}, "uniqueItems": True}}},
        CLOSED | {"properties": {"a": {"type": ["array", "null"]}}},
        CLOSED | {"properties": {"a": {"type": ["object", "null"]}}},
        CLOSED | {"properties": {"a": {"type": "string", "pattern": "^(?!x)"}}},
        CLOSED | {"properties": {"a": {"type": "string", "format": "path"}}},
        CLOSED | {"properties": {"a": {"type": "string", "format": "binary"}}},
        CLOSED | {"properties": {"a": {"type": "string", "format": "uri"}}},
        CLOSED | {"properties": {"a": {"type": "string", "enum": [f"c{number}" for number in range(1_001)]}}},
        CLOSED | {"properties": {"a": {"type": "string", "enum": [f"{number:<60}" for number in range(300)]}}},
        CLOSED | {"properties": {"a": {"type": "string", "const": "x" * 120_000}}},
        CLOSED | {"properties": {"a": {"anyOf": [{"type": "string"}, {}]}}},
        CLOSED | {"$defs": {"B": {"type": "object"}}},
        True,
    ],
)
def test_anything_looser_is_not_strict(schema):
    """Where a provider could not hold the model to it, `strict` is not set."""
    assert not is_strict(schema)


def test_deep_and_wide_schemas_are_not_strict():
    """Providers limit depth and number of properties."""
    deep = {"type": "string"}
    for _ in range(7):
        deep = CLOSED | {"properties": {"a": deep}}
    names = [f"p{number}" for number in range(101)]
    wide = CLOSED | {"properties": dict.fromkeys(names, {"type": "null"}), "required": names}
    assert not is_strict(deep)
    assert not is_strict(wide)
