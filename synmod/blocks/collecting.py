"""Collecting: what a module gave for each item of a list, and what failed, as data."""

from __future__ import annotations

from typing import Any, Final

from synmod.blocks.uniting import common_schema
from synmod.data import JsonDataModel, Schema, parts_of, trusted_schema, wrap
from synmod.flow import Failed
from synmod.leaves.frozen import frozen

_ERROR: Final = {
    "anyOf": [
        {
            "additionalProperties": False,
            "properties": {"type": {"type": "string"}, "message": {"type": "string"}},
            "required": ["type", "message"],
            "type": "object",
        },
        {"type": "null"},
    ]
}


def collecting_schema(item: Schema | None) -> Schema:
    """Give the schema of `{"value": item or null, "error": null or {"type", "message"}}`; None for no item at all."""
    value: dict[str, Any] = {"type": "null"}
    definitions: dict[str, Any] = {}
    if item is not None:
        written = parts_of(item).schema
        value = {"anyOf": [{key: part for key, part in written.items() if key != "$defs"}, {"type": "null"}]}
        definitions = {"$defs": written["$defs"]} if "$defs" in written else {}
    return trusted_schema(
        {
            **definitions,
            "additionalProperties": False,
            "properties": {"value": value, "error": _ERROR},
            "required": ["value", "error"],
            "type": "object",
        }
    )


def collected(results: list[Any]) -> list[JsonDataModel[Any]]:
    """Turn results, None and `Failed` into data of one schema."""
    schema = collecting_schema(common_schema(x for x in results if x is not None and not isinstance(x, Failed)))
    return [wrap(frozen(_told(result)), schema) for result in results]


def _told(result: Any) -> dict[str, Any]:
    if isinstance(result, Failed):
        return {"value": None, "error": {"type": type(result.error).__name__, "message": str(result.error)}}
    return {"value": result, "error": None}
