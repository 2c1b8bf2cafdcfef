"""Typed skips: a value must satisfy what its producer declares, and give what its consumer asks for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from synmod.data import (
    DataModel,
    JsonDataModel,
    Schema,
    SymbolicDataModel,
    includes,
    is_subschema,
    to_value,
    validate,
    wrap,
)
from synmod.errors import SchemaError
from synmod.leaves.frozen import FrozenDict, frozen, is_object

if TYPE_CHECKING:
    from synmod.module import DeclaredSkips
    from synmod.skip.commands import Command
    from synmod.skip.layers import Layer
    from synmod.skip.slots import Slot


def admitted(command: Command, layer: Layer, skips: DeclaredSkips, value: Any) -> Any:
    """Give the value to be stashed; plain JSON of a typed skip becomes data.

    Raises:
        SchemaError: It does not satisfy the schema of a typed skip.
        DataError: It is no JSON.
    """
    schema = skips.schemas.get(command._name)
    if schema is None or value is None:
        return value
    place = f"{layer.label}: {command!r}"
    given = _schema_of(value)
    if given is not None:
        if given is schema or is_subschema(given, schema):
            return value
        if isinstance(value, SymbolicDataModel):
            raise SchemaError(f"{place}: the skip is declared as {_title(schema)}, got {_title(given)}.")
    json: Any = frozen(value)
    validate(schema, json, place)
    is_plain = given is None and isinstance(json, FrozenDict)
    return wrap(json, schema, skips.models.get(command._name)) if is_plain else value


def hold_to_declared(command: Command, layer: Layer, slot: Slot, schema: Schema) -> None:
    """Check that a value has what its consumer asks for; what more it has is welcome.

    Raises:
        SchemaError: It has not.
    """
    given = _schema_of(slot.value)
    if slot.value is None or (given is not None and (given is schema or includes(given, schema))):
        return
    place = f"{layer.label}: {command!r}, stashed by {slot.producer!r}"
    lacking = lacks(given, schema) if given is not None else ()
    if lacking:
        raise SchemaError(f"{place}: the field {', '.join(map(repr, lacking))} is missing, which {_title(schema)} has.")
    json = frozen(slot.value)
    known = schema.get("properties")
    if known and is_object(json):
        json = frozen({key: part for key, part in json.items() if key in known})
    validate(schema, json, place)


def lacks(given: Mapping[str, Any], asked: Mapping[str, Any]) -> tuple[str, ...]:
    """The fields that `asked` requires and `given` does not."""
    there = given.get("required", ())
    return tuple(name for name in asked.get("required", ()) if name not in there)


def _schema_of(value: Any) -> Schema | None:
    """The schema of data; None for plain JSON."""
    if isinstance(value, DataModel):
        value = to_value(value)
    return value._schema if isinstance(value, JsonDataModel | SymbolicDataModel) else None


def _title(schema: Mapping[str, Any]) -> str:
    fields = ", ".join(schema.get("properties", {}))
    return f"{schema.get('title', 'a value')}({fields})"


def misfit_of(given: Schema, asked: Schema) -> str | None:
    """What a consumer asks for and a producer does not give: fields, or the whole; None where all is there."""
    if given is asked or is_subschema(given, asked):
        return None
    if _is_object(given) and _is_object(asked):
        if includes(given, asked):
            return None
        lacking = lacks(given, asked)
        if not lacking:
            there, wanted = given.get("properties", {}), asked.get("properties", {})
            lacking = tuple(name for name in wanted if name in there and there[name] != wanted[name])
        return f"the field {', '.join(map(repr, lacking))}" if lacking else _title(asked)
    return _title(asked)


def _is_object(schema: Schema) -> bool:
    return schema.get("type") == "object" or "properties" in schema
