"""Rectangles and links: what a level is given to arrange."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

BETWEEN_BOXES: Final = 18.0
BETWEEN_LINES: Final = 12.0


class Rectangle(NamedTuple):
    """A size."""

    width: float
    height: float

    def turned(self, across: bool) -> Rectangle:
        """The extents along the flow and across it."""
        return self if across else Rectangle(self.height, self.width)


class Link(NamedTuple):
    """A line to draw: numbers of two boxes, what it is of, how strongly it pulls them together, and its label."""

    source: int
    target: int
    what: Any
    pull: float
    label: Rectangle
