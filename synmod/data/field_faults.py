"""How our own data models report what pydantic cannot see, and take what they are called with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

from pydantic import ValidationError
from pydantic_core import InitErrorDetails, PydanticCustomError

FieldFault: TypeAlias = tuple[str, str, Any]
"""Field, what is wrong with it, its value."""


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
