"""Collecting: what a module gave for each item of a list, and what failed, as data."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from synmod.data import ops
from synmod.data.models.declare import schema_of
from synmod.data.models.symbol import symbol
from synmod.data.models.value import JsonDataModel, wrap
from synmod.data.schemas.parts import parts_of
from synmod.data.schemas.schema import Schema, trusted_schema
from synmod.flow.pool import Failed
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


def common_schema(values: Iterable[Any]) -> Schema | None:
    """Give the one schema of several values: theirs if they agree, else `U` of them; None without any."""
    schemas = list({id(schema): schema for schema in map(schema_of, values)}.values())
    if len(schemas) > 1:
        return schema_of(ops.logical_xor(*map(symbol, schemas)))
    return schemas[0] if schemas else None


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
