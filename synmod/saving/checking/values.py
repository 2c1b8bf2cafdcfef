"""The check of values: all validations of one file share one budget, whatever their schemas cost."""

from __future__ import annotations

from typing import TYPE_CHECKING

from synmod.data import CHECKS_PER_VALUE, FREE_CHECKS, CheckBudget, validate
from synmod.errors import DataError, SchemaError
from synmod.leaves.frozen import Json, frozen
from synmod.saving.text.faults import load_fault

if TYPE_CHECKING:
    from synmod.data import Schema

__all__ = ["ValueChecker"]


class ValueChecker:
    """Freezes and validates the values of one file.

    Args:
        values: How many JSON values the file has.
    """

    def __init__(self, values: int) -> None:
        self._budget = CheckBudget(FREE_CHECKS + CHECKS_PER_VALUE * values)

    def freeze(self, json: Json, where: tuple[str | int, ...]) -> Json:
        """Freeze a value of the document.

        Raises:
            LoadError: It nests deeper than a value may.
        """
        try:
            return frozen(json)
        except DataError as error:
            raise load_fault(where, str(error)) from error

    def check(self, schema: Schema, json: Json, where: tuple[str | int, ...]) -> Json:
        """Freeze a value and validate it.

        Raises:
            LoadError: It is not valid for its schema, or the validations of the file cost too much (the cause is a
                `SchemaTooComplex`).
        """
        value = self.freeze(json, where)
        try:
            validate(schema, value, "the value", budget=self._budget)
        except SchemaError as error:
            raise load_fault(where, str(error)) from error
        return value
