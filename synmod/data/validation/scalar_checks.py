"""Checks of strings and numbers."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

from synmod.data.schemas.patterns import compiled

if TYPE_CHECKING:
    from synmod.data.schemas.check_budget import CheckBudget

    from .check import Check


def string_checks(schema: dict[str, Any]) -> list[Check]:
    """Compile the keywords that ask something of a string."""
    checks: list[Check] = []
    if "minLength" in schema:
        least = schema["minLength"]
        checks.append(lambda text, _: len(text) >= least)
    if "maxLength" in schema:
        most = schema["maxLength"]
        checks.append(lambda text, _: len(text) <= most)
    if "pattern" in schema:
        pattern = compiled(schema["pattern"])

        def matches(text: str, budget: CheckBudget) -> bool:
            budget.spend(pattern.checks(text) - 1)
            return pattern.found_in(text)

        checks.append(matches)
    return checks


def number_checks(schema: dict[str, Any]) -> list[Check]:
    """Compile the keywords that ask something of a number."""
    checks: list[Check] = []
    if "minimum" in schema:
        low = schema["minimum"]
        checks.append(lambda number, _: number >= low)
    if "maximum" in schema:
        high = schema["maximum"]
        checks.append(lambda number, _: number <= high)
    if "exclusiveMinimum" in schema:
        under = schema["exclusiveMinimum"]
        checks.append(lambda number, _: number > under)
    if "exclusiveMaximum" in schema:
        over = schema["exclusiveMaximum"]
        checks.append(lambda number, _: number < over)
    if "multipleOf" in schema:
        step = schema["multipleOf"]
        checks.append(lambda number, _: is_multiple(number, step))
    return checks


def is_multiple(number: float, step: float) -> bool:
    """Divide as the jsonschema library does: in floats if the step is one, exactly where floats overflow."""
    try:
        if type(step) is int:
            return not number % step
        quotient = number / step
        return int(quotient) == quotient
    except OverflowError:
        return (Fraction(number) / Fraction(step)).denominator == 1
