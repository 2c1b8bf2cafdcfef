"""Equality as JSON Schema means it: 1 and 1.0 are equal, 1 and true are not; and telling it by a lookup."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from synmod.leaves.frozen import is_array, is_object

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable


def key_of(json: Any) -> Hashable:
    """Give a key that is equal for equal values only."""
    if type(json) is bool:
        return bool, json
    if is_object(json):
        return dict, frozenset((name, key_of(part)) for name, part in json.items())
    if is_array(json):
        return list, tuple(map(key_of, json))
    return json


def all_differ(items: Iterable[Any]) -> bool:
    """Tell whether no two items are equal."""
    seen: set[Hashable] = set()
    for item in items:
        key = key_of(item)
        if key in seen:
            return False
        seen.add(key)
    return True
