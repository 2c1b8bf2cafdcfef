"""What is wrong with a value: every fault with its place, what was wanted and what was got, in document order.

Slower than the checker, and asked only where that has found the value invalid.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from synmod.data.schemas.keywords import ASSERTIONS
from synmod.errors import Problem
from synmod.leaves.frozen import is_array, is_object
from synmod.leaves.names import did_you_mean, pointer

from .in_force import InForce
from .parts_of_value import said_of_items, said_of_keys
from .wanted import described, shown, wanted

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from synmod.data.schemas.check_budget import CheckBudget
    from synmod.data.schemas.keywords import Step

    from .checker import Checker

# Faults of these are told where the parts of the value stand, or by the schemas they name.
_TOLD_ELSEWHERE: Final = frozenset(
    {
        "$ref",
        "additionalProperties",
        "allOf",
        "dependentSchemas",
        "else",
        "if",
        "items",
        "maxContains",
        "minContains",
        "patternProperties",
        "prefixItems",
        "properties",
        "propertyNames",
        "required",
        "then",
        "unevaluatedItems",
        "unevaluatedProperties",
    }
)
_OF_ITEMS: Final = frozenset({"items", "prefixItems", "unevaluatedItems"})
_OF_KEYS: Final = frozenset({"additionalProperties", "patternProperties", "properties", "unevaluatedProperties"})
_SUGGESTED_AMONG: Final = 500


class Faults:
    """Collects the faults of one value, up to a limit."""

    def __init__(self, checker: Checker, budget: CheckBudget, limit: int) -> None:
        self._force = InForce(checker, budget)
        self._limit = limit
        self.found: list[Problem] = []

    def collect(self, schemas: Iterable[Any], json: Any, steps: tuple[Step, ...]) -> None:
        """Find the faults of a value for which at least one of the schemas does not hold."""
        in_force = self._force.schemas(schemas, json)
        for schema in in_force:
            for text in self._own_faults(schema, json) if is_object(schema) else ("nothing here",):
                if len(self.found) >= self._limit:
                    return
                self._add(steps, text, json)
        for step, said in self._said_of_parts([schema for schema in in_force if is_object(schema)], json):
            if len(self.found) >= self._limit:
                return
            if False in said:
                self._add((*steps, step), self._no_place(step, in_force, json), json[step])
            failing = [part for part in said if part is not False and not self._force.holds(part, json[step])]
            if failing:
                self.collect(failing, json[step], (*steps, step))

    def _add(self, steps: tuple[Step, ...], text: str, json: Any) -> None:
        problem = Problem(pointer(steps), text, shown(json))
        if problem not in self.found and len(self.found) < self._limit:
            self.found.append(problem)

    def _own_faults(self, schema: Mapping[str, Any], json: Any) -> Iterator[str]:
        """Say what is wrong with the value itself, its parts apart."""
        checker = self._force.checker
        for keyword in schema:
            if keyword not in ASSERTIONS or keyword in _TOLD_ELSEWHERE or self._force.passes(keyword, schema, json):
                continue
            if keyword not in ("anyOf", "oneOf") or self._force.meant_arm(schema, json) is None:
                yield wanted(keyword, schema, checker)
        if is_object(json):
            yield from (f"the key {name!r}" for name in schema.get("required", ()) if name not in json)
            names = schema.get("propertyNames", True)
            for name in json if names is not True else ():
                if not self._force.holds(names, name):
                    yield f"keys that are {described(names, checker)}, and not {shown(name)}"

    def _said_of_parts(self, schemas: list[dict[str, Any]], json: Any) -> Iterator[tuple[Step, list[Any]]]:
        """Give each part of a container, and the schemas it must satisfy."""
        keywords = _OF_KEYS if is_object(json) else _OF_ITEMS
        schemas = [schema for schema in schemas if not keywords.isdisjoint(schema)]
        if not schemas:
            return
        if is_object(json):
            yield from said_of_keys(schemas, json, self._force.checker, self._force.budget)
        elif is_array(json):
            yield from said_of_items(schemas, json, self._force.checker, self._force.budget)

    def _no_place(self, step: Step, schemas: list[Any], json: Any) -> str:
        """Say that there must be no such part, and which key may have been meant."""
        if isinstance(step, int):
            return "no item"
        declared = [name for schema in schemas if is_object(schema) for name in schema.get("properties", ())]
        missing = [name for name in declared if name not in json]
        guess = did_you_mean(step, missing[:_SUGGESTED_AMONG])
        return f"no key {step!r:.100}{guess and f'.{guess}'}"
