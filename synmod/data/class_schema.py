"""The schema of a pydantic class, made once and kept with the class, and the JSON of its instances."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, get_args, get_origin

from pydantic import BaseModel, Secret, SecretBytes, SecretStr
from pydantic.errors import PydanticInvalidForJsonSchema, PydanticUndefinedAnnotation, PydanticUserError
from pydantic.json_schema import GenerateJsonSchema
from pydantic_core import PydanticSerializationError, core_schema

from synmod.errors import DataError, SchemaError
from synmod.leaves.frozen import FrozenDict, frozen

from .schema import Schema, schema_from
from .validation import is_valid, problems

_KEPT: Final = "__synmod_schema__"


def schema_of_class(cls: type[BaseModel]) -> Schema:
    """Return the schema of a pydantic class; after the first time one dictionary read.

    Raises:
        SchemaError: The class cannot be written as a schema, or breaks a rule of data models. Names the field.
    """
    return cls.__dict__.get(_KEPT) or _kept_schema(cls)


def dump(instance: BaseModel) -> FrozenDict:
    """Return the JSON of an instance by alias, None and defaults kept, frozen. Hot.

    Raises:
        DataError: It has no JSON, or one that does not satisfy the schema of its class. Names the place.
        SchemaError: The class breaks a rule of data models.
    """
    cls = type(instance)
    schema = cls.__dict__.get(_KEPT) or _kept_schema(cls)
    try:
        # round_trip leaves out computed fields, at every depth
        plain = instance.__pydantic_serializer__.to_python(
            instance, mode="json", by_alias=True, round_trip=True, warnings=False
        )
    except (PydanticSerializationError, UnicodeDecodeError) as error:  # the latter of bytes in a field of Any
        raise DataError(f"{cls.__name__}: has no JSON: {error}") from error
    json = frozen(plain)
    if not is_valid(schema, json):
        faults = "; ".join(
            f"{p.pointer or 'the whole'}: wanted {p.wanted}, got {p.got}" for p in problems(schema, json)
        )
        raise DataError(f"{cls.__name__}: the instance does not satisfy its own schema: {faults}")
    return json


def _kept_schema(cls: type[BaseModel]) -> Schema:
    """Write the schema of a class by pydantic, check it, and keep it with the class."""
    try:
        if not cls.__pydantic_complete__:
            cls.model_rebuild()
        written = cls.model_json_schema(by_alias=True, schema_generator=_Writer, mode="validation")
    except PydanticUndefinedAnnotation as error:
        raise SchemaError(
            f"{cls.__name__}: the name {error.name!r} in its annotations is not defined yet: define it first."
        ) from error
    except PydanticUserError as error:
        raise SchemaError(f"{cls.__name__}: {error.message}") from error
    if secret := _secret_field(cls, set()):
        raise SchemaError(f"{secret}: a secret is written as stars: keep it out of the data.")
    schema = schema_from(written, root="any")
    setattr(cls, _KEPT, schema)
    return schema


def _secret_field(cls: type[BaseModel], seen: set[type]) -> str | None:
    """Return the first field of a class, or of the classes in it, that holds a secret; None where there is none."""
    seen.add(cls)
    for name, field in cls.model_fields.items():
        for part in _within(field.annotation):
            if not isinstance(part, type):
                continue
            if issubclass(part, SecretStr | SecretBytes | Secret):
                return f"{cls.__name__}.{name}"
            if issubclass(part, BaseModel) and part not in seen and (found := _secret_field(part, seen)):
                return found
    return None


def _within(annotation: Any) -> Iterator[Any]:
    """Yield every part of an annotation."""
    yield annotation
    yield get_origin(annotation)
    for part in get_args(annotation):
        yield from _within(part)


class _UnwritableField(Exception):
    """A field without a JSON Schema; caught where its name is known."""

    def __init__(self, field: core_schema.ModelField, why: str) -> None:
        super().__init__(why)
        self.field = field


class _Writer(GenerateJsonSchema):
    """Pydantic's generator, without the patterns that it writes for a type of its own; errors name the field."""

    def decimal_schema(self, schema: core_schema.DecimalSchema) -> dict[str, Any]:
        """Drop the pattern: it needs look-around, and `.to(Model)` checks the number."""
        return _without_pattern(super().decimal_schema(schema))

    def complex_schema(self, schema: core_schema.ComplexSchema) -> dict[str, Any]:
        """Drop the pattern, too."""
        return _without_pattern(super().complex_schema(schema))

    def model_field_schema(self, schema: core_schema.ModelField) -> dict[str, Any]:
        """Pass on which field cannot be written."""
        try:
            return super().model_field_schema(schema)
        except PydanticInvalidForJsonSchema as error:
            raise _UnwritableField(schema, error.message) from error

    def model_fields_schema(self, schema: core_schema.ModelFieldsSchema) -> dict[str, Any]:
        """Name the field that cannot be written."""
        try:
            return super().model_fields_schema(schema)
        except _UnwritableField as error:
            name = next(name for name, field in schema["fields"].items() if field is error.field)
            owner = f"{schema['model_name']}." if "model_name" in schema else ""
            raise SchemaError(f"{owner}{name}: it has no JSON Schema: {error}") from error

    def emit_warning(self, kind: Any, detail: str) -> None:
        """Raise for a default that is not JSON; pydantic would leave it out with a warning."""
        if kind == "non-serializable-default":
            raise PydanticInvalidForJsonSchema(detail)


def _without_pattern(written: dict[str, Any]) -> dict[str, Any]:
    """Take `pattern` out of a schema and of its alternatives."""
    kept = {key: value for key, value in written.items() if key != "pattern"}
    if "anyOf" in kept:
        kept["anyOf"] = [_without_pattern(arm) for arm in kept["anyOf"]]
    return kept
