"""The schema of a pydantic class, asked once and kept with the class, and the JSON of its instances."""

from __future__ import annotations

from typing import Any, Final

from pydantic import BaseModel
from pydantic.errors import PydanticUndefinedAnnotation, PydanticUserError
from pydantic_core import PydanticSerializationError

from synmod.data.schemas.rooted import properties_of
from synmod.data.schemas.schema import Schema, schema_from, trusted_schema
from synmod.data.validation.validate import problems
from synmod.errors import DataError, SchemaError
from synmod.leaves.frozen import FrozenDict, frozen, is_object

from .declared_fields import has_own_serializer, name_of_field, refuse_unsound_fields
from .dumps import frozen_fields
from .in_place import EditedField, written_names
from .pydantic_schema import UnwritableField, written_schema

_KEPT: Final = "__synmod_declared__"


class Declared:
    """What is known of a class: its schema, and which dumps must be checked.

    Attributes:
        schema: The schema.
        checks_dumps: Whether every dump is checked whole.
        names: Names of fields by the keys under which they are written.
        fields: Checks of fields whose values could be edited in place, as far as they were met.
    """

    __slots__ = ("checks_dumps", "fields", "names", "schema")

    def __init__(self, schema: Schema, checks_dumps: bool, names: dict[str, str]) -> None:
        self.schema = schema
        self.checks_dumps = checks_dumps
        self.names = names
        self.fields: dict[str, EditedField] = {}

    def field(self, key: str) -> EditedField:
        """Give the check of one field."""
        known = self.fields.get(key)
        if known is None:
            field = properties_of(self.schema)[key]
            definitions = self.schema.get("$defs")
            whole = {**field, "$defs": definitions} if definitions and is_object(field) else field
            known = self.fields[key] = EditedField(trusted_schema(whole))
        return known


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
    declared = cls.__dict__.get(_KEPT) or _declared(cls)
    try:
        # round_trip leaves out computed fields, at every depth.
        plain = instance.__pydantic_serializer__.to_python(
            instance, mode="json", by_alias=True, round_trip=True, warnings=False
        )
    except PydanticSerializationError as error:
        raise DataError(f"{cls.__name__}: has no JSON: {error}") from error
    if declared.checks_dumps:
        json = frozen(plain)
        _check(cls, declared.schema, json)
        return json, declared.schema
    json, nested = frozen_fields(plain)
    for key in nested:  # checked when they were assigned, but not when they were edited in place
        fault = declared.field(key).fault(instance.__dict__.get(declared.names[key]), json[key], key)
        if fault is not None:
            _check(cls, declared.schema, json)
            raise DataError(f"{cls.__name__}: {_EDITED}: {fault}: a bool stands where another type was declared")
    return json, declared.schema


_EDITED: Final = "the instance does not satisfy its own schema"


def _check(cls: type[BaseModel], schema: Schema, json: Any) -> None:
    """Refuse an instance that was edited in place to something else (DataError)."""
    found = problems(schema, json)
    if found:
        faults = "; ".join(f"{p.pointer or 'the whole'}: wanted {p.wanted}, got {p.got}" for p in found)
        raise DataError(f"{cls.__name__}: {_EDITED}: {faults}")


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
    kept = Declared(schema, _must_check(cls), written_names(cls))
    setattr(cls, _KEPT, kept)
    return kept


def _must_check(cls: type[BaseModel]) -> bool:
    """Tell whether each dump must be checked whole: nothing else guarantees that it is what the schema says."""
    config = cls.model_config
    return (
        has_own_serializer(cls)
        or config.get("extra") == "allow"
        or not config.get("validate_assignment")
        or cls.__pydantic_root_model__  # to name `RootModel` would build that class with every `import synmod`
    )
