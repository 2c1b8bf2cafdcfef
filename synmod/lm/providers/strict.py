"""The strict subset: schemas that providers can hold a model to, word for word. Nothing is rewritten to fit."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from synmod.leaves.frozen import Json, is_object

__all__ = ["is_strict"]

_KNOWN: Final = frozenset({
    "$defs", "$ref", "additionalProperties", "anyOf", "const", "description", "enum", "exclusiveMaximum",
    "exclusiveMinimum", "format", "items", "maxItems", "maximum", "minItems", "minimum", "multipleOf", "pattern",
    "properties", "required", "title", "type",
})  # fmt: skip
_MOST_PROPERTIES: Final = 100
_DEEPEST: Final = 5


def is_strict(schema: Json) -> bool:
    """Tell whether a schema lies in the strict subset: an object whose every object is closed and whole."""
    if not is_object(schema) or schema.get("type") != "object" or "anyOf" in schema:
        return False
    properties = 0
    pending: list[tuple[Any, int]] = [(schema, 0)]
    while pending:
        part, depth = pending.pop()
        if not is_object(part) or depth > _DEEPEST or not part.keys() <= _KNOWN:
            return False
        if "$ref" in part and len(part) > 1:
            return False
        if "properties" in part or part.get("type") == "object":
            named = part.get("properties", {})
            if part.get("additionalProperties") is not False or set(part.get("required", ())) != set(named):
                return False
            properties += len(named)
        pending.extend((inner, depth + deeper) for inner, deeper in _inside(part))
    return properties <= _MOST_PROPERTIES


def _inside(part: dict[str, Any]) -> Iterator[tuple[Any, int]]:
    """The schemas inside a schema, and how much deeper a value of theirs nests."""
    yield from ((inner, 1) for inner in part.get("properties", {}).values())
    yield from ((inner, 0) for inner in part.get("$defs", {}).values())
    yield from ((inner, 0) for inner in part.get("anyOf", ()))
    if "items" in part:
        yield part["items"], 1
