"""The schemas and the JSON of pydantic classes, and instances made from JSON.

The schema of a class is made once and kept with the class.
"""

from collections.abc import Iterator
from decimal import Decimal
from typing import Any, Final, cast, get_args, get_origin

from pydantic import BaseModel, Secret, SecretBytes, SecretStr, ValidationError
from pydantic.errors import PydanticInvalidForJsonSchema, PydanticUndefinedAnnotation, PydanticUserError
from pydantic.json_schema import GenerateJsonSchema
from pydantic_core import PydanticSerializationError, to_json, to_jsonable_python

from synmod import errors, leaves
from synmod.leaves.frozen import FrozenDict, Json, frozen, frozen_dict, is_array, is_object
from synmod.leaves.nests import map_leaves

from .checking import schema_from
from .faults import validate
from .schema import Schema, properties_of, root_of

_KEPT: Final = "__synmod_schema__"


def schema_of_class(cls: type[BaseModel]) -> Schema:
    """Return the schema of a pydantic class; one dictionary read after the first call.

    Raises:
        SchemaError: The class cannot be written as a schema, or breaks a rule of data models. Names the field.
    """
    return cls.__dict__.get(_KEPT) or _generate_schema(cls)


def dump(instance: BaseModel) -> FrozenDict:
    """Return the JSON of an instance by alias, None and defaults kept, frozen. Hot.

    Raises:
        DataError: It has no JSON, or its JSON does not satisfy the schema of its class. Names the place.
        SchemaError: The class breaks a rule of data models.
    """
    cls = type(instance)
    schema = cls.__dict__.get(_KEPT) or _generate_schema(cls)
    try:
        # round_trip leaves out computed fields, at every depth
        plain = instance.__pydantic_serializer__.to_python(
            instance, mode="json", by_alias=True, round_trip=True, warnings=False
        )
    except (PydanticSerializationError, UnicodeDecodeError) as error:  # the latter for bytes in a field of Any
        raise errors.DataError(f"{cls.__name__}: has no JSON: {error}") from error
    json = frozen(plain)
    try:
        validate(schema, json, cls.__name__)
    except errors.SchemaError as error:
        raise errors.DataError(
            f"{error} The instance was changed in place, or is serialized differently than declared."
        ) from None
    return json


def plain_json(x: Any) -> Json:
    """Return JSON, frozen, of a value from outside: dates, enums, decimals, sets and arrays as pydantic writes them.

    Raises:
        DataError: It has no JSON; names the JSON Pointer, the type and the remedy.
    """
    try:
        return frozen(x)
    except errors.DataError:
        try:
            return frozen(to_jsonable_python(map_leaves(_scalar, x)))
        except (PydanticSerializationError, errors.CallError, UnicodeDecodeError):
            pass
        raise


def _scalar(leaf: Any) -> Any:
    """Return a decimal as a number, a set in order, arrays and numbers of other libraries as Python's."""
    if isinstance(leaf, Decimal):
        return int(leaf) if leaf.is_finite() and leaf == leaf.to_integral_value() else float(leaf)
    if isinstance(leaf, set | frozenset):
        return sorted(cast("set[Any]", leaf), key=repr)  # which has another order in each process
    to_list = getattr(leaf, "tolist", None)
    return to_list() if callable(to_list) else leaf


def _generate_schema(cls: type[BaseModel]) -> Schema:
    """Generate the schema of a class with pydantic, check it, and keep it with the class."""
    try:
        if not cls.__pydantic_complete__:
            cls.model_rebuild()
        written = cls.model_json_schema(by_alias=True, schema_generator=_Writer, mode="validation")
    except PydanticUndefinedAnnotation as error:
        raise errors.SchemaError(
            f"{cls.__name__}: the name {error.name!r} in its annotations is not defined yet: define it first."
        ) from error
    except PydanticUserError as error:
        raise errors.SchemaError(f"{cls.__name__}: {error.message}") from error
    if secret := _secret_field(cls):
        raise errors.SchemaError(f"{secret}: a secret is written as stars: keep it out of the data.")
    schema = schema_from(written, root="any")
    setattr(cls, _KEPT, schema)
    return schema


def _secret_field(cls: type[BaseModel]) -> str | None:
    """Return the first field of a class, or of the classes in it, that holds a secret, or None."""
    pending = [cls]
    for model in pending:  # grows while it is read
        for name, field in model.model_fields.items():
            for part in _classes_in(field.annotation):
                if issubclass(part, SecretStr | SecretBytes | Secret):
                    return f"{model.__name__}.{name}"
                if issubclass(part, BaseModel) and part not in pending:
                    pending.append(part)
    return None


def _classes_in(annotation: Any) -> Iterator[type[Any]]:
    """Yield every class in an annotation."""
    for part in (annotation, get_origin(annotation)):
        if isinstance(part, type):
            yield part
    for part in get_args(annotation):
        yield from _classes_in(part)


class _Writer(GenerateJsonSchema):
    """Pydantic's generator, without the patterns that it writes for some types; errors name the field."""

    _failed: Any = None  # the part of pydantic's own schema that an error has passed through last

    def generate_inner(self, schema: Any) -> dict[str, Any]:
        """Generate the schema of one part; an error names the field.

        The pattern of numbers written as texts is dropped: it needs look-around, and `.to(Model)` checks these numbers.
        """
        try:
            written = super().generate_inner(schema)
        except PydanticInvalidForJsonSchema as error:
            for name, field in schema["fields"].items() if schema["type"] == "model-fields" else ():
                if field is self._failed:
                    owner = f"{schema['model_name']}." if "model_name" in schema else ""
                    raise errors.SchemaError(f"{owner}{name}: it has no JSON Schema: {error.message}") from error
            self._failed = schema
            raise
        return _without_pattern(written) if schema["type"] in ("complex", "decimal") else written

    def default_schema(self, schema: Any) -> dict[str, Any]:
        """Write `default_factory=list` and `dict` as the defaults they make, which pydantic leaves out."""
        written = super().default_schema(schema)
        factory = schema.get("default_factory")
        return {**written, "default": factory()} if factory in (list, dict) else written

    def emit_warning(self, kind: Any, detail: str) -> None:
        """Raise for a default that is not JSON; pydantic would leave it out with a warning."""
        if kind == "non-serializable-default":
            raise PydanticInvalidForJsonSchema(detail)


def _without_pattern(written: dict[str, Any]) -> dict[str, Any]:
    """Remove `pattern` from a schema and its alternatives."""
    rest = {key: value for key, value in written.items() if key != "pattern"}
    if "anyOf" in rest:
        rest["anyOf"] = [_without_pattern(arm) for arm in rest["anyOf"]]
    return rest


def build_instance(json: FrozenDict, model: Any) -> BaseModel:
    """Return an instance of `model`, built from the keys that its schema takes.

    Raises:
        ArgumentError: `model` is not a pydantic class.
        SchemaError: A field is missing or wrong.
    """
    if not (isinstance(model, type) and issubclass(model, BaseModel)):
        got = "only a schema is known here" if model is None else f"got {model!r:.100}"
        raise errors.ArgumentError(f"There is no class to build: {got}. Write x.to(Model) with a data-model class.")
    schema = schema_of_class(model)
    root, declared = root_of(schema), properties_of(schema)
    takes_more = root.get("additionalProperties", False) is not False or "patternProperties" in root
    if not takes_more and not json.keys() <= declared.keys():
        json = frozen_dict({key: value for key, value in json.items() if key in declared})
    validate(schema, json, model.__name__)
    return run_validators(model, json, model.__name__)


def run_validators(model: type[BaseModel], json: FrozenDict, where: str) -> BaseModel:
    """Run the validators of a class on JSON that is valid for its schema; return the instance.

    Raises:
        SchemaError: The class does not accept it. Begins with `where`.
    """
    try:
        # From text, so that strict classes read dates, and no frozen part gets into an instance. The root is made plain
        # before, since `to_json` tries all other types before a subclass of dict.
        return model.model_validate_json(to_json(dict(json)))
    except ValidationError as error:
        faults = [
            errors.Problem(leaves.pointer(_place(fault["loc"], json)), fault["msg"], f"{fault['input']!r:.200}")
            for fault in error.errors(include_url=False)[:10]
        ]
        lines = "\n".join(f"  {fault.pointer or 'the whole'}: {fault.wanted}; got {fault.got}" for fault in faults)
        raise errors.SchemaError(f"{where}: the class does not accept the value:\n{lines}", faults) from error


def _place(steps: tuple[str | int, ...], json: Any) -> list[str | int]:
    """Keep the steps that exist in the JSON: pydantic also names the alternatives it has tried."""
    place: list[str | int] = []
    for step in steps:
        if is_object(json) and step in json:
            json = json[str(step)]
        elif is_array(json) and isinstance(step, int) and step < len(json):
            json = json[step]
        else:
            continue
        place.append(step)
    return place
