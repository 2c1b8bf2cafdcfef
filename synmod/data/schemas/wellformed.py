"""What each keyword of a schema may hold; a schema that holds something else says nothing that could be checked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from synmod.errors import SchemaError
from synmod.leaves.frozen import is_array, is_object
from synmod.leaves.names import pointer

from .keywords import ONE_SUBSCHEMA, SUBSCHEMA_LISTS, SUBSCHEMA_MAPS, Step

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

TYPES: Final = ("array", "boolean", "integer", "null", "number", "object", "string")
"""The names that `type` may hold."""

_SHOWN = 80


def check_wellformed(schema: Any, steps: Sequence[Step]) -> None:
    """Check one schema, its subschemas apart.

    Raises:
        SchemaError: It is neither an object nor a boolean, or a keyword holds what it cannot hold. Names the pointer.
    """
    if not is_object(schema):
        if type(schema) is not bool:
            raise SchemaError(f"{at(steps)}: {_shown(schema)} is no schema: write an object, or true for anything.")
        return
    for keyword, value in schema.items():
        shape = _SHAPES.get(keyword)
        if shape is not None and not shape[0](value):
            hint = _HINTS[keyword](value) if keyword in _HINTS else ""
            wanted = f"{shape[1]} is wanted{hint and '; ' + hint}"
            raise SchemaError(f"{at((*steps, keyword))}: {_shown(value)} cannot stand here: {wanted}.")


def at(steps: Sequence[Step]) -> str:
    """Name a place in a schema: its JSON Pointer."""
    return f"Schema at {pointer(steps) or 'its root'}"


def is_schema(value: Any) -> bool:
    """Tell whether a value can be a schema: an object or a boolean."""
    return is_object(value) or type(value) is bool


def is_number(value: Any) -> bool:
    """Tell whether a value is a number of JSON, which True is not."""
    return type(value) is int or type(value) is float


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


def _is_positive(value: Any) -> bool:
    return is_number(value) and value > 0


def _is_count(value: Any) -> bool:
    return is_number(value) and value >= 0 and value == int(value)


def _is_text(value: Any) -> bool:
    return type(value) is str


def _is_flag(value: Any) -> bool:
    return type(value) is bool


def _is_list(value: Any) -> bool:
    return is_array(value)


def _is_names(value: Any) -> bool:
    return is_array(value) and all(map(_is_text, value)) and len(set(value)) == len(value)


def _is_names_by_name(value: Any) -> bool:
    return is_object(value) and all(map(_is_names, value.values()))


def _is_schemas(value: Any) -> bool:
    return is_array(value) and bool(value) and all(map(is_schema, value))


def _is_schemas_by_name(value: Any) -> bool:
    return is_object(value) and all(map(is_schema, value.values()))


def _is_type(value: Any) -> bool:
    if is_array(value):
        return _is_names(value) and bool(value) and all(name in TYPES for name in value)
    return _is_text(value) and value in TYPES


def _hint_items(value: Any) -> str:
    return "a list of schemas is written 'prefixItems' today" if is_array(value) else ""


def _hint_bound(value: Any) -> str:
    return "the bound itself is written here today" if _is_flag(value) else ""


_SHAPES: Final[Mapping[str, tuple[Callable[[Any], bool], str]]] = {
    **dict.fromkeys(ONE_SUBSCHEMA, (is_schema, "a schema")),
    **dict.fromkeys(SUBSCHEMA_LISTS, (_is_schemas, "a list of one or more schemas")),
    **dict.fromkeys(SUBSCHEMA_MAPS, (_is_schemas_by_name, "an object of schemas")),
    **dict.fromkeys(("exclusiveMaximum", "exclusiveMinimum", "maximum", "minimum"), (is_number, "a number")),
    **dict.fromkeys(
        (
            "maxContains",
            "maxItems",
            "maxLength",
            "maxProperties",
            "minContains",
            "minItems",
            "minLength",
            "minProperties",
        ),
        (_is_count, "a whole number from 0"),
    ),
    **dict.fromkeys(
        ("$comment", "$ref", "contentEncoding", "contentMediaType", "description", "format", "pattern", "title"),
        (_is_text, "a string"),
    ),
    **dict.fromkeys(("deprecated", "readOnly", "uniqueItems", "writeOnly"), (_is_flag, "true or false")),
    **dict.fromkeys(("enum", "examples"), (_is_list, "a list")),
    "dependentRequired": (_is_names_by_name, "an object of lists of names"),
    "multipleOf": (_is_positive, "a number above 0"),
    "required": (_is_names, "a list of names, each once"),
    "type": (_is_type, f"one or a list of {', '.join(TYPES)}"),
}

_HINTS: Final[Mapping[str, Callable[[Any], str]]] = {
    "items": _hint_items,
    "exclusiveMaximum": _hint_bound,
    "exclusiveMinimum": _hint_bound,
}
