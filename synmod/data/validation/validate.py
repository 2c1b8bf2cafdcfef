"""Validation: whether a value satisfies its schema, with the meaning of the jsonschema library, and if not, why."""

from __future__ import annotations

from typing import TYPE_CHECKING

from synmod.data.schemas.check_budget import CheckBudget
from synmod.errors import Problem, SchemaError, SchemaTooComplex

from .checker import Checker
from .faults import Faults
from .wanted import shown

if TYPE_CHECKING:
    from synmod.data.schemas.schema import Schema
    from synmod.leaves.frozen import Json

__all__ = ["CheckBudget", "checker_of", "is_valid", "problems", "validate"]


def checker_of(schema: Schema) -> Checker:
    """Give the compiled form of a schema, which is kept with it."""
    if schema._checker is None:
        schema._checker = Checker(schema)
    return schema._checker


def is_valid(schema: Schema, json: Json, *, budget: CheckBudget | None = None) -> bool:
    """Tell whether a value satisfies a schema.

    Args:
        schema: An interned schema; it is compiled at its first use and kept so.
        json: A JSON value, plain or frozen.
        budget: What several validations may cost together; without it, what this one may cost by itself.

    Returns:
        The verdict of the jsonschema library, but for patterns, which all run in the linear-time engine.

    Raises:
        SchemaTooComplex: It takes more keyword checks than the budget allows.

    Example:
        >>> from synmod.data.schemas.schema import schema_from
        >>> is_valid(schema_from({"type": "integer"}, root="any"), 1.0)
        True

    Source: jsonschema's `is_valid`; differs: compiled, counted, no `re`.
    """
    checker = schema._checker or checker_of(schema)
    if budget is None:
        budget = CheckBudget(json=json)
    elif budget.verdicts:
        budget.verdicts = {}
    try:
        return checker.root.check(json, budget)
    except RecursionError:
        raise SchemaTooComplex("The alternatives of the schema lie too deep inside one another.") from None


def problems(schema: Schema, json: Json, *, limit: int = 10, budget: CheckBudget | None = None) -> tuple[Problem, ...]:
    """List what is wrong with a value.

    Args:
        schema: An interned schema.
        json: A JSON value, plain or frozen.
        limit: How many faults to list.
        budget: As in `is_valid`.

    Returns:
        `(pointer, wanted, got)` of each fault, in document order; nothing for a valid value. `got` is JSON text, cut
        to 200 characters.

    Raises:
        SchemaTooComplex: It takes more keyword checks than the budget allows.

    Example:
        >>> from synmod.data.schemas.schema import schema_from
        >>> problems(schema_from({"type": "integer"}, root="any"), "1")
        (Problem(pointer='', wanted='integer', got='"1"'),)

    Source: jsonschema's `iter_errors`; differs: the faults inside the one alternative that was meant are told.
    """
    if is_valid(schema, json, budget=budget):
        return ()
    checker = checker_of(schema)
    faults = Faults(checker, CheckBudget(json=json), limit)
    try:
        faults.collect([checker.schema], json, ())
    except (SchemaTooComplex, RecursionError):
        pass  # what has been found so far is enough: the value is known to be invalid
    return tuple(faults.found) or (Problem("", "a value that satisfies the schema", shown(json)),)


def validate(schema: Schema, json: Json, where: str, *, budget: CheckBudget | None = None) -> None:
    """Refuse a value that does not satisfy a schema.

    Args:
        schema: An interned schema.
        json: A JSON value, plain or frozen.
        where: What the value is for, such as a module path or the name of an argument; the message begins with it.
        budget: As in `is_valid`.

    Raises:
        SchemaError: The value does not satisfy the schema. Its `errors` are the faults, up to ten.
        SchemaTooComplex: It takes more keyword checks than the budget allows.

    Example:
        >>> from synmod.data.schemas.schema import schema_from
        >>> validate(schema_from({"type": "integer"}, root="any"), 1, "answer/count")

    Source: jsonschema's `validate`; differs: every fault is told, with its place.
    """
    if not is_valid(schema, json, budget=budget):
        found = problems(schema, json)
        lines = [f"{fault.pointer[:200] or 'the whole'}: wanted {fault.wanted}, got {fault.got}" for fault in found]
        about = lines[0] if len(lines) == 1 else "\n  " + "\n  ".join(lines)
        raise SchemaError(f"{where}: the value does not satisfy its schema: {about}", found)
