"""From JSON to typed instances: pydantic builds, after the schema has said that nothing needs coercion."""

from __future__ import annotations

from typing import Any, NoReturn

from pydantic import BaseModel, ValidationError
from pydantic_core import to_json

from synmod.data.schemas.rooted import properties_of
from synmod.data.validation.validate import validate
from synmod.errors import ArgumentError, Problem, SchemaError
from synmod.leaves.frozen import FrozenDict, frozen, is_array, is_object
from synmod.leaves.names import pointer

from .class_schema import schema_of_class

_MOST_FAULTS = 10


def typed_instance(json: FrozenDict, model: Any) -> BaseModel:
    """Build an instance of `model` from the fields it declares.

    Raises:
        ArgumentError: `model` is no pydantic class.
        SchemaError: A field is missing or wrong.
    """
    if not (isinstance(model, type) and issubclass(model, BaseModel)):
        got = "only a schema is known here" if model is None else f"got {model!r:.100}"
        raise ArgumentError(f"No class to build: {got}. Write x.to(Model) with a data-model class.")
    schema = schema_of_class(model)
    if model.model_config.get("extra") != "allow":
        declared = properties_of(schema)
        if not json.keys() <= declared.keys():
            json = frozen({key: value for key, value in json.items() if key in declared})
    validate(schema, json, model.__name__)
    return _built(model, json, model.__name__)


def validator_faults(model: type[BaseModel], json: FrozenDict, where: str) -> None:
    """Run the validators of a class on JSON that is valid for its schema.

    Raises:
        SchemaError: The class refuses it. Begins with `where`.
    """
    _built(model, json, where)


def _built(model: type[BaseModel], json: FrozenDict, where: str) -> BaseModel:
    try:
        # From text, so that strict classes read dates, and no frozen part gets into an instance. The whole is made
        # plain beforehand, since pydantic tries all else before a subclass of dict.
        return model.model_validate_json(to_json(dict(json)))
    except ValidationError as error:
        _refuse(error, json, where)


def _refuse(error: ValidationError, json: FrozenDict, where: str) -> NoReturn:
    faults = [
        Problem(pointer(_place(fault["loc"], json)), fault["msg"], f"{fault['input']!r:.200}")
        for fault in error.errors(include_url=False)[:_MOST_FAULTS]
    ]
    lines = "\n".join(f"  {fault.pointer or 'the whole'}: {fault.wanted}; got {fault.got}" for fault in faults)
    raise SchemaError(f"{where}: the class refuses the value:\n{lines}", faults) from error


def _place(steps: tuple[str | int, ...], json: Any) -> list[str | int]:
    """Keep the steps that lead somewhere in the JSON: pydantic also names the alternatives it has tried."""
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
