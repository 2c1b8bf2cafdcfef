"""Drawing objects and arrays: what is required, some of what is optional, and as many more as it takes."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final

from synmod.data import is_valid, trusted_schema
from synmod.leaves.frozen import Json
from synmod.testing.instances.joining import joined, without
from synmod.testing.instances.scalars import word

if TYPE_CHECKING:
    from synmod.testing.instances.drawing import Drawing

__all__ = ["array_of", "object_of"]

_TRIES: Final = 12


def object_of(drawing: Drawing, part: Mapping[str, Json], depth: int) -> dict[str, Json]:
    """Draw an object; its properties stand in the order in which they are declared."""
    declared: Mapping[str, Json] = part.get("properties", {})
    names = _names(drawing, part, depth)
    ordered = [name for name in declared if name in names] + [name for name in names if name not in declared]
    drawn = {name: drawing.value(_asked_of(part, name), depth + 1) for name in ordered}
    for name, more in part.get("dependentSchemas", {}).items():
        if name in drawn:
            drawn |= object_of(drawing, drawing.in_place(joined(without(part, "dependentSchemas"), more), depth), depth)
    return drawn


def _names(drawing: Drawing, part: Mapping[str, Json], depth: int) -> list[str]:
    """Choose the properties that the object has."""
    required = list(dict.fromkeys(part.get("required", ())))
    names = list(required)
    for name in part.get("properties", {}):
        if name not in names and drawing.likes_more(depth):
            names.append(name)
    for name, needed in part.get("dependentRequired", {}).items():
        if name in names:
            names.extend(other for other in needed if other not in names)
    spare = [name for name in part.get("properties", {}) if name not in names]
    while len(names) < part.get("minProperties", 0):
        names.append(spare.pop(0) if spare else _new_name(drawing, part, names))
    most = part.get("maxProperties", math.inf)
    return [name for place, name in enumerate(names) if place < most or name in required]


def _asked_of(part: Mapping[str, Json], name: str) -> Json:
    """What is asked of one property, by its name, by patterns, else as of all others."""
    asked = [part["properties"][name]] if name in part.get("properties", {}) else []
    for pattern, schema in part.get("patternProperties", {}).items():
        if is_valid(trusted_schema({"pattern": pattern}), name):
            asked.append(schema)
    return _all_of(asked or [part.get("additionalProperties", True)])


def _all_of(schemas: Iterable[Json]) -> Json:
    """Join schemas that hold for one value."""
    whole: Json = {}
    for schema in schemas:
        whole = joined(whole, schema)
    return whole


def _new_name(drawing: Drawing, part: Mapping[str, Json], taken: list[str]) -> str:
    """Draw a name that nobody declared."""
    asked = joined({"type": "string"}, part.get("propertyNames", True))
    patterns = list(part.get("patternProperties", ()))
    if patterns and part.get("additionalProperties") is False:
        asked = joined(asked, {"pattern": drawing.random.choice(patterns)})
    for number in range(_TRIES):
        name = str(drawing.value(asked, 0))
        if name not in taken:
            return name
        if asked == {"type": "string"} and f"{name} {number}" not in taken:
            return f"{name} {number}"
    return f"{word(drawing.random)} {len(taken)}"


def array_of(drawing: Drawing, part: Mapping[str, Json], depth: int) -> list[Json]:
    """Draw an array: the items that have a place, then as many as it takes."""
    placed: list[Json] = list(part.get("prefixItems", ()))
    rest = part.get("items", True)
    contained = part.get("minContains", 1) if "contains" in part else 0
    count = max(part.get("minItems", 0), contained, len(placed) if drawing.likes_more(depth, always_above=True) else 0)
    while drawing.likes_more(depth) and count < part.get("minItems", 0) + 3:
        count += 1
    count = int(min(count, part.get("maxItems", math.inf), math.inf if rest is not False else len(placed)))
    drawn: list[Json] = []
    for place in range(count):
        asked = placed[place] if place < len(placed) else rest
        if count - place <= contained:
            asked = joined(asked, part["contains"])
        drawn.append(_item(drawing, asked, drawn, depth, apart=part.get("uniqueItems") is True))
    return drawn


def _item(drawing: Drawing, asked: Json, before: list[Json], depth: int, *, apart: bool) -> Json:
    """Draw an item, another one than those before where they must differ."""
    item = drawing.value(asked, depth + 1)
    for _ in range(_TRIES if apart else 0):
        if item not in before:
            break
        item = drawing.value(asked, depth + 1)
    return item
