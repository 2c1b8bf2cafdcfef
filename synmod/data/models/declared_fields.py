"""What a data model may not declare: fields whose JSON would not be valid for their own schema.

Pydantic's compiled description of a class (its core schema) is walked once per class, nested classes included.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, cast, get_args, get_origin

from pydantic import BaseModel, Secret, SecretBytes, SecretStr

from synmod.data.schemas.schema import trusted_schema
from synmod.data.validation.validate import problems
from synmod.errors import DataError, SchemaError
from synmod.leaves.frozen import is_array, is_object

_FIELDS: Final = frozenset({"model-field", "dataclass-field", "typed-dict-field"})
_OPAQUE: Final = frozenset({"metadata", "default", "serialization", "config"})
_HARMLESS: Final = frozenset({"to-string", "format", "include-exclude-sequence", "include-exclude-dict"})
_SECRETS: Final = (SecretStr, SecretBytes, Secret)


def refuse_unsound_fields(cls: type[BaseModel], schema: Mapping[str, Any]) -> None:
    """Refuse declarations whose instances would not come back from their JSON.

    Raises:
        SchemaError: There is one. Names the field and the remedy.
    """
    for owner, name, field in _fields(cls):
        if fault := _fault_of(name, field):
            raise SchemaError(f"{owner}.{name}: {fault}")
    for model in _models(cls):
        for name, info in model.model_fields.items():
            if model.model_config.get("validate_by_alias") is False and info.alias not in {None, name}:
                raise SchemaError(f"{model.__name__}.{name}: it is written by its alias: let it be read by it too.")
            if any(isinstance(part, type) and issubclass(part, _SECRETS) for part in _within(info.annotation)):
                raise SchemaError(f"{model.__name__}.{name}: a secret is written as stars: keep it out of the data.")
    _refuse_unsound_defaults(cls, schema)


def has_own_serializer(cls: type[BaseModel]) -> bool:
    """Tell whether code of a user writes some of the JSON, so that each dump must be checked."""
    return any(_is_own(node["serialization"]) for _, node in _nodes(cls) if "serialization" in node)


def name_of_field(cls: type[BaseModel], field: Any) -> str:
    """Give class and name of a field that pydantic describes."""
    return next((f"{owner}.{name}" for owner, name, known in _fields(cls) if known is field), cls.__name__)


def _fault_of(name: str, field: Mapping[str, Any]) -> str | None:
    """Say what is wrong with one field."""
    read, written = field.get("validation_alias", name), field.get("serialization_alias", name)
    if read != written:
        return (
            f"it is read as {read!r} but written as {written!r}: give one `alias=`, so that the JSON can be read again."
        )
    if field.get("serialization_exclude") or field.get("serialization_exclude_if") is not None:
        return "it is excluded from the JSON (`exclude`): leave it out of the model, or use a private attribute."
    if any(node.get("type") == "json" for _, node in _within_core(name, field.get("schema"), _OPAQUE | {"fields"})):
        return "Json[...] is read from a text but written as what it holds: declare what it holds."
    return None


def _refuse_unsound_defaults(cls: type[BaseModel], schema: Mapping[str, Any]) -> None:
    """Refuse a default that is not valid for its field."""
    definitions = schema.get("$defs", {})
    for title, described in [*definitions.items(), (cls.__name__, schema)]:
        fields: dict[str, Any] = described.get("properties", {}) if is_object(described) else {}
        for name, field in fields.items():
            if not is_object(field) or "default" not in field:
                continue
            try:
                demanded = trusted_schema({**field, "$defs": definitions} if definitions else field)
                found = problems(demanded, field["default"])
            except DataError as error:
                raise SchemaError(f"{title}.{name}: the default is no JSON: {error}") from error
            if found:
                raise SchemaError(
                    f"{title}.{name}: the default {field['default']!r:.100} is not valid for the field (wanted "
                    f"{found[0].wanted}): declare it, as in `str | None` for a default None."
                )


def _nodes(cls: type[BaseModel]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Give every node of the core schema of a class, with the name of the class it belongs to."""
    return _within_core(cls.__name__, cls.__pydantic_core_schema__)


def _within_core(owner: str, core: Any, opaque: frozenset[str] = _OPAQUE) -> Iterator[tuple[str, Mapping[str, Any]]]:
    pending, seen = [(owner, core)], set[int]()
    while pending:
        owner, here = pending.pop()
        if id(here) in seen:
            continue
        seen.add(id(here))
        if is_object(here):
            owner = getattr(here.get("cls"), "__name__", owner)
            if "type" in here:
                yield owner, here
            pending.extend((owner, value) for key, value in here.items() if key not in opaque)
        elif is_array(here) or isinstance(here, tuple):
            pending.extend((owner, value) for value in cast("list[Any]", here))


def _fields(cls: type[BaseModel]) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    """Give every field of a class and of the classes in it: class, name, description."""
    for owner, node in _nodes(cls):
        fields = node.get("fields")
        if is_object(fields):
            yield from ((owner, name, field) for name, field in fields.items() if field.get("type") in _FIELDS)
        elif is_array(fields):
            described = [field for field in fields if is_object(field) and field.get("type") in _FIELDS]
            yield from ((owner, field["name"], field) for field in described)


def _models(cls: type[BaseModel]) -> list[type[BaseModel]]:
    """Give the pydantic classes in a class, itself included."""
    found = {cls: None}
    for _, node in _nodes(cls):
        inner = node.get("cls")
        if isinstance(inner, type) and issubclass(inner, BaseModel):
            found[inner] = None
    return list(found)


def _within(annotation: Any) -> Iterator[Any]:
    """Give every part of an annotation."""
    pending = [annotation]
    while pending:
        here = pending.pop()
        yield here
        if (origin := get_origin(here)) is not None:
            pending.append(origin)
        pending.extend(get_args(here))


def _is_own(serialization: Any) -> bool:
    """Tell whether a serializer is none of pydantic's own."""
    if not is_object(serialization) or serialization.get("type") in _HARMLESS:
        return False
    function = serialization.get("function")
    return not str(getattr(function, "__module__", "")).startswith("pydantic.")
