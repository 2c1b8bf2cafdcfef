"""What several schemas say of each part of a value: of each key of an object, of each item of an array."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from synmod.data.schemas.patterns import compiled

from .evaluated import evaluated_items, evaluated_keys

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from synmod.data.schemas.check_budget import CheckBudget

    from .checker import Checker


def said_of_keys(
    schemas: list[dict[str, Any]], json: Mapping[str, Any], checker: Checker, budget: CheckBudget
) -> Iterator[tuple[str, list[Any]]]:
    """Give each key with the schemas that its value must satisfy; False where there must be no such key."""
    evaluated = [_evaluated_keys(schema, json, checker, budget) for schema in schemas]
    for name in json:
        budget.spend(len(schemas))
        yield (
            name,
            [
                said
                for schema, known in zip(schemas, evaluated, strict=True)
                for said in _said_of_key(schema, name, known, budget)
            ],
        )


def said_of_items(
    schemas: list[dict[str, Any]], json: list[Any], checker: Checker, budget: CheckBudget
) -> Iterator[tuple[int, list[Any]]]:
    """Give each index with the schemas that its item must satisfy; False where there must be none."""
    evaluated = [_evaluated_items(schema, json, checker, budget) for schema in schemas]
    for index in range(len(json)):
        budget.spend(len(schemas))
        yield (
            index,
            [
                said
                for schema, known in zip(schemas, evaluated, strict=True)
                for said in _said_of_item(schema, index, index in known)
            ],
        )


def _evaluated_keys(
    schema: Mapping[str, Any], json: Mapping[str, Any], checker: Checker, budget: CheckBudget
) -> set[str]:
    if "unevaluatedProperties" not in schema:
        return set()
    others = {keyword: value for keyword, value in schema.items() if keyword != "unevaluatedProperties"}
    return evaluated_keys(others, json, checker, budget)


def _evaluated_items(schema: Mapping[str, Any], json: list[Any], checker: Checker, budget: CheckBudget) -> set[int]:
    if "unevaluatedItems" not in schema:
        return set()
    others = {keyword: value for keyword, value in schema.items() if keyword != "unevaluatedItems"}
    return evaluated_items(others, json, checker, budget)


def _said_of_key(schema: Mapping[str, Any], name: str, evaluated: set[str], budget: CheckBudget) -> Iterator[Any]:
    known = False
    if name in schema.get("properties", ()):
        known = True
        yield schema["properties"][name]
    for source, part in schema.get("patternProperties", {}).items():
        pattern = compiled(source)
        budget.spend(pattern.checks(name))
        if pattern.found_in(name):
            known = True
            yield part
    if not known:
        yield schema.get("additionalProperties", True)
    if name not in evaluated:
        yield schema.get("unevaluatedProperties", True)


def _said_of_item(schema: Mapping[str, Any], index: int, evaluated: bool) -> Iterator[Any]:
    prefix = schema.get("prefixItems", ())
    yield prefix[index] if index < len(prefix) else schema.get("items", True)
    if not evaluated:
        yield schema.get("unevaluatedItems", True)
