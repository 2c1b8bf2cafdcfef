"""Uniting: the one schema of what may be any of several things."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from synmod.data import ops, schema_of, symbol
from synmod.errors import SchemaError
from synmod.flow import aligned, leaves, pack

if TYPE_CHECKING:
    from synmod.data import Schema


def common_schema(values: Iterable[Any]) -> Schema | None:
    """Give the one schema of several values: theirs if they agree, else `U` of them; None without any."""
    schemas = list({id(schema): schema for schema in map(schema_of, values)}.values())
    if len(schemas) > 1:
        return schema_of(ops.logical_xor(*map(symbol, schemas)))
    return schemas[0] if schemas else None


def any_of(kind: str, outputs: Sequence[Any]) -> Any:
    """Give what stands for any one of several symbols, or nests of symbols: the common schema of each leaf.

    Raises:
        SchemaError: The nests differ in structure.
    """
    first, *others = outputs
    columns = [leaves(first)]
    for other in others:
        pairs = aligned(first, other)
        if pairs is None:
            raise SchemaError(f"{kind}: its members give {first!r:.200} and {other!r:.200}, which differ in structure.")
        columns.append([leaf for _, _, leaf in pairs])
    return pack(first, (_any_of(column) for column in zip(*columns, strict=True)))


def _any_of(symbols: tuple[Any, ...]) -> Any:
    """One symbol for those that are there; None where none is."""
    schema = common_schema(each for each in symbols if each is not None)
    return None if schema is None else symbol(schema)
