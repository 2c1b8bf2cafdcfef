"""What validations may cost: a number of keyword checks, for one value or for all values of a file together."""

from __future__ import annotations

from typing import Any, Final

from synmod.errors import SchemaTooComplex
from synmod.leaves.frozen import is_array, is_object

FREE_CHECKS: Final = 200_000
"""Keyword checks that any validation may take."""

CHECKS_PER_VALUE: Final = 50
"""Keyword checks that a validation may take for each JSON value in what it checks."""


class CheckBudget:
    """How many keyword checks may still be made.

    The hot path counts down `left` itself, and calls `run_out` where that falls below zero.
    """

    __slots__ = ("_json", "left", "verdicts")

    def __init__(self, limit: int | None = None, json: Any = None) -> None:
        """Grant `limit` checks; without it what one validation of `json` may take, which is counted when need be."""
        self.left = FREE_CHECKS if limit is None else limit
        self._json = json if limit is None else None
        self.verdicts: dict[tuple[object, int], bool] = {}  # of (check, id of a container), for one validation

    def spend(self, checks: int) -> None:
        """Count checks.

        Raises:
            SchemaTooComplex: No checks are left.
        """
        self.left -= checks
        if self.left < 0:
            self.run_out()

    def run_out(self) -> None:
        """Grant what the size of the value allows, once; after that, stop.

        Raises:
            SchemaTooComplex: The size of the value allows no more checks.
        """
        json, self._json = self._json, None
        self.left += max(0, CHECKS_PER_VALUE * count_values(json) - FREE_CHECKS)
        if self.left < 0:
            raise SchemaTooComplex(
                f"The validation takes more keyword checks than the limit of {FREE_CHECKS:,}, "
                f"or {CHECKS_PER_VALUE} for each JSON value, allows: make the schema simpler."
            )


def count_values(json: Any) -> int:
    """Count the JSON values in a value, itself included; what stands in several places counts in each."""
    counts: dict[int, int] = {}
    steps: list[Any] = [json]
    while steps:
        here = steps[-1]
        parts = here.values() if is_object(here) else here if is_array(here) else ()
        inner = [part for part in parts if is_object(part) or is_array(part)]
        unknown = [part for part in inner if id(part) not in counts]
        if unknown:
            steps.extend(unknown)
        else:
            counts[id(steps.pop())] = 1 + len(parts) - len(inner) + sum(counts[id(part)] for part in inner)
    return counts[id(json)]
