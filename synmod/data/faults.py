"""What is wrong with a value: every fault with its place, what was wanted and what was got, in document order.

Slower than the checker, and asked only where that has found the value invalid.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from synmod.errors import Problem
from synmod.leaves.frozen import is_array, is_object
from synmod.leaves.paths import pointer
from synmod.leaves.suggest import did_you_mean

from .combination_checks import arms_of
from .evaluated import evaluated_items, evaluated_keys
from .keywords import ASSERTIONS
from .patterns import compiled
from .wanted import described, shown, wanted

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from .check_budget import CheckBudget
    from .checker import Checker
    from .keywords import Step

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
_BESIDE: Final[Mapping[str, tuple[str, ...]]] = {"contains": ("minContains", "maxContains")}
_CONSTANTS: Final = frozenset({"const", "enum"})
_SUGGESTED_AMONG: Final = 500


class Faults:
    """Collects the faults of one value, up to a limit."""

    def __init__(self, checker: Checker, budget: CheckBudget, limit: int) -> None:
        self._checker = checker
        self._budget = budget
        self._limit = limit
        self.found: list[Problem] = []

    def collect(self, schemas: Iterable[Any], json: Any, steps: tuple[Step, ...]) -> None:
        """Find the faults of a value for which at least one of the schemas does not hold."""
        parts = self._in_force(schemas, json)
        for part in parts:
            for text in self._own_faults(part, json) if is_object(part) else ("nothing here",):
                self._add(steps, text, json)
        for step, schemas_there, unknown in self._parts_of(parts, json):
            if len(self.found) >= self._limit:
                return
            there = (*steps, step)
            if unknown:
                self._add(there, unknown, json[step])
            failing = [schema for schema in schemas_there if not self._holds(schema, json[step])]
            if failing:
                self.collect(failing, json[step], there)

    def _add(self, steps: tuple[Step, ...], text: str, json: Any) -> None:
        problem = Problem(pointer(steps), text, shown(json))
        if len(self.found) < self._limit and problem not in self.found:
            self.found.append(problem)

    def _holds(self, schema: Any, json: Any) -> bool:
        return self._checker.node(schema).check(json, self._budget)

    def _in_force(self, schemas: Iterable[Any], json: Any) -> list[Any]:
        """Give all that must hold here: references, `allOf`, branches taken, and the one alternative that is meant."""
        parts: dict[int, Any] = {}
        pending = list(schemas)
        while pending:
            for part in self._checker.together(pending.pop(0)):
                if part is not True and id(part) not in parts:
                    parts[id(part)] = part
                    if is_object(part):
                        pending.extend(self._branches(part, json))
        return list(parts.values())

    def _branches(self, part: Mapping[str, Any], json: Any) -> Iterator[Any]:
        if "if" in part:
            yield part.get("then" if self._holds(part["if"], json) else "else", True)
        if is_object(json):
            yield from (arm for name, arm in part.get("dependentSchemas", {}).items() if name in json)
        arm = self._likely_arm(part, json)
        if arm is not None:
            yield arm

    def _likely_arm(self, part: Mapping[str, Any], json: Any) -> Any:
        """Give the one alternative for containers of this kind, if none holds and the faults inside it tell more."""
        arms = arms_of(part, self._checker) if "anyOf" in part else part.get("oneOf", ())
        if not (is_object(json) or is_array(json)) or any(self._holds(arm, json) for arm in arms):
            return None
        likely = [arm for arm in arms if self._is_meant(arm, json)]
        return likely[0] if len(likely) == 1 else None

    def _is_meant(self, arm: Any, json: Any) -> bool:
        """Tell whether a container is of the kind of an alternative, and has the constants that tell it from others."""
        for part in self._checker.together(arm):
            if not is_object(part):
                return bool(part)
            if any(keyword in part and not self._passes(keyword, part, json) for keyword in ("type", "const", "enum")):
                return False
            told: dict[str, Any] = part.get("properties", {}) if is_object(json) else {}
            telling = [name for name, schema in told.items() if is_object(schema) and schema.keys() & _CONSTANTS]
            if not all(self._holds(told[name], json[name]) for name in telling if name in json):
                return False
        return True

    def _passes(self, keyword: str, part: Mapping[str, Any], json: Any) -> bool:
        """Check one keyword of a schema, with those that only make sense beside it."""
        alone = {name: part[name] for name in (keyword, *_BESIDE.get(keyword, ())) if name in part}
        return self._checker.compiled(alone)(json, self._budget)

    def _own_faults(self, part: Mapping[str, Any], json: Any) -> Iterator[str]:
        """Say what is wrong with the value itself, its parts apart."""
        for keyword in part:
            if keyword not in ASSERTIONS or keyword in _TOLD_ELSEWHERE or self._passes(keyword, part, json):
                continue
            if keyword not in ("anyOf", "oneOf") or self._likely_arm(part, json) is None:
                yield wanted(keyword, part, self._checker)
        if is_object(json):
            yield from (f"the key {name!r}" for name in part.get("required", ()) if name not in json)
            names = part.get("propertyNames", True)
            for name in json:
                if not self._holds(names, name):
                    yield f"keys that are {described(names, self._checker)}, and not {shown(name)}"

    def _parts_of(self, parts: list[Any], json: Any) -> Iterator[tuple[Step, list[Any], str]]:
        """Give each part of a container, what it must satisfy, and what to say if it has no place there at all."""
        speaking = [part for part in parts if is_object(part)]
        if is_object(json):
            known = {id(part): self._evaluated_keys(part, json) for part in speaking}
            names = [name for part in speaking for name in part.get("properties", ()) if name not in json]
            for name in json:
                self._budget.spend(len(speaking))
                said = [schema for part in speaking for schema in self._said_of_key(part, name, known[id(part)])]
                unknown = (
                    f"no key {name!r:.100}.{did_you_mean(name, names[:_SUGGESTED_AMONG])}" if False in said else ""
                )
                yield name, [schema for schema in said if schema is not False], unknown
        elif is_array(json):
            known = {id(part): self._evaluated_items(part, json) for part in speaking}
            for index in range(len(json)):
                self._budget.spend(len(speaking))
                said = [schema for part in speaking for schema in _said_of_item(part, index, known[id(part)])]
                yield index, [schema for schema in said if schema is not False], "no item" if False in said else ""

    def _evaluated_keys(self, part: Mapping[str, Any], json: Any) -> set[str]:
        if "unevaluatedProperties" not in part:
            return set()
        others = {name: value for name, value in part.items() if name != "unevaluatedProperties"}
        return evaluated_keys(others, json, self._checker, self._budget)

    def _evaluated_items(self, part: Mapping[str, Any], json: Any) -> set[int]:
        if "unevaluatedItems" not in part:
            return set()
        others = {name: value for name, value in part.items() if name != "unevaluatedItems"}
        return evaluated_items(others, json, self._checker, self._budget)

    def _said_of_key(self, part: Mapping[str, Any], name: str, evaluated: set[str]) -> Iterator[Any]:
        """Give the schemas that one schema has for the value of a key; False where there must be no such key."""
        known = False
        if name in part.get("properties", ()):
            known = True
            yield part["properties"][name]
        for source, schema in part.get("patternProperties", {}).items():
            pattern = compiled(source)
            self._budget.spend(pattern.checks(name))
            if pattern.found_in(name):
                known = True
                yield schema
        if not known:
            yield part.get("additionalProperties", True)
        if name not in evaluated:
            yield part.get("unevaluatedProperties", True)


def _said_of_item(part: Mapping[str, Any], index: int, evaluated: set[int]) -> Iterator[Any]:
    """Give the schemas that one schema has for an item; False where there must be none."""
    prefix = part.get("prefixItems", ())
    yield prefix[index] if index < len(prefix) else part.get("items", True)
    if index not in evaluated:
        yield part.get("unevaluatedItems", True)
