"""What checking schemas may cost: a number of subschemas and a size of patterns, for one schema or for a whole file."""

from __future__ import annotations

from typing import Final

from synmod.errors import SchemaTooComplex

from .patterns import MAX_WEIGHT, weight_of

MAX_TOGETHER: Final = 60_000
"""How many schemas and subschemas one file may have: about a second of checking."""


class SchemaBudget:
    """How many subschemas, and patterns of which size, may still come.

    Args:
        most: How many subschemas there may be.
        raised_by: What to say of how to raise that.
    """

    __slots__ = ("_most", "_patterns", "_raised_by", "_subschemas", "_weight")

    def __init__(self, most: int = MAX_TOGETHER, raised_by: str = "") -> None:
        self._most = self._subschemas = most
        self._raised_by = raised_by
        self._weight = MAX_WEIGHT
        self._patterns: set[str] = set()

    def take_schema(self, subschemas: int) -> None:
        """Count a schema and its subschemas.

        Raises:
            SchemaTooComplex: There are too many.
        """
        self._subschemas -= 1 + subschemas
        if self._subschemas < 0:
            raise SchemaTooComplex(
                f"All schemas together pass the limit of {self._most:,} subschemas, where each schema counts as one "
                f"more: make them fewer or simpler{self._raised_by}."
            )

    def take_pattern(self, source: str) -> bool:
        """Count a pattern, equal ones once; False when all together are too large."""
        if source not in self._patterns:
            self._patterns.add(source)
            self._weight -= weight_of(source)
        return self._weight >= 0
