"""What the keywords in the place of a schema have evaluated, for `unevaluatedProperties` and `unevaluatedItems`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from synmod.data.schemas.patterns import compiled
from synmod.leaves.frozen import is_object

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from synmod.data.schemas.check_budget import CheckBudget

    from .check import Compiler


def evaluated_keys(
    schema: Mapping[str, Any], json: Mapping[str, Any], compiler: Compiler, budget: CheckBudget
) -> set[str]:
    """Give the keys of a valid object that some keyword in the place of `schema` speaks of."""
    known: set[str] = set()
    for part in _applied(schema, json, compiler, budget):
        if "additionalProperties" in part or "unevaluatedProperties" in part:
            return set(json)
        known.update(part.get("properties", {}).keys() & json.keys())
        for source in part.get("patternProperties", ()):
            pattern = compiled(source)
            budget.spend(sum(map(pattern.checks, json)))
            known.update(filter(pattern.found_in, json))
    return known


def evaluated_items(schema: Mapping[str, Any], json: list[Any], compiler: Compiler, budget: CheckBudget) -> set[int]:
    """Give the indices in a valid array that some keyword in the place of `schema` speaks of."""
    known: set[int] = set()
    for part in _applied(schema, json, compiler, budget):
        if "items" in part or "unevaluatedItems" in part:
            return set(range(len(json)))
        known.update(range(len(part.get("prefixItems", ()))))
        if "contains" in part:
            node = compiler.node(part["contains"])
            known.update(index for index, item in enumerate(json) if node.check(item, budget))
    return known


def _applied(
    schema: Mapping[str, Any], json: Any, compiler: Compiler, budget: CheckBudget
) -> Iterator[Mapping[str, Any]]:
    """Give the schema, and every schema in its place that the value is valid for; each once."""
    seen: set[int] = set()
    pending: list[Any] = [schema]
    while pending:
        part = pending.pop()
        if not is_object(part) or id(part) in seen:
            continue
        seen.add(id(part))
        budget.spend(1)
        yield part
        if "$ref" in part:
            pending.append(compiler.target(part))
        pending.extend(part.get("allOf", ()))
        arms = (*part.get("anyOf", ()), *part.get("oneOf", ()))
        pending.extend(arm for arm in arms if compiler.node(arm).check(json, budget))
        if "if" in part:
            holds = compiler.node(part["if"]).check(json, budget)
            pending.extend([part["if"], part.get("then")] if holds else [part.get("else")])
        if is_object(json):
            pending.extend(arm for name, arm in part.get("dependentSchemas", {}).items() if name in json)
