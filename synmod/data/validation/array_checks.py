"""Checks of arrays."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any

from synmod.data.schemas.check_budget import count_values

from .check import ANYTHING
from .equality import all_differ
from .evaluated import evaluated_items

if TYPE_CHECKING:
    from collections.abc import Mapping

    from synmod.data.schemas.check_budget import CheckBudget

    from .check import Check, Compiler, Node


def array_checks(schema: Mapping[str, Any], compiler: Compiler) -> list[Check]:
    """Compile the keywords that ask something of an array."""
    checks: list[Check] = []
    if "minItems" in schema:
        least = schema["minItems"]
        checks.append(lambda items, _: len(items) >= least)
    if "maxItems" in schema:
        most = schema["maxItems"]
        checks.append(lambda items, _: len(items) <= most)
    prefix = [compiler.node(part) for part in schema.get("prefixItems", ())]
    if any(node is not ANYTHING for node in prefix):
        checks.append(_prefix_items(prefix))
    if "items" in schema and (rest := compiler.node(schema["items"])) is not ANYTHING:
        checks.append(_items(rest, len(prefix)) if prefix else _all_items(rest))
    if "contains" in schema:
        checks.append(_contains(compiler.node(schema["contains"]), schema))
    if schema.get("uniqueItems"):
        checks.append(_unique_items)
    if "unevaluatedItems" in schema:
        checks.append(_unevaluated_items(schema, compiler))
    return checks


def _all_items(node: Node) -> Check:
    def all_items(items: list[Any], budget: CheckBudget) -> bool:
        budget.spend(len(items))
        accepts = node.accepts
        for item in items:
            if type(item) not in accepts:
                budget.left += 1  # the node counts for itself
                if not node.check(item, budget):
                    return False
        return True

    return all_items


def _items(node: Node, start: int) -> Check:
    return lambda items, budget: all(node.check(item, budget) for item in islice(items, start, None))


def _prefix_items(nodes: list[Node]) -> Check:
    return lambda items, budget: all(node.check(item, budget) for node, item in zip(nodes, items, strict=False))


def _contains(node: Node, schema: Mapping[str, Any]) -> Check:
    least, most = schema.get("minContains", 1), schema.get("maxContains")

    def contains(items: list[Any], budget: CheckBudget) -> bool:
        budget.spend(len(items) // 8)
        found = sum(node.check(item, budget) for item in items)
        return found >= least and (most is None or found <= most)

    return contains


def _unique_items(items: list[Any], budget: CheckBudget) -> bool:
    budget.spend(count_values(items) - 1)
    return all_differ(items)


def _unevaluated_items(schema: Mapping[str, Any], compiler: Compiler) -> Check:
    node = compiler.node(schema["unevaluatedItems"])
    others = {keyword: value for keyword, value in schema.items() if keyword != "unevaluatedItems"}

    def unevaluated_items(items: list[Any], budget: CheckBudget) -> bool:
        known = evaluated_items(others, items, compiler, budget)
        return all(index in known or node.check(item, budget) for index, item in enumerate(items))

    return unevaluated_items
