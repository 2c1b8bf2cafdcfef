"""Images, sound and files among the inputs: no model is sent them yet, so a prompt with one is refused, not faked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from synmod.errors import ConfigError
from synmod.lm.prompt.subschemas import is_array, is_object

if TYPE_CHECKING:
    from synmod.leaves.frozen import Json

_FIELDS: Final = frozenset({"media_type", "data", "url"})
"""The fields of `sm.Image`, `sm.Audio` and `sm.File`, and of nothing else."""


def may_hold_media(schema: Json) -> bool:
    """Tell whether values of a schema may hold an image, sound or a file."""
    pending: list[Json] = [schema]
    while pending:
        part = pending.pop()
        if is_object(part):
            fields = part.get("properties")
            if is_object(fields) and frozenset(fields) == _FIELDS:
                return True
            pending.extend(part.values())
        elif is_array(part):
            pending.extend(part)
    return False


def refuse_media(json: Json, where: str) -> None:
    """Refuse a value that holds an image, sound or a file.

    Raises:
        ConfigError: It does; names the place.
    """
    pending: list[tuple[Json, str]] = [(json, where)]
    while pending:
        value, place = pending.pop()
        if is_object(value):
            if frozenset(value) == _FIELDS:
                raise ConfigError(
                    f"{place}: images, sound and files cannot be sent to a model yet, and their base64 says nothing"
                    " in a prompt: mask the field out, or lay the prompt out with prompt=fn."
                )
            pending.extend((inner, f"{place}/{name}") for name, inner in value.items())
        elif is_array(value):
            pending.extend((inner, f"{place}/{index}") for index, inner in enumerate(value))
