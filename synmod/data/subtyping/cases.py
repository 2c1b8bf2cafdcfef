"""The left side of a subtype question, taken apart into cases, and what is known of the values of one case."""

from __future__ import annotations

from math import ceil, floor
from typing import TYPE_CHECKING, Any, Final

from synmod.data.schemas.patterns import compiled
from synmod.data.validation.checker import ALL_KINDS, kinds_of
from synmod.leaves.frozen import is_object

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from synmod.data.validation.checker import Checker

MAX_CASES: Final = 256

_FINITE: Final[dict[str, list[Any]]] = {"null": [None], "boolean": [True, False]}


class Case:
    """Values that satisfy all of some schemas, and are of certain kinds."""

    def __init__(self, parts: Iterable[Any], kinds: frozenset[str] = ALL_KINDS) -> None:
        given = list(parts)
        self.parts: list[dict[str, Any]] = [part for part in given if is_object(part)]
        self.kinds = kinds.intersection(*(kinds_of(part) for part in self.parts if "type" in part))
        if any(part is False for part in given):
            self.kinds = frozenset[str]()

    def only(self, kind: str) -> Case:
        """Give the values of one kind."""
        return Case(self.parts, self.kinds & {kind})

    def members(self) -> list[Any] | None:
        """Give a list that holds every value of the case; None where none is known."""
        for part in self.parts:
            if "const" in part:
                return [part["const"]]
            if "enum" in part:
                return part["enum"]
        if self.kinds <= _FINITE.keys():
            return [value for kind in self.kinds for value in _FINITE[kind]]
        return None

    def values(self, keyword: str) -> list[Any]:
        """Give what a keyword says wherever it stands."""
        return [part[keyword] for part in self.parts if keyword in part]

    def low(self) -> tuple[Any, bool] | None:
        """Give the lower bound of numbers, and whether it is excluded itself."""
        bounds = [(low, False) for low in self.values("minimum")]
        bounds += [(low, True) for low in self.values("exclusiveMinimum")]
        if not bounds:
            return None
        low, excluded = max(bounds)
        if "fraction" not in self.kinds:
            return (floor(low) + 1 if excluded else ceil(low)), False
        return low, excluded

    def high(self) -> tuple[Any, bool] | None:
        """Give the upper bound of numbers, and whether it is excluded itself."""
        bounds = [(-high, False) for high in self.values("maximum")]
        bounds += [(-high, True) for high in self.values("exclusiveMaximum")]
        if not bounds:
            return None
        low, excluded = max(bounds)
        if "fraction" not in self.kinds:
            return (ceil(-low) - 1 if excluded else floor(-low)), False
        return -low, excluded

    def required(self) -> set[str]:
        """Give the keys that are always there."""
        return {name for names in self.values("required") for name in names}

    def declared(self) -> set[str]:
        """Give the keys that are named anywhere."""
        return {name for names in self.values("properties") for name in names}

    def of_key(self, name: str) -> list[Any]:
        """Give the schemas that the value of a key satisfies."""
        found: list[Any] = []
        for part in self.parts:
            known = False
            if name in part.get("properties", ()):
                known = True
                found.append(part["properties"][name])
            for source, schema in part.get("patternProperties", {}).items():
                if compiled(source).found_in(name):
                    known = True
                    found.append(schema)
            if not known and "additionalProperties" in part:
                found.append(part["additionalProperties"])
        return found

    def of_other_keys(self, patterns: Iterable[str] = ()) -> list[Any]:
        """Give the schemas of the value of a key that is nowhere named, and matches none of the patterns."""
        excluded = frozenset(patterns)
        return [
            part["additionalProperties"]
            for part in self.parts
            if "additionalProperties" in part and excluded.issuperset(part.get("patternProperties", ()))
        ]

    def of_item(self, index: int) -> list[Any]:
        """Give the schemas that the item at an index satisfies."""
        found: list[Any] = []
        for part in self.parts:
            prefix = part.get("prefixItems", ())
            if index < len(prefix):
                found.append(prefix[index])
            elif "items" in part:
                found.append(part["items"])
        return found

    def longest_prefix(self) -> int:
        """Give the index from which on all items satisfy the same schemas."""
        return max((len(prefix) for prefix in self.values("prefixItems")), default=0)

    def most_items(self) -> float:
        """Give the greatest number of items."""
        closed = [len(part.get("prefixItems", ())) for part in self.parts if part.get("items") is False]
        return min([*self.values("maxItems"), *closed], default=float("inf"))


def cases_of(checker: Checker, schemas: Iterable[Any]) -> list[Case]:
    """Take alternatives apart: a value that satisfies all schemas is in one of the cases."""
    whole = {id(part): part for schema in schemas for part in checker.together(schema)}
    open_cases = [(whole, [*_choices(whole.values())])]
    cases: list[Case] = []
    while open_cases:
        parts, choices = open_cases.pop()
        if not choices or len(open_cases) + len(cases) + len(choices[-1]) > MAX_CASES:
            cases.append(Case(parts.values()))
            continue
        *choices, arms = choices
        for arm in arms:
            more = {id(part): part for part in checker.together(arm) if id(part) not in parts}
            open_cases.append((parts | more, [*choices, *_choices(more.values())]))
    return cases


def _choices(parts: Iterable[Any]) -> Iterator[list[Any]]:
    """Give the lists of alternatives of which a value satisfies at least one."""
    for part in parts:
        if is_object(part):
            yield from (part[keyword] for keyword in ("anyOf", "oneOf") if keyword in part)
