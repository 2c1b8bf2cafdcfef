"""Columns: what all examples of a prompt have at one place of the answer, read once for each set of examples."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from synmod.lm.prompt.subschemas import is_object

if TYPE_CHECKING:
    from synmod.leaves.frozen import Json

_KEPT_AT_MOST: Final = 256  # names below one place; a schema of more begins anew


class Missing:
    """Stands for the value of a field in an example that lacks it."""


MISSING: Final = Missing()


class Field:
    """One place of the answer: where it stands, and what each example has there.

    Attributes:
        path: Names and indices from the root, joined by `/`.
        seen: For each example its value here, or MISSING.
    """

    __slots__ = ("_below", "_texts", "path", "seen")

    def __init__(self, path: str, seen: list[Json]) -> None:
        self.path = path
        self.seen = seen
        self._below: dict[str, Field] = {}
        self._texts: tuple[int, list[Json]] | None = None

    def below(self, name: str) -> Field:
        """The place of a field of the object that stands here."""
        known = self._below.get(name)
        if known is None:
            if len(self._below) >= _KEPT_AT_MOST:
                self._below = {}
            path = f"{self.path}/{name}" if self.path else name
            seen = [value.get(name, MISSING) if is_object(value) else MISSING for value in self.seen]
            known = self._below[name] = Field(path, seen)
        return known

    def texts(self) -> tuple[int, list[Json]]:
        """How many examples have a text here, and which texts, each once, first seen first."""
        if self._texts is None:
            texts = [value for value in self.seen if isinstance(value, str)]
            self._texts = len(texts), list(dict.fromkeys(texts))
        return self._texts
