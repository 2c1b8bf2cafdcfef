"""Checks of objects."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from synmod.data.schemas.patterns import compiled

from .check import ANYTHING
from .evaluated import evaluated_keys

if TYPE_CHECKING:
    from collections.abc import Mapping

    from synmod.data.schemas.check_budget import CheckBudget
    from synmod.data.schemas.patterns import Pattern

    from .check import Check, Compiler, Node


def object_checks(schema: Mapping[str, Any], compiler: Compiler) -> list[Check]:
    """Compile the keywords that ask something of an object."""
    checks: list[Check] = []
    if "required" in schema:
        checks.append(_required(schema["required"]))
    if "minProperties" in schema:
        least = schema["minProperties"]
        checks.append(lambda json, _: len(json) >= least)
    if "maxProperties" in schema:
        most = schema["maxProperties"]
        checks.append(lambda json, _: len(json) <= most)
    if "dependentRequired" in schema:
        checks.append(_dependent_required(schema["dependentRequired"]))
    if "propertyNames" in schema:
        checks.append(_property_names(compiler.node(schema["propertyNames"])))
    checks.extend(_properties(schema, compiler))
    if "dependentSchemas" in schema:
        dependents = {name: compiler.node(part) for name, part in schema["dependentSchemas"].items()}
        checks.append(_dependent_schemas(dependents))
    if "unevaluatedProperties" in schema:
        checks.append(_unevaluated_properties(schema, compiler))
    return checks


def _required(names: list[str]) -> Check:
    def required(json: dict[str, Any], _: CheckBudget) -> bool:
        for name in names:  # noqa: SIM110  (all() of a generator costs twice the time)
            if name not in json:
                return False
        return True

    return required


def _dependent_required(names: Mapping[str, list[str]]) -> Check:
    def dependent_required(json: dict[str, Any], budget: CheckBudget) -> bool:
        for name in names.keys() & json.keys():
            budget.spend(len(names[name]) // 8)
            if not all(other in json for other in names[name]):
                return False
        return True

    return dependent_required


def _dependent_schemas(nodes: Mapping[str, Node]) -> Check:
    return lambda json, budget: all(nodes[name].check(json, budget) for name in nodes.keys() & json.keys())


def _property_names(node: Node) -> Check:
    return lambda json, budget: all(node.check(name, budget) for name in json)


def _properties(schema: Mapping[str, Any], compiler: Compiler) -> list[Check]:
    """Compile `properties`, `patternProperties` and `additionalProperties` into one pass over the keys, or none."""
    nodes = {name: compiler.node(part) for name, part in schema.get("properties", {}).items()}
    extra = compiler.node(schema.get("additionalProperties", True))
    patterns = schema.get("patternProperties")
    if patterns:
        by_pattern = [(compiled(source), compiler.node(part)) for source, part in patterns.items()]
        return [_properties_with_patterns(nodes, by_pattern, extra)]
    if extra is ANYTHING and all(node is ANYTHING for node in nodes.values()):
        return []
    return [_all_properties(nodes, extra)]


def _all_properties(nodes: dict[str, Node], extra: Node) -> Check:
    """Check the declared keys, and all others against one schema, which may be false."""

    def all_properties(json: dict[str, Any], budget: CheckBudget) -> bool:
        budget.spend(len(json))
        for name, part in json.items():
            node = nodes.get(name, extra)
            if type(part) not in node.accepts:
                budget.left += 1  # the node counts for itself
                if not node.check(part, budget):
                    return False
        return True

    return all_properties


def _properties_with_patterns(nodes: dict[str, Node], patterns: list[tuple[Pattern, Node]], extra: Node) -> Check:
    """Check each key as declared and against every pattern that it matches, and only if neither, as an extra one."""

    def properties_with_patterns(json: dict[str, Any], budget: CheckBudget) -> bool:
        for name, part in json.items():
            node = nodes.get(name)
            known = node is not None
            if node is not None and not node.check(part, budget):
                return False
            for pattern, node in patterns:
                budget.spend(pattern.checks(name))
                if pattern.found_in(name):
                    known = True
                    if not node.check(part, budget):
                        return False
            if not known and not extra.check(part, budget):
                return False
        return True

    return properties_with_patterns


def _unevaluated_properties(schema: Mapping[str, Any], compiler: Compiler) -> Check:
    node = compiler.node(schema["unevaluatedProperties"])
    others = {keyword: value for keyword, value in schema.items() if keyword != "unevaluatedProperties"}

    def unevaluated_properties(json: dict[str, Any], budget: CheckBudget) -> bool:
        known = evaluated_keys(others, json, compiler, budget)
        return all(name in known or node.check(part, budget) for name, part in json.items())

    return unevaluated_properties
