"""Joining schemas: one schema for what several ask of the same value, as far as one can be written."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, Final

from synmod.leaves.frozen import Json, is_object

__all__ = ["joined", "without"]


def joined(first: Json, second: Json) -> dict[str, Json]:
    """Join two schemas that hold for one value; what cannot be joined is kept beside, under `allOf`."""
    one, other = _plain(first), _plain(second)
    whole = dict(one)
    for key, value in other.items():
        if key not in whole or whole[key] == value:
            whole[key] = value
        elif key in _JOINS:
            whole[key] = _JOINS[key](whole[key], value)
        elif key not in _SAY_NOTHING:
            whole["allOf"] = [*whole.get("allOf", ()), {key: value}]
    _keep_closed(whole, one, other)
    return whole


def without(part: Mapping[str, Json], keyword: str) -> dict[str, Json]:
    """Leave one keyword out of a part."""
    return {name: value for name, value in part.items() if name != keyword}


def _plain(schema: Json) -> Mapping[str, Json]:
    """A schema as an object; `true` asks nothing."""
    if is_object(schema):
        return schema
    return {} if schema is True else {"not": {}}


def _keep_closed(whole: dict[str, Json], one: Mapping[str, Json], other: Mapping[str, Json]) -> None:
    """A property that one of the two forbids does not become allowed because the other declares it."""
    if "properties" not in whole:
        return
    for closed in (one, other):
        if closed.get("additionalProperties") is False and "patternProperties" not in closed:
            known = closed.get("properties", {})
            whole["properties"] = {name: part for name, part in whole["properties"].items() if name in known}


def _types(one: Json, other: Json) -> Json:
    """The types that both allow."""
    left = {one} if isinstance(one, str) else set(one)
    right = {other} if isinstance(other, str) else set(other)
    both = [
        kind
        for kind in ("object", "array", "string", "integer", "number", "boolean", "null")
        if (kind in left or (kind == "integer" and "number" in left))
        and (kind in right or (kind == "integer" and "number" in right))
    ]
    return both[0] if len(both) == 1 else both


def _maps(one: Mapping[str, Json], other: Mapping[str, Json]) -> Json:
    """Properties of both; one that both name must satisfy both."""
    return {**one, **{name: joined(one[name], part) if name in one else part for name, part in other.items()}}


_SAY_NOTHING: Final = frozenset(
    {"title", "description", "default", "examples", "deprecated", "format", "discriminator"}
)
_JOINS: Final[Mapping[str, Callable[[Any, Any], Any]]] = {
    "type": _types,
    "properties": _maps,
    "patternProperties": _maps,
    "$defs": lambda one, other: {**one, **other},
    "required": lambda one, other: [*one, *(name for name in other if name not in one)],
    "enum": lambda one, other: [value for value in one if value in other],
    "items": joined,
    "additionalProperties": joined,
    "allOf": lambda one, other: [*one, *other],
    "multipleOf": lambda one, other: math.lcm(one, other) if isinstance(one, int) and isinstance(other, int) else one,
    **dict.fromkeys(("minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties", "minContains"), max),
    **dict.fromkeys(("maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties", "maxContains"), min),
}
