"""The schema that a JSON value has by itself: as narrow as its types, no narrower."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from synmod.data import trusted_schema

if TYPE_CHECKING:
    from synmod.data import Schema
    from synmod.leaves.frozen import Json

_TYPES: Final = {bool: "boolean", int: "integer", float: "number", str: "string", type(None): "null"}


def inferred_schema(json: Json) -> Schema:
    """Give the schema of an object: its fields with their types, all required, no others."""
    return trusted_schema(_schema(json))


def _schema(json: Json) -> dict[str, Any]:
    """The schema of one value."""
    if isinstance(json, dict):
        return {
            "type": "object",
            "properties": {name: _schema(value) for name, value in json.items()},  # pyright: ignore[reportUnknownVariableType]
            "required": list(json),  # pyright: ignore[reportUnknownArgumentType]
            "additionalProperties": False,
        }
    if isinstance(json, list):
        kinds = [_schema(item) for item in json]  # pyright: ignore[reportUnknownVariableType]
        distinct = [kind for place, kind in enumerate(kinds) if kind not in kinds[:place]]
        items = distinct[0] if len(distinct) == 1 else {"anyOf": distinct}
        return {"type": "array", "items": items} if distinct else {"type": "array"}
    return {"type": _TYPES[type(json)]}
