"""Uniting the definitions of two schemas: equal ones are one, others get another name and their references follow."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from synmod.data.parts import Parts
from synmod.data.subschemas import definition_of, references, renamed_definitions
from synmod.leaves.frozen import json_equal


def beside(left: Mapping[str, Any], right: Parts) -> Parts:
    """Give `right` with its definitions named so that they can stand beside those of `left`."""
    theirs = right.definitions
    if not theirs or not left or all(left.get(name) is definition for name, definition in theirs.items()):
        return right
    same = _same(left, theirs)
    names: dict[str, str] = {}
    given = {*left, *theirs}
    for name in theirs:
        if name in left and name not in same:
            names[name] = numbered(name, given)
            given.add(names[name])
    if not names:
        return right
    extra = right.extra if isinstance(right.extra, bool) else renamed_definitions(right.extra, names)
    return Parts(
        {field: renamed_definitions(schema, names) for field, schema in right.fields.items()},
        right.required,
        extra,
        {names.get(name, name): renamed_definitions(schema, names) for name, schema in theirs.items()},
        right.title,
        right.description,
    )


def numbered(name: str, taken: Mapping[str, Any] | set[str], first: int = 1) -> str:
    """Give `name_n`, `n` the smallest number from `first` such that it is not taken."""
    number = first
    while f"{name}_{number}" in taken:
        number += 1
    return f"{name}_{number}"


def _same(left: Mapping[str, Any], right: Mapping[str, Any]) -> set[str]:
    """Give the names that mean the same on both sides: equal, and all they refer to is."""
    same = {name for name in right if name in left and json_equal(left[name], right[name])}
    needs = {name: {definition_of(reference) for reference in references(right[name])} for name in same}
    while True:
        broken = {name for name in same if any(need in right and need not in same for need in needs[name])}
        if not broken:
            return same
        same -= broken
