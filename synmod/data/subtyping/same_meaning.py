"""Whether two subschemas ask the same, annotations and the names of definitions apart."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from synmod.data.schemas.keywords import ASSERTIONS, ONE_SUBSCHEMA, SUBSCHEMA_LISTS, SUBSCHEMA_MAPS
from synmod.leaves.frozen import is_array, is_object, json_equal

if TYPE_CHECKING:
    from synmod.data.validation.checker import Checker

_UNORDERED: Final = frozenset({"required", "type"})


def same_meaning(left: Checker, a: Any, right: Checker, b: Any) -> bool:
    """Compare two subschemas of two schemas keyword by keyword, references followed; no recursion."""
    pending: list[tuple[Any, Any]] = [(a, b)]
    compared: set[tuple[int, int]] = set()
    while pending:
        a, b = pending.pop()
        a, b = _asked(left, a), _asked(right, b)
        if (id(a), id(b)) in compared:
            continue
        compared.add((id(a), id(b)))
        if not is_object(a) or not is_object(b):
            if a is not b:
                return False
            continue
        keywords = ASSERTIONS.intersection(a)
        if keywords != ASSERTIONS.intersection(b):
            return False
        for keyword in keywords:
            pairs = (
                [(left.target(a), right.target(b))] if keyword == "$ref" else _pairs(keyword, a[keyword], b[keyword])
            )
            if pairs is None:
                return False
            pending.extend(pairs)
    return True


def _asked(checker: Checker, schema: Any) -> Any:
    """Follow bare references; what asks nothing is True."""
    schema = checker.behind_references(schema)
    return True if is_object(schema) and ASSERTIONS.isdisjoint(schema) else schema


def _pairs(keyword: str, a: Any, b: Any) -> list[tuple[Any, Any]] | None:
    """Give the subschemas that must ask the same for a keyword to ask the same; None if it cannot."""
    if keyword in ONE_SUBSCHEMA:
        return [(a, b)]
    if keyword in SUBSCHEMA_LISTS:
        return list(zip(a, b, strict=True)) if len(a) == len(b) else None
    if keyword in SUBSCHEMA_MAPS:
        return [(part, b[name]) for name, part in a.items()] if a.keys() == b.keys() else None
    if keyword in _UNORDERED and is_array(a) and is_array(b):
        return [] if set(a) == set(b) else None
    return [] if json_equal(a, b) else None
