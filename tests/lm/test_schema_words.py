"""Fields in words: what a model is told of schemas."""

from synmod.lm import default_instructions, input_fields, resolve_ref


def test_types_are_said_in_words():
    """Lists, enums, alternatives and unknown types read as a person would say them."""
    schema = {
        "properties": {
            "a": {"type": "array", "items": {"type": "integer"}},
            "b": {"enum": ["x", 1, None]},
            "c": {"const": "only"},
            "d": {"type": ["string", "null"]},
            "e": {},
            "f": True,
            "g": {"anyOf": [{"type": "array", "items": {"type": "string"}}, {"type": "null"}]},
        }
    }
    assert input_fields(schema).split("\n") == [
        "- a (list of integer)",
        '- b ("x" or 1 or null)',
        '- c ("only")',
        "- d (string or null)",
        "- e (any value)",
        "- f (any value)",
        "- g (list of string or null)",
    ]


def test_nested_fields_are_listed_below_their_field():
    """Descriptions of nested fields reach the model too; an object inside itself is listed once."""
    schema = {
        "properties": {"doc": {"$ref": "#/$defs/Doc", "description": "the source"}},
        "$defs": {
            "Doc": {
                "type": "object",
                "description": "A document.",
                "properties": {
                    "title": {"type": "string", "description": "its title"},
                    "parts": {"type": "array", "items": {"$ref": "#/$defs/Doc"}},
                },
            }
        },
    }
    assert input_fields(schema).split("\n") == [
        "- doc (object): the source",
        "  - title (string): its title",
        "  - parts (list of object)",
    ]


def test_recursive_types_end():
    """A type that is its own alternative or its own item is named, not unrolled."""
    schema = {
        "properties": {"json": {"$ref": "#/$defs/J"}},
        "$defs": {"J": {"anyOf": [{"type": "string"}, {"type": "array", "items": {"$ref": "#/$defs/J"}}]}},
    }
    assert input_fields(schema) == "- json (string or list of any value)"


def test_default_instructions_come_from_docstring_and_fields():
    """A generator without instructions says what its output model says of itself."""
    schema = {
        "description": "A verdict.",
        "properties": {"why": {"description": "the reason"}, "score": {"type": "number"}, "label": {"enum": ["a"]}},
    }
    assert default_instructions(schema) == "A verdict.\n\nGive the fields `why` (the reason), `score` and `label`."
    assert default_instructions(None) == ""
    assert default_instructions({"type": "object"}) == ""


def test_references_that_lead_nowhere_demand_nothing():
    """Foreign schema text never breaks the reader."""
    assert resolve_ref({"$ref": "#/$defs/X"}, {}) == {}
    assert resolve_ref({"$ref": "#/a/7"}, {"a": [1]}) == {}
    assert resolve_ref({"$ref": "#/a"}, {"a": {"$ref": "#/a"}}) == {}
    assert resolve_ref({"allOf": [{"$ref": "#/a~1b"}]}, {"a/b": {"type": "null"}}) == {"type": "null"}
