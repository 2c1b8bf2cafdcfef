"""The attempt to prove that one schema is a subschema of another.

A pair that comes up again below a property or an item is taken for proven, which is right because values are finite
(induction over their depth), and is taken back where the proof that assumed it fails.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from synmod.data.schemas.check_budget import CheckBudget
from synmod.data.schemas.keywords import ASSERTIONS
from synmod.data.validation.check import ANYTHING
from synmod.errors import SchemaTooComplex
from synmod.leaves.frozen import is_object

from .cases import cases_of
from .parts import PART_RULES
from .rules import CONCERNED, RULES
from .same_meaning import same_meaning

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from synmod.data.validation.checker import Checker

    from .cases import Case

_MAX_STEPS: Final = 50_000

_BESIDE: Final[Mapping[str, tuple[str, ...]]] = {
    "contains": ("minContains", "maxContains"),
    "if": ("then", "else"),
}
_TOLD_BESIDE: Final = frozenset({"$ref", "allOf", "else", "maxContains", "minContains", "then"})


class _GaveUp(Exception):
    """The proof takes too many steps."""


class Proof:
    """One attempt; `left` is the schema that may be the narrower one."""

    def __init__(self, left: Checker, right: Checker) -> None:
        self.left = left
        self.right = right
        self._known: dict[tuple[frozenset[int], int], bool] = {}
        self._assumed: list[tuple[frozenset[int], int]] = []
        self._steps = 0
        self._budget = CheckBudget()

    def succeeds(self) -> bool:
        """Try; what is too complex to decide is not proven."""
        try:
            return same_meaning(self.left, self.left.schema, self.right, self.right.schema) or self.below(
                [self.left.schema], self.right.schema
            )
        except (_GaveUp, SchemaTooComplex, RecursionError):
            return False

    def below(self, schemas: list[Any], sup: Any) -> bool:
        """Prove that what satisfies all of `schemas` satisfies `sup`; while that is under way, take it for proven."""
        if self.right.node(sup) is ANYTHING or False in schemas:
            return True
        pair = (frozenset(map(id, schemas)), id(sup))
        known = self._known.get(pair)
        if known is not None:
            return known
        self._known[pair] = True
        start = len(self._assumed)
        self._assumed.append(pair)
        demands = self.right.together(sup)
        proven = all(self.case_below(case, demands) for case in cases_of(self.left, schemas))
        if not proven:  # what was proven since then may rest on the assumption
            for other in self._assumed[start:]:
                del self._known[other]
            del self._assumed[start:]
            self._known[pair] = False
        return proven

    def case_below(self, case: Case, demands: Iterable[Any]) -> bool:
        """Prove that the values of a case satisfy all demands."""
        self._steps += 1
        if self._steps > _MAX_STEPS:
            raise _GaveUp
        if not case.kinds:
            return True
        members = case.members()
        if members is not None:
            return all(self.satisfies(member, demands) for member in members if self._is_in(case, member))
        return all(demand is True or (is_object(demand) and self._meets(case, demand)) for demand in demands)

    def satisfies(self, member: Any, demands: Iterable[Any]) -> bool:
        """Check one value against schemas on the right."""
        return all(self.right.node(demand).check(member, self._budget) for demand in demands)

    def stands_equal(self, case: Case, demand: Mapping[str, Any], keyword: str) -> bool:
        """Find the keyword with the same meaning on the left."""
        names = (keyword, *_BESIDE.get(keyword, ()))
        wanted = {name: demand[name] for name in names if name in demand}
        return any(
            same_meaning(self.left, {name: part[name] for name in names if name in part}, self.right, wanted)
            for part in case.parts
            if keyword in part
        )

    def _is_in(self, case: Case, member: Any) -> bool:
        return all(self.left.node(part).check(member, self._budget) for part in case.parts)

    def _meets(self, case: Case, demand: Mapping[str, Any]) -> bool:
        """Prove every keyword of one schema that concerns the case."""
        for keyword, value in demand.items():
            if keyword not in ASSERTIONS or keyword in _TOLD_BESIDE:
                continue
            if case.kinds.isdisjoint(CONCERNED.get(keyword, case.kinds)):
                continue
            if keyword in RULES:
                proven = RULES[keyword](case, value)
            elif keyword in PART_RULES:
                proven = PART_RULES[keyword](self, case, demand)
            else:
                proven = self.stands_equal(case, demand, keyword)
            if not proven:
                return False
        return True
