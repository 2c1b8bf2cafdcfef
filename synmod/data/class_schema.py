"""The schema of a pydantic class, asked once and kept with the class, and the JSON of its instances."""

from __future__ import annotations

from math import isfinite
from typing import Any, Final, NamedTuple

from pydantic import BaseModel, RootModel
from pydantic.errors import PydanticUndefinedAnnotation, PydanticUserError
from pydantic_core import PydanticSerializationError

from synmod.data.declared_fields import has_own_serializer, name_of_field, refuse_unsound_fields
from synmod.data.pydantic_schema import UnwritableField, written_schema
from synmod.data.schema import Schema, schema_from
from synmod.data.validate import problems
from synmod.errors import DataError, SchemaError
from synmod.leaves.frozen import FrozenDict, depth_of, frozen, frozen_dict

_KEPT: Final = "__synmod_declared__"

_PLAIN_INT: Final = 10**18


class Declared(NamedTuple):
    """What is known of a class: its schema, and whether every dump must be checked against it."""

    schema: Schema
    checks_dumps: bool


def schema_of_class(cls: type[BaseModel]) -> Schema:
    """Give the schema of a pydantic class; after the first time one dictionary read.

    Raises:
        SchemaError: The class cannot be written as a schema, or breaks a rule of data models. Names the field.
    """
    kept = cls.__dict__.get(_KEPT)
    return (kept or _declared(cls)).schema


def dump(instance: BaseModel) -> FrozenDict:
    """Give the JSON of an instance by alias, None and defaults kept, frozen.

    Raises:
        DataError: A field was edited in place to what its schema does not allow, or has no JSON.
        SchemaError: The class breaks a rule of data models.
    """
    return dump_and_schema(instance)[0]


def dump_and_schema(instance: BaseModel) -> tuple[FrozenDict, Schema]:
    """Give the JSON of an instance, and the schema of its class. Hot."""
    cls = type(instance)
    schema, checks = cls.__dict__.get(_KEPT) or _declared(cls)
    try:
        # round_trip leaves out computed fields, at every depth.
        plain = instance.__pydantic_serializer__.to_python(
            instance, mode="json", by_alias=True, round_trip=True, warnings=False
        )
    except PydanticSerializationError as error:
        raise DataError(f"{cls.__name__}: has no JSON: {error}") from error
    if not checks and _is_flat(plain):
        return frozen_dict(plain), schema
    json = frozen(plain)
    if checks or depth_of(json) > 1:
        _check(cls, schema, json)
    return json, schema


def _is_flat(plain: Any) -> bool:
    """Tell whether a dump holds scalars only, of the kind that need no further look."""
    for value in plain.values():
        kind = type(value)
        if kind is str:
            if not value.isascii():
                return False
        elif kind is int:
            if not -_PLAIN_INT < value < _PLAIN_INT:
                return False
        elif kind is float:
            if not isfinite(value):
                return False
        elif value is not None and kind is not bool:
            return False
    return True


def _check(cls: type[BaseModel], schema: Schema, json: FrozenDict) -> None:
    """Refuse an instance that was edited in place to something else (DataError)."""
    found = problems(schema, json)
    if found:
        faults = "; ".join(f"{p.pointer or '(root)'}: wanted {p.wanted}, got {p.got}" for p in found)
        raise DataError(f"{cls.__name__}: the instance does not satisfy its own schema: {faults}")


def _declared(cls: type[BaseModel]) -> Declared:
    """Ask pydantic, check the rules, and keep the result with the class."""
    try:
        if not cls.__pydantic_complete__:
            cls.model_rebuild()
        plain = written_schema(cls)
        refuse_unsound_fields(cls, plain)
    except PydanticUndefinedAnnotation as error:
        raise SchemaError(
            f"{cls.__name__}: the name {error.name!r} in its annotations is not defined yet: define it first."
        ) from error
    except UnwritableField as error:
        raise SchemaError(f"{name_of_field(cls, error.field)}: it has no JSON Schema: {error}") from error
    except PydanticUserError as error:
        raise SchemaError(f"{cls.__name__}: {error.message}") from error
    schema = schema_from(plain, root="any")
    kept = Declared(schema, _must_check(cls))
    setattr(cls, _KEPT, kept)
    return kept


def _must_check(cls: type[BaseModel]) -> bool:
    """Tell whether each dump must be checked: user code writes some of it, its keys are free, or it is no object."""
    return has_own_serializer(cls) or cls.model_config.get("extra") == "allow" or issubclass(cls, RootModel)
