"""What must be known of a case so that all its values satisfy one keyword; subschemas apart."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from synmod.data.validation.checker import kinds_of
from synmod.leaves.frozen import json_equal

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from .cases import Case

_NUMBERS: Final = frozenset({"integer", "fraction"})
_OBJECTS: Final = frozenset({"object"})
_ARRAYS: Final = frozenset({"array"})
_STRINGS: Final = frozenset({"string"})

CONCERNED: Final[Mapping[str, frozenset[str]]] = {
    **dict.fromkeys(("exclusiveMaximum", "exclusiveMinimum", "maximum", "minimum", "multipleOf"), _NUMBERS),
    **dict.fromkeys(("maxLength", "minLength", "pattern"), _STRINGS),
    **dict.fromkeys(
        ("contains", "items", "maxItems", "minItems", "prefixItems", "unevaluatedItems", "uniqueItems"), _ARRAYS
    ),
    **dict.fromkeys(
        (
            "additionalProperties",
            "dependentRequired",
            "dependentSchemas",
            "maxProperties",
            "minProperties",
            "patternProperties",
            "properties",
            "propertyNames",
            "required",
            "unevaluatedProperties",
        ),
        _OBJECTS,
    ),
}
"""The kinds of value that a keyword asks something of; a case of other kinds satisfies it."""


def _at_least(keyword: str) -> Callable[[Case, Any], bool]:
    return lambda case, bound: max(case.values(keyword), default=0) >= bound


def _at_most(keyword: str) -> Callable[[Case, Any], bool]:
    return lambda case, bound: min(case.values(keyword), default=float("inf")) <= bound


def _minimum(case: Case, bound: Any) -> bool:
    low = case.low()
    return low is not None and low[0] >= bound


def _exclusive_minimum(case: Case, bound: Any) -> bool:
    low = case.low()
    return low is not None and (low[0] > bound or (low[0] == bound and low[1]))


def _maximum(case: Case, bound: Any) -> bool:
    high = case.high()
    return high is not None and high[0] <= bound


def _exclusive_maximum(case: Case, bound: Any) -> bool:
    high = case.high()
    return high is not None and (high[0] < bound or (high[0] == bound and high[1]))


def _multiple_of(case: Case, step: Any) -> bool:
    steps = case.values("multipleOf")
    if type(step) is not int:  # floats divide inexactly: 0.3 is no multiple of 0.1
        return any(json_equal(step, known) for known in steps)
    whole = step == 1 and "fraction" not in case.kinds
    return whole or any(type(known) is int and known % step == 0 for known in steps)


def _pattern(case: Case, source: Any) -> bool:
    return source in case.values("pattern")


def _type(case: Case, names: Any) -> bool:
    return case.kinds <= kinds_of({"type": names})


def _required(case: Case, names: Any) -> bool:
    return case.required().issuperset(names)


def _min_properties(case: Case, bound: Any) -> bool:
    return max([len(case.required()), *case.values("minProperties")]) >= bound


def _max_properties(case: Case, bound: Any) -> bool:
    if _at_most("maxProperties")(case, bound):
        return True
    return False in case.of_other_keys() and len(case.declared()) <= bound


def _dependent_required(case: Case, names: Mapping[str, list[str]]) -> bool:
    known = case.values("dependentRequired")
    return all(
        case.required().issuperset(others) or any(set(others) <= set(have.get(name, ())) for have in known)
        for name, others in names.items()
    )


def _max_items(case: Case, bound: Any) -> bool:
    return case.most_items() <= bound


def _unique_items(case: Case, wanted: Any) -> bool:
    return not wanted or True in case.values("uniqueItems") or case.most_items() <= 1


RULES: Final[Mapping[str, Callable[[Case, Any], bool]]] = {
    "dependentRequired": _dependent_required,
    "exclusiveMaximum": _exclusive_maximum,
    "exclusiveMinimum": _exclusive_minimum,
    "maxItems": _max_items,
    "maxLength": _at_most("maxLength"),
    "maxProperties": _max_properties,
    "maximum": _maximum,
    "minItems": _at_least("minItems"),
    "minLength": _at_least("minLength"),
    "minProperties": _min_properties,
    "minimum": _minimum,
    "multipleOf": _multiple_of,
    "pattern": _pattern,
    "required": _required,
    "type": _type,
    "uniqueItems": _unique_items,
}
"""For each such keyword, whether a case proves it."""
