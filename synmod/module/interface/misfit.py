"""The error of an input that misses the contract: both sides, the fields that differ, and what demanded it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from synmod.data import DataModel, Schema
from synmod.errors import SchemaError
from synmod.flow import LEAF, MAPPING, kind_of
from synmod.module.interface.nests import is_datum, title_of
from synmod.module.interface.where import kind_text, where

if TYPE_CHECKING:
    from synmod.module.module import Module


class Demand(NamedTuple):
    """One leaf to be checked: what is demanded, by what, and the leaf it is demanded of.

    A `model` is demanded to be contained: further fields are welcome. Without one the leaf must be of the schema.
    """

    schema: Schema
    model: type[DataModel] | None
    origin: str
    place: str
    leaf: Any


def other_structure(module: Module, place: str, got: Any, wanted: str, origin: str) -> SchemaError:
    """The error of an argument that is no nest of the kind demanded."""
    kind = "" if kind_of(got) == LEAF else f"{kind_text(got)} "
    return SchemaError(
        f"{where(module)}: {place}: got {kind}{shape(got)}, wanted {wanted}, demanded by {origin}: another structure."
    )


def misfit(module: Module, demand: Demand, cause: SchemaError | None = None) -> SchemaError:
    """The error of a leaf that misses its demand.

    Args:
        module: The module that was called.
        demand: What was demanded of the leaf.
        cause: What validating its value said.
    """
    wanted, got = demand.schema, demand.leaf._schema
    lines = [
        f"{where(module)}: {demand.place}: got {_fields(got)}, wanted {_fields(wanted)}, demanded by {demand.origin}.",
        *_differences(wanted, got, closed=demand.model is None),
    ]
    if cause is not None and cause.errors:
        lines += [f"  {p.pointer or '(root)'}: wanted {p.wanted}, got {p.got}" for p in cause.errors]
    return SchemaError("\n".join(lines), cause.errors if cause is not None else ())


def shape(nest: Any) -> str:
    """Show a nest by the titles of its leaves."""
    if nest is None:
        return "None"
    kind = kind_of(nest)
    if kind == LEAF:
        return title_of(nest) if is_datum(nest) else type(nest).__name__
    if kind == MAPPING:
        return "{" + ", ".join(f"{key!r}: {shape(item)}" for key, item in nest.items()) + "}"
    inside = ", ".join(map(shape, cast("Sequence[Any]", nest)))
    return f"[{inside}]" if isinstance(nest, list) else f"({inside})"


def _fields(schema: Mapping[str, Any]) -> str:
    return f"{schema.get('title', 'a value')}({', '.join(schema.get('properties', {}))})"


def _differences(wanted: Schema, got: Schema, *, closed: bool) -> Iterator[str]:
    declared: Mapping[str, Any] = wanted.get("properties", {})
    present: Mapping[str, Any] = got.get("properties", {})
    missing = [name for name in declared if name not in present and name in wanted.get("required", ())]
    unexpected = [name for name in present if name not in declared]
    other = [
        f"{name!r} is {_type_of(present[name])}, wanted {_type_of(declared[name])}"
        for name in declared
        if name in present and _type_of(present[name]) != _type_of(declared[name])
    ]
    if missing:
        yield f"  missing: {', '.join(map(repr, missing))}"
    if unexpected and closed and wanted.get("additionalProperties") is False:
        yield f"  unexpected: {', '.join(map(repr, unexpected))}"
    if other:
        yield f"  other type: {'; '.join(other)}"


def _type_of(schema: Any) -> Any:
    return schema.get("type", "other") if isinstance(schema, Mapping) else "other"  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
