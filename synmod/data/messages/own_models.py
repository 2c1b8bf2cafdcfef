"""How our own data models report what pydantic cannot see, describe themselves, and take their arguments."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final, TypeAlias

from pydantic import ConfigDict, ValidationError
from pydantic_core import InitErrorDetails, PydanticCustomError

FieldFault: TypeAlias = tuple[str, str, Any]
"""Field, what is wrong with it, its value."""

_FOR_PEOPLE: Final = re.compile(r"\n\n(?:Args|Attributes|Example|Raises|Source):")


def _cut_description(schema: dict[str, Any]) -> None:
    """Tell models what a class is; its arguments, errors and examples are for people."""
    if "description" in schema:
        schema["description"] = _FOR_PEOPLE.split(schema["description"], maxsplit=1)[0]


TOLD_BRIEFLY: Final = ConfigDict(json_schema_extra=_cut_description)
"""Configuration of a class whose docstring says more than a model needs."""


def refuse(title: str, faults: Sequence[FieldFault]) -> None:
    """Raise pydantic's error, each fault at its field; nothing where there is none."""
    if faults:
        raise ValidationError.from_exception_data(
            title,
            [
                InitErrorDetails(
                    type=PydanticCustomError("field_fault", "{what}", {"what": what}), loc=(field,), input=value
                )
                for field, what, value in faults
            ],
        )


def positional(title: str, names: tuple[str, ...], args: tuple[Any, ...], fields: dict[str, Any]) -> dict[str, Any]:
    """Name the positional arguments of a data model.

    Raises:
        TypeError: Too many, or one given twice.
    """
    if len(args) > len(names):
        raise TypeError(f"{title} takes at most {len(names)} positional arguments {names}, got {len(args)}.")
    for name, value in zip(names, args, strict=False):
        if name in fields:
            raise TypeError(f"{title} got {name!r} twice, by position and by keyword.")
        fields[name] = value
    return fields
