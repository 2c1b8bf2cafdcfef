"""Checks that concern values of every kind: members of an enum, and combinations of subschemas."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from synmod.data.schemas.check_budget import count_values
from synmod.leaves.frozen import CONTAINERS

from .equality import key_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from synmod.data.schemas.check_budget import CheckBudget

    from .check import Check, Compiler, Node


def combination_checks(schema: Mapping[str, Any], compiler: Compiler) -> list[Check]:
    """Compile the keywords that ask something of any value; `type`, `allOf` and `$ref` apart."""
    checks: list[Check] = []
    if "const" in schema:
        checks.append(_among([schema["const"]]))
    if "enum" in schema:
        checks.append(_among(schema["enum"]))
    if "anyOf" in schema:
        checks.append(_kept(_any_of([compiler.node(arm) for arm in arms_of(schema, compiler)])))
    if "oneOf" in schema:
        checks.append(_kept(_one_of([compiler.node(arm) for arm in schema["oneOf"]])))
    if "not" in schema:
        checks.append(_kept(_not(compiler.node(schema["not"]))))
    if "if" in schema and ("then" in schema or "else" in schema):
        nodes = (compiler.node(schema.get(keyword, True)) for keyword in ("if", "then", "else"))
        checks.append(_kept(_if_then_else(*nodes)))
    return checks


def arms_of(schema: Mapping[str, Any], compiler: Compiler) -> list[Any]:
    """Give the alternatives of `anyOf`; an arm that is nothing but alternatives is replaced by them."""
    arms: list[Any] = []
    pending: list[Any] = [schema["anyOf"]]
    seen: set[int] = set()
    while pending:
        for arm in pending.pop():
            alternatives = compiler.alternatives(arm)
            if alternatives is None:
                arms.append(arm)
            elif id(alternatives) not in seen:
                seen.add(id(alternatives))
                pending.append(alternatives)
    return arms


def _among(members: Iterable[Any]) -> Check:
    """Look a value up among the members of an enum."""
    keys = frozenset(map(key_of, members))
    containers = any(isinstance(member, CONTAINERS) for member in members)

    def among(value: Any, budget: CheckBudget) -> bool:
        if isinstance(value, CONTAINERS):
            if not containers:
                return False
            budget.spend(count_values(value))
        return key_of(value) in keys

    return among


def _any_of(nodes: list[Node]) -> Check:
    def any_of(value: Any, budget: CheckBudget) -> bool:
        for node in nodes:  # noqa: SIM110  (any() of a generator costs twice the time)
            if node.check(value, budget):
                return True
        return False

    return any_of


def _one_of(nodes: list[Node]) -> Check:
    def one_of(value: Any, budget: CheckBudget) -> bool:
        valid = False
        for node in nodes:
            if node.check(value, budget):
                if valid:
                    return False
                valid = True
        return valid

    return one_of


def _not(node: Node) -> Check:
    return lambda value, budget: not node.check(value, budget)


def _if_then_else(condition: Node, then: Node, otherwise: Node) -> Check:
    def if_then_else(value: Any, budget: CheckBudget) -> bool:
        return (then if condition.check(value, budget) else otherwise).check(value, budget)

    return if_then_else


def _kept(check: Callable[[Any, CheckBudget], bool]) -> Check:
    """Keep the verdict on a container: alternatives with a recursive part in common check that once, not 2^n times."""

    def kept(value: Any, budget: CheckBudget) -> bool:
        if not isinstance(value, CONTAINERS):
            return check(value, budget)
        key = (check, id(cast("object", value)))
        verdict = budget.verdicts.get(key)
        if verdict is None:
            verdict = budget.verdicts[key] = check(value, budget)
        return verdict

    return kept
