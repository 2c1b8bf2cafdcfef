"""One counter of structural edits, so that nobody has to walk to learn that nothing changed."""

from __future__ import annotations

from itertools import count
from typing import Final


class Edits:
    """Counts edits of sealed structure in this process.

    Every number is given out once, so a number seen before and after proves that nothing happened in between.
    """

    __slots__ = ("_numbers", "now")

    def __init__(self) -> None:
        self._numbers = count(1)
        self.now = 0

    def bump(self) -> None:
        """Say that the structure of a sealed node was changed; call it after the change."""
        self.now = next(self._numbers)


EDITS: Final = Edits()
"""The counter that whoever changes a sealed node bumps."""
