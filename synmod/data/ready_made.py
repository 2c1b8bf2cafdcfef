"""The base class of ready-made data models, and the configuration of their schemas."""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Final, Self, TypeAlias, cast, get_args

from pydantic import ConfigDict, ValidationError, model_validator
from pydantic_core import InitErrorDetails, PydanticCustomError

from .models import DataModel

FieldFault: TypeAlias = tuple[str, str, Any]
"""Field, what is wrong with it, its value."""

_FOR_PEOPLE: Final = re.compile(r"\n\n(?:Args|Attributes|Example|Raises|Source):")


def _cut_description(schema: dict[str, Any]) -> None:
    """Cut a description for language models: arguments, errors and examples are for people."""
    if "description" in schema:
        schema["description"] = _FOR_PEOPLE.split(schema["description"], maxsplit=1)[0]


SHORT_DESCRIPTION: Final = ConfigDict(json_schema_extra=_cut_description, defer_build=True)
"""Configuration of a ready-made class: its schema has a short description, and is made when it is first needed."""

PROVIDER_CONFIG: Final[ConfigDict] = {**SHORT_DESCRIPTION, "extra": "allow"}
"""Configuration of what a provider writes: keys of its own stay as they are, and are sent back to it."""


class ReadyMade(DataModel):
    """A data model of ours: takes its first fields by position, writes a constant `type`, and checks the whole.

    Keys that the class does not declare, where it takes any, come in by dicts only: a misspelt keyword is an error.
    """

    model_config = SHORT_DESCRIPTION

    _positions: ClassVar[tuple[str, ...] | None] = None
    """The fields that come by position; None for all but `type`."""
    _constructors: ClassVar[str] = ""

    if not TYPE_CHECKING:

        def __init__(self, *args: Any, **fields: Any) -> None:
            super().__init__(**self._by_name(args, fields))

        __init__.__pydantic_base_init__ = True  # for pydantic: it need not be called for a dict inside another

    @classmethod
    def _by_name(cls, args: tuple[Any, ...], fields: dict[str, Any]) -> dict[str, Any]:
        """Return all arguments by name (TypeError for too many, or one given twice)."""
        names = cls._positions
        if names is None:
            names = tuple(name for name in cls.model_fields if name != "type")
        if len(args) > len(names):
            most = f"at most {len(names)} positional arguments {names}"
            raise TypeError(f"{cls.__name__} takes {most}, got {len(args)}.{cls._constructors}")
        positional = dict(zip(names, args, strict=False))
        for name in positional.keys() & fields.keys():
            raise TypeError(f"{cls.__name__} got {name!r} twice, by position and by keyword.")
        if unknown := [name for name in fields if name not in cls._keywords()]:
            raise ValidationError.from_exception_data(
                cls.__name__,
                [InitErrorDetails(type="extra_forbidden", loc=(name,), input=fields[name]) for name in unknown],
            )
        return {**positional, **fields}

    @classmethod
    def _keywords(cls) -> Iterable[str]:
        """Return the names of the keywords."""
        return cls.model_fields

    @model_validator(mode="before")
    @classmethod
    def _complete(cls, value: Any) -> Any:
        """Write the constant `type` where it is missing."""
        kind = cls.model_fields.get("type")
        if kind is None or not isinstance(value, Mapping):
            return value
        return {"type": get_args(kind.annotation)[0], **cast("Mapping[str, Any]", value)}

    def _faults(self) -> Iterator[FieldFault]:
        """Yield the faults of the fields taken together."""
        yield from ()

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        """Raise pydantic's ValidationError, with each fault at its field."""
        errors = [
            InitErrorDetails(
                type=PydanticCustomError("field_fault", "{what}", {"what": what}), loc=(field,), input=value
            )
            for field, what, value in self._faults()
        ]
        if errors:
            raise ValidationError.from_exception_data(type(self).__name__, errors)
        return self
