"""Reading a schema: references followed, alternatives found, JSON told apart by shape."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeGuard
from urllib.parse import unquote

if TYPE_CHECKING:
    from collections.abc import Mapping

    from synmod.leaves.frozen import Json

_LONGEST_CHAIN: Final = 50


def is_object(json: Json) -> TypeGuard[Mapping[str, Json]]:
    """Whether this is a JSON object."""
    return isinstance(json, dict)  # JSON objects are dicts, frozen or not, and an ABC costs ten times as much


def is_array(json: Json) -> TypeGuard[list[Json]]:
    """Whether this is a JSON array."""
    return isinstance(json, list)


def resolved(field: Json, root: Mapping[str, Json]) -> Mapping[str, Json]:
    """Follow the references of a subschema inside its schema.

    Args:
        field: A subschema of `root`; True counts as `{}`.
        root: The schema to which `#/...` refers.

    Returns:
        The subschema that stands at the end of the references; `{}`, which demands nothing, where there is none.

    Example:
        >>> resolved({"$ref": "#/$defs/City"}, {"$defs": {"City": {"type": "string"}}})
        {'type': 'string'}

    Source: JSON Schema 2020-12, `$ref`.
    """
    for _ in range(_LONGEST_CHAIN):
        if not is_object(field):
            return {}
        ref, parts = field.get("$ref"), field.get("allOf")
        if isinstance(ref, str):
            field = _target(ref, root)
        elif is_array(parts) and len(parts) == 1:
            field = parts[0]
        else:
            return field
    return {}


def alternatives(target: Mapping[str, Json]) -> list[Json]:
    """The arms of `anyOf` or `oneOf`; none where there is no choice."""
    arms = target.get("anyOf") or target.get("oneOf")
    return arms if is_array(arms) else []


def fields_of(target: Mapping[str, Json]) -> Mapping[str, Json]:
    """The declared fields of an object; none for other values."""
    fields = target.get("properties")
    return fields if is_object(fields) else {}


def _target(reference: str, root: Mapping[str, Json]) -> Json:
    """What a reference to `#` or `#/...` points at."""
    target: Json = root
    for step in reference.lstrip("#").split("/")[1:]:
        step = unquote(step).replace("~1", "/").replace("~0", "~")
        if is_object(target):
            target = target.get(step)
        elif is_array(target) and step.isdecimal() and int(step) < len(target):
            target = target[int(step)]
        else:
            return None
    return target
