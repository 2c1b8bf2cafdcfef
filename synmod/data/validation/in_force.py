"""Which schemas must hold for a value, branches taken and the alternative that is meant included, and which do not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from synmod.leaves.frozen import is_array, is_object

from .combination_checks import arms_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from synmod.data.schemas.check_budget import CheckBudget

    from .checker import Checker

_BESIDE: Final[Mapping[str, tuple[str, ...]]] = {"contains": ("minContains", "maxContains")}
_CONSTANTS: Final = frozenset({"const", "enum"})


class InForce:
    """Asks the checker of a schema about values of one validation."""

    def __init__(self, checker: Checker, budget: CheckBudget) -> None:
        self.checker = checker
        self.budget = budget

    def holds(self, schema: Any, json: Any) -> bool:
        """Tell whether a value satisfies a subschema."""
        return self.checker.node(schema).check(json, self.budget)

    def passes(self, keyword: str, schema: Mapping[str, Any], json: Any) -> bool:
        """Check one keyword of a schema alone, with those that only make sense beside it."""
        alone = {name: schema[name] for name in (keyword, *_BESIDE.get(keyword, ())) if name in schema}
        return self.checker.compiled(alone)(json, self.budget)

    def schemas(self, schemas: Iterable[Any], json: Any) -> list[Any]:
        """Give all that must hold: the schemas, references, `allOf`, branches taken, the one alternative meant."""
        found: dict[int, Any] = {}
        pending = list(schemas)
        while pending:
            for part in self.checker.together(pending.pop(0)):
                if part is not True and id(part) not in found:
                    found[id(part)] = part
                    if is_object(part):
                        pending.extend(self._branches(part, json))
        return list(found.values())

    def _branches(self, schema: Mapping[str, Any], json: Any) -> Iterator[Any]:
        if "if" in schema:
            yield schema.get("then" if self.holds(schema["if"], json) else "else", True)
        if is_object(json):
            yield from (arm for name, arm in schema.get("dependentSchemas", {}).items() if name in json)
        arm = self.meant_arm(schema, json)
        if arm is not None:
            yield arm

    def meant_arm(self, schema: Mapping[str, Any], json: Any) -> Any:
        """Give the one alternative for containers of this kind, if none holds: the faults inside it tell more."""
        arms = arms_of(schema, self.checker) if "anyOf" in schema else schema.get("oneOf", ())
        if not (is_object(json) or is_array(json)) or any(self.holds(arm, json) for arm in arms):
            return None
        meant = [arm for arm in arms if self._is_meant(arm, json)]
        return meant[0] if len(meant) == 1 else None

    def _is_meant(self, arm: Any, json: Any) -> bool:
        """Tell whether a container is of the kind of an alternative, and has the constants that tell it from others."""
        for part in self.checker.together(arm):
            if not is_object(part):
                return bool(part)
            if any(keyword in part and not self.passes(keyword, part, json) for keyword in ("type", "const", "enum")):
                return False
            told: dict[str, Any] = part.get("properties", {}) if is_object(json) else {}
            telling = [name for name, schema in told.items() if is_object(schema) and schema.keys() & _CONSTANTS]
            if not all(self.holds(told[name], json[name]) for name in telling if name in json):
                return False
        return True
