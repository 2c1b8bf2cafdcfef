"""The schema of a pydantic class, asked once and kept with the class, and the JSON of its instances."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from pydantic import BaseModel
from pydantic.errors import PydanticInvalidForJsonSchema, PydanticUndefinedAnnotation, PydanticUserError
from pydantic_core import PydanticSerializationError

from synmod.data.declared_fields import has_own_serializer, refuse_unsound_fields
from synmod.data.pydantic_schema import written_schema
from synmod.data.schema import Schema, schema_from
from synmod.data.validate import problems
from synmod.errors import DataError, SchemaError
from synmod.leaves.frozen import FrozenDict, frozen

_KEPT: Final = "__synmod_declared__"


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
    cls = type(instance)
    schema, checks = cls.__dict__.get(_KEPT) or _declared(cls)
    try:
        # round_trip leaves out computed fields, at every depth.
        plain = instance.__pydantic_serializer__.to_python(
            instance, mode="json", by_alias=True, round_trip=True, warnings="none"
        )
    except PydanticSerializationError as error:
        raise DataError(f"{cls.__name__}: has no JSON: {error}") from error
    json = frozen(plain)
    if checks or any(type(value) in _CONTAINERS for value in plain.values()):
        found = problems(schema, json)
        if found:
            faults = "; ".join(f"{p.pointer or '(root)'}: wanted {p.wanted}, got {p.got}" for p in found)
            raise DataError(f"{cls.__name__}: the instance no longer satisfies its own schema: {faults}")
    return json


_CONTAINERS: Final = (dict, list)


def _declared(cls: type[BaseModel]) -> Declared:
    """Ask pydantic, check the rules, and keep the result with the class."""
    try:
        if not cls.__pydantic_complete__:
            cls.model_rebuild()
        plain = written_schema(cls)
    except PydanticUndefinedAnnotation as error:
        raise SchemaError(
            f"{cls.__name__}: the name {error.name!r} in its annotations is not defined yet: define it first."
        ) from error
    except PydanticInvalidForJsonSchema as error:
        raise SchemaError(f"{cls.__name__}: a field has no JSON Schema: {error.message}") from error
    except PydanticUserError as error:
        raise SchemaError(f"{cls.__name__}: {error.message}") from error
    schema = schema_from(plain, root="any")
    refuse_unsound_fields(cls, schema)
    kept = Declared(schema, has_own_serializer(cls))
    setattr(cls, _KEPT, kept)
    return kept
