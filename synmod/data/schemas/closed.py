"""Closed schemas: a reference leads to a place in the schema itself, so that no schema opens a file or a socket."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote

from synmod.errors import SchemaError
from synmod.leaves.frozen import is_array, is_object

from .wellformed import at

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from .keywords import Step

_MISSING: Final = object()

_REFUSED: Final = {
    "$anchor": "name the place by its JSON Pointer instead: '#/$defs/name'",
    "$dynamicAnchor": "name the place by its JSON Pointer instead: '#/$defs/name'",
    "$dynamicRef": "write a '$ref' to '#' or '#/...'",
    "$id": "only the root may have one; references are '#' or '#/...'",
    "$schema": "only the root may name a draft",
    "$vocabulary": "schemas are of the standard vocabulary of 2020-12",
}


def check_closed(schema: Mapping[str, Any], steps: Sequence[Step]) -> None:
    """Check one schema, its subschemas apart, for everything that could lead out of the document.

    Raises:
        SchemaError: A reference that is not '#' or '#/...', or a keyword that moves or names places. Names the pointer.
    """
    for keyword in _REFUSED.keys() & schema.keys():
        raise SchemaError(f"{at((*steps, keyword))}: {keyword!r} is not supported: {_REFUSED[keyword]}.")
    reference = schema.get("$ref", "#")
    if reference != "#" and not reference.startswith("#/"):
        raise SchemaError(
            f"{at((*steps, '$ref'))}: {reference!r:.200} leads out of the schema: put what it names under '$defs', "
            "and refer to it as '#/$defs/name'."
        )


def steps_of(reference: str) -> tuple[str, ...]:
    """Take a reference apart: `#/$defs/a~1b` gives `("$defs", "a/b")`."""
    parts = unquote(reference).removeprefix("#").split("/")[1:]
    return tuple(part.replace("~1", "/").replace("~0", "~") for part in parts)


def target_of(root: Mapping[str, Any], reference: str) -> Any:
    """Give what a local reference names.

    Raises:
        SchemaError: There is nothing.
    """
    place: Any = root
    for step in steps_of(reference):
        place = _part(place, step)
        if place is _MISSING:
            raise SchemaError(f"The schema has nothing at {reference!r:.200}, to which it refers.")
    return place


def _part(place: Any, step: str) -> Any:
    if is_object(place):
        return place.get(step, _MISSING)
    if is_array(place) and step.isascii() and step.isdigit() and len(step) < 10 and int(step) < len(place):
        return place[int(step)] if step == str(int(step)) else _MISSING
    return _MISSING
