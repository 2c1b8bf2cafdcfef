"""The keywords of JSON Schema 2020-12: which hold subschemas, which stay in place, and which only say something."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

Step = str | int

ONE_SUBSCHEMA: Final = frozenset(
    {
        "additionalProperties",
        "contains",
        "contentSchema",
        "else",
        "if",
        "items",
        "not",
        "propertyNames",
        "then",
        "unevaluatedItems",
        "unevaluatedProperties",
    }
)
"""Keywords whose value is a schema."""

SUBSCHEMA_LISTS: Final = frozenset({"allOf", "anyOf", "oneOf", "prefixItems"})
"""Keywords whose value is a list of schemas."""

SUBSCHEMA_MAPS: Final = frozenset({"$defs", "definitions", "dependentSchemas", "patternProperties", "properties"})
"""Keywords whose value is an object of schemas."""

IN_PLACE: Final = frozenset({"allOf", "anyOf", "dependentSchemas", "else", "if", "not", "oneOf", "then"})
"""Keywords whose subschemas are applied to the very value that the schema is applied to; `$ref` is one too."""

ANNOTATIONS: Final = frozenset(
    {
        "$comment",
        "contentEncoding",
        "contentMediaType",
        "contentSchema",
        "default",
        "deprecated",
        "description",
        "discriminator",
        "examples",
        "format",
        "readOnly",
        "title",
        "writeOnly",
    }
)
"""Keywords that say something about a value and ask nothing of it."""

ASSERTIONS: Final = frozenset(
    {
        "$ref",
        "additionalProperties",
        "allOf",
        "anyOf",
        "const",
        "contains",
        "dependentRequired",
        "dependentSchemas",
        "else",
        "enum",
        "exclusiveMaximum",
        "exclusiveMinimum",
        "if",
        "items",
        "maxContains",
        "maxItems",
        "maxLength",
        "maxProperties",
        "maximum",
        "minContains",
        "minItems",
        "minLength",
        "minProperties",
        "minimum",
        "multipleOf",
        "not",
        "oneOf",
        "pattern",
        "patternProperties",
        "prefixItems",
        "properties",
        "propertyNames",
        "required",
        "then",
        "type",
        "unevaluatedItems",
        "unevaluatedProperties",
        "uniqueItems",
    }
)
"""Keywords that ask something of a value."""

DEFINITIONS: Final = frozenset({"$defs", "definitions"})
"""Keywords that only hold what references name."""


_HOLD_SUBSCHEMAS: Final = frozenset({*ONE_SUBSCHEMA, *SUBSCHEMA_LISTS, *SUBSCHEMA_MAPS})


def subschemas(schema: Mapping[str, Any]) -> Iterator[tuple[tuple[Step, ...], Any]]:
    """Give every direct subschema of a well-formed schema, with the steps to it, in document order."""
    if _HOLD_SUBSCHEMAS.isdisjoint(schema):
        return
    for keyword, value in schema.items():
        if keyword in ONE_SUBSCHEMA:
            yield (keyword,), value
        elif keyword in SUBSCHEMA_LISTS:
            for index, part in enumerate(value):
                yield (keyword, index), part
        elif keyword in SUBSCHEMA_MAPS:
            for name, part in value.items():
                yield (keyword, name), part
