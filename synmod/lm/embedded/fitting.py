"""Whether a value that an example shows can be said again: the demands of a schema that a reply often meets."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Final

from synmod.data import BadPattern, compiled
from synmod.leaves.frozen import json_equal
from synmod.lm.prompt.subschemas import alternatives, fields_of, is_array, is_object, resolved

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from synmod.leaves.frozen import Json

_TYPES: Final[Mapping[str, tuple[type, ...]]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "number": (int, float),
    "integer": (int,),
    "boolean": (bool,),
    "null": (type(None),),
}

_NUMBER_DEMANDS: Final[Mapping[str, Callable[[Fraction, Fraction], bool]]] = {
    "minimum": lambda value, bound: value >= bound,
    "maximum": lambda value, bound: value <= bound,
    "exclusiveMinimum": lambda value, bound: value > bound,
    "exclusiveMaximum": lambda value, bound: value < bound,
    "multipleOf": lambda value, step: value % step == 0,
}


def fits(value: Json, schema: Json, root: Mapping[str, Json]) -> bool:
    """Tell whether a value meets the usual demands of a subschema.

    What it does not know it takes for met: the reply is validated like any model's.
    """
    target = resolved(schema, root)
    arms = alternatives(target)
    if arms and not any(fits(value, arm, root) for arm in arms):
        return False
    if "const" in target and not json_equal(value, target["const"]):
        return False
    if is_array(listed := target.get("enum")) and not any(json_equal(value, one) for one in listed):
        return False
    kinds = target.get("type")
    if kinds is not None and not any(_is_a(value, kind) for kind in (kinds if is_array(kinds) else [kinds])):
        return False
    if isinstance(value, str):
        return meets_text_demands(value, target)
    if is_array(value):
        return _fits_array(value, target, root)
    if is_object(value):
        return _fits_object(value, target, root)
    return isinstance(value, bool) or value is None or _meets_number_demands(value, target)


def meets_text_demands(text: str, target: Mapping[str, Json]) -> bool:
    """Tell whether a text has the length and the pattern that a schema demands."""
    if not target.get("minLength", 0) <= len(text) <= target.get("maxLength", len(text)):
        return False
    pattern = target.get("pattern")
    try:
        return pattern is None or compiled(pattern).found_in(text)
    except BadPattern:
        return True


def _meets_number_demands(number: float, target: Mapping[str, Json]) -> bool:
    """Tell whether a number lies within the bounds of a schema, all read as they are written."""
    demands = [(holds, target[name]) for name, holds in _NUMBER_DEMANDS.items() if name in target]
    return all(holds(Fraction(str(number)), Fraction(str(bound))) for holds, bound in demands)


def _fits_array(items: list[Json], target: Mapping[str, Json], root: Mapping[str, Json]) -> bool:
    """Tell whether an array has the items that a schema demands."""
    if not target.get("minItems", 0) <= len(items) <= target.get("maxItems", len(items)):
        return False
    first = target.get("prefixItems")
    first = first if is_array(first) else []
    if not all(fits(item, schema, root) for item, schema in zip(items, first, strict=False)):
        return False
    if not _admits_all(items[len(first) :], target.get("items", True), root):
        return False
    return not target.get("uniqueItems") or not any(
        json_equal(item, other) for place, item in enumerate(items) for other in items[:place]
    )


def _fits_object(value: Mapping[str, Json], target: Mapping[str, Json], root: Mapping[str, Json]) -> bool:
    """Tell whether an object has the fields that a schema demands."""
    fields = fields_of(target)
    if any(name not in value for name in target.get("required", ())):
        return False
    others = [item for name, item in value.items() if name not in fields]
    if not _admits_all(others, target.get("additionalProperties", True), root):
        return False
    return all(fits(value[name], inner, root) for name, inner in fields.items() if name in value)


def _admits_all(values: list[Json], schema: Json, root: Mapping[str, Json]) -> bool:
    """Tell whether a schema, True or False admits each of some values."""
    if isinstance(schema, bool):
        return schema or not values
    return all(fits(value, schema, root) for value in values)


def _is_a(value: Json, kind: Json) -> bool:
    """Tell whether a value is of a JSON type."""
    if isinstance(value, bool):
        return kind == "boolean"
    if kind == "integer" and isinstance(value, float):
        return value.is_integer()
    return isinstance(value, _TYPES.get(str(kind), ()))
