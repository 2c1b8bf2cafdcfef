"""Structural subtyping: whether a value that satisfies one schema is known to satisfy another, without looking at it.

Sound and incomplete: True only where it is proven. A pair that comes up again below a property or an item is taken for
proven, which is right because values are finite (induction over their depth).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from synmod.errors import SchemaTooComplex
from synmod.leaves.frozen import frozen_dict, is_object

from .check import ANYTHING
from .check_budget import CheckBudget
from .keywords import ASSERTIONS
from .patterns import compiled
from .same_meaning import same_meaning
from .schema import Schema, schema_from
from .subtype_cases import Case, cases_of
from .subtype_rules import CONCERNED, RULES
from .validate import checker_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from .checker import Checker

_MAX_STEPS: Final = 20_000
_MAX_KEPT: Final = 1_024


def is_subschema(sub: Any, sup: Any) -> bool:
    """Tell whether every value that is valid for `sub` is known to be valid for `sup`.

    Args:
        sub: A schema: a `Schema`, a dict, True, or a data model, which stands for its schema.
        sup: Another.

    Returns:
        True if it is proven; False if it is wrong, or cannot be proven. Annotations do not count.

    Raises:
        SchemaError: One of them is no schema that could be declared.

    Example:
        >>> is_subschema({"type": "integer"}, {"type": ["number", "null"]})
        True

    Source: TypeScript's assignability; differs: decided from JSON Schema, recursive types by induction.
    """
    if sub is sup:
        return True
    try:
        return sub._subtypes[sup._serial]
    except (AttributeError, KeyError):
        return _decided(_schema(sub), _schema(sup))


def _schema(x: Any) -> Schema:
    """Take a schema as it is given, or that of a data model."""
    get_schema = None if isinstance(x, dict) else getattr(x, "get_schema", None)
    return x if isinstance(x, Schema) else schema_from(get_schema() if get_schema else x, root="any")


def _decided(sub: Schema, sup: Schema) -> bool:
    """Decide, and keep the answer with `sub`."""
    if sub is sup:
        return True
    proven = _Proof(checker_of(sub), checker_of(sup)).proves()
    if len(sub._subtypes) >= _MAX_KEPT:
        sub._subtypes = {}
    sub._subtypes[sup._serial] = proven
    return proven


class _GaveUp(Exception):
    """The proof takes too many steps."""


class _Proof:
    """An attempt to prove that one schema is a subschema of another."""

    def __init__(self, left: Checker, right: Checker) -> None:
        self._left = left
        self._right = right
        self._known: dict[tuple[frozenset[int], int], bool] = {}
        self._assumed: list[tuple[frozenset[int], int]] = []
        self._steps = 0
        self._budget = CheckBudget()

    def proves(self) -> bool:
        """Try; what is too complex to decide is not proven."""
        try:
            return same_meaning(self._left, self._left.schema, self._right, self._right.schema) or self._below(
                [self._left.schema], self._right.schema
            )
        except (_GaveUp, SchemaTooComplex, RecursionError):
            return False

    def _below(self, schemas: list[Any], sup: Any) -> bool:
        """Prove that what satisfies all of `schemas` satisfies `sup`; while that is under way, take it for proven."""
        if self._right.node(sup) is ANYTHING or False in schemas:
            return True
        pair = (frozenset(map(id, schemas)), id(sup))
        known = self._known.get(pair)
        if known is not None:
            return known
        self._known[pair] = True
        start = len(self._assumed)
        self._assumed.append(pair)
        demands = self._right.together(sup)
        proven = all(self._case_below(case, demands) for case in cases_of(self._left, schemas))
        if not proven:  # what was proven since then may rest on the assumption
            for other in self._assumed[start:]:
                del self._known[other]
            del self._assumed[start:]
            self._known[pair] = False
        return proven

    def _case_below(self, case: Case, demands: Iterable[Any]) -> bool:
        """Prove that the values of a case satisfy all demands."""
        self._steps += 1
        if self._steps > _MAX_STEPS:
            raise _GaveUp
        if not case.kinds:
            return True
        members = case.members()
        if members is not None:
            return all(self._satisfies(member, demands) for member in members if self._is_in(case, member))
        return all(demand is True or (is_object(demand) and self._meets(case, demand)) for demand in demands)

    def _is_in(self, case: Case, member: Any) -> bool:
        return all(self._left.node(part).check(member, self._budget) for part in case.parts)

    def _satisfies(self, member: Any, demands: Iterable[Any]) -> bool:
        return all(self._right.node(demand).check(member, self._budget) for demand in demands)

    def _meets(self, case: Case, demand: Mapping[str, Any]) -> bool:
        """Prove every keyword of one schema."""
        for keyword, value in demand.items():
            if keyword in _TOLD_BESIDE or keyword not in ASSERTIONS:
                continue
            if not case.kinds & CONCERNED.get(keyword, case.kinds):
                continue
            if keyword in RULES:
                proven = RULES[keyword](case, value)
            else:
                proven = _OF_PARTS.get(keyword, _Proof._stands_equal)(self, case, demand, keyword)
            if not proven:
                return False
        return True

    def _stands_equal(self, case: Case, demand: Mapping[str, Any], keyword: str) -> bool:
        """Find the keyword with the same meaning on the left."""
        names = (keyword, *_BESIDE.get(keyword, ()))
        wanted = {name: demand[name] for name in names if name in demand}
        return any(
            same_meaning(self._left, {name: part[name] for name in names if name in part}, self._right, wanted)
            for part in case.parts
            if keyword in part
        )

    def _stands_whole(self, case: Case, demand: Mapping[str, Any], _: str) -> bool:
        """Find the whole schema on the left: what is not evaluated depends on everything beside it."""
        return any(same_meaning(self._left, part, self._right, demand) for part in case.parts)

    def _any_of(self, case: Case, demand: Mapping[str, Any], keyword: str) -> bool:
        """Prove one arm, or for each kind of value one arm."""
        arms = [self._right.together(arm) for arm in demand[keyword]]
        if any(self._case_below(case, arm) for arm in arms) or self._stands_equal(case, demand, keyword):
            return True
        return len(case.kinds) > 1 and all(
            any(self._case_below(case.only(kind), arm) for arm in arms) for kind in case.kinds
        )

    def _properties(self, case: Case, demand: Mapping[str, Any], _: str) -> bool:
        return all(self._below(case.of_key(name), schema) for name, schema in demand["properties"].items())

    def _additional_properties(self, case: Case, demand: Mapping[str, Any], keyword: str) -> bool:
        """Prove the keys that only the left declares, and those that nobody does."""
        sources = demand.get("patternProperties", {})
        patterns = [compiled(source) for source in sources]
        names = [
            name
            for name in sorted(case.declared() - demand.get("properties", {}).keys())
            if not any(pattern.found_in(name) for pattern in patterns)
        ]
        others = case.of_other_keys(sources)
        return all(self._below(schemas, demand[keyword]) for schemas in (*map(case.of_key, names), others))

    def _property_names(self, case: Case, demand: Mapping[str, Any], keyword: str) -> bool:
        if False in case.of_other_keys():
            return all(self._satisfies(name, [demand[keyword]]) for name in case.declared())
        return self._below([*case.values(keyword), _STRING], demand[keyword])

    def _prefix_items(self, case: Case, demand: Mapping[str, Any], keyword: str) -> bool:
        most = case.most_items()
        return all(
            index >= most or self._below(case.of_item(index), schema) for index, schema in enumerate(demand[keyword])
        )

    def _items(self, case: Case, demand: Mapping[str, Any], keyword: str) -> bool:
        """Prove the items behind the prefix on the right: those of a longer prefix on the left, then all others."""
        start = len(demand.get("prefixItems", ()))
        last = max(start, case.longest_prefix())
        most = case.most_items()
        return all(
            index >= most or self._below(case.of_item(index), demand[keyword]) for index in range(start, last + 1)
        )

    def _dependent_schemas(self, case: Case, demand: Mapping[str, Any], keyword: str) -> bool:
        return all(
            False in case.of_key(name) or self._case_below(case, self._right.together(schema))
            for name, schema in demand[keyword].items()
        ) or self._stands_equal(case, demand, keyword)


_STRING: Final = frozen_dict({"type": "string"})

_BESIDE: Final[Mapping[str, tuple[str, ...]]] = {
    "contains": ("minContains", "maxContains"),
    "if": ("then", "else"),
}
_TOLD_BESIDE: Final = frozenset({"$ref", "allOf", "else", "maxContains", "minContains", "then"})

_OF_PARTS: Final[Mapping[str, Callable[[_Proof, Case, Mapping[str, Any], str], bool]]] = {
    "additionalProperties": _Proof._additional_properties,
    "anyOf": _Proof._any_of,
    "dependentSchemas": _Proof._dependent_schemas,
    "items": _Proof._items,
    "prefixItems": _Proof._prefix_items,
    "properties": _Proof._properties,
    "propertyNames": _Proof._property_names,
    "unevaluatedItems": _Proof._stands_whole,
    "unevaluatedProperties": _Proof._stands_whole,
}
