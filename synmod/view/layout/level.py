"""One level: the boxes of one holder in layers along the flow, and those without a line in rows below."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, fsum, sqrt
from typing import Final, NamedTuple

from synmod.view.layout.flow import Flow
from synmod.view.layout.routes import Line, Point
from synmod.view.layout.sizes import BETWEEN_BOXES, Link, Rectangle
from synmod.view.layout.ways import lines_of

_FEW: Final = 9
_WIDE_ENOUGH: Final = 640.0  # a few boxes stand in one row up to this width


class Arranged(NamedTuple):
    """Where the boxes of a level stand, the lines between them, and the room they take."""

    places: list[Point]
    lines: list[Line]
    width: float
    height: float


def arrange_level(sizes: Sequence[Rectangle], links: Sequence[Link], *, across: bool) -> Arranged:
    """Arrange boxes.

    Args:
        sizes: Their sizes.
        links: The lines between them.
        across: Whether the flow goes from left to right.
    """
    linked = sorted({end for link in links for end in (link.source, link.target)})
    numbers = {box: number for number, box in enumerate(linked)}
    turned = [sizes[box].turned(across) for box in linked]
    turned_links = [
        Link(numbers[link.source], numbers[link.target], link.what, link.pull, link.label.turned(across))
        for link in links
    ]
    flow = Flow(turned, turned_links)
    width, height = Rectangle(flow.length, flow.breadth).turned(across)
    places: list[Point] = [(0.0, 0.0)] * len(sizes)
    for box, number in numbers.items():
        along, middle = flow.starts[number], flow.middles[number] - turned[number].height / 2
        places[box] = (along, middle) if across else (middle, along)
    rest = [box for box in range(len(sizes)) if box not in numbers]
    top = height + BETWEEN_BOXES if linked and rest else height
    wide = width
    for box, (x, y) in zip(rest, _rows([sizes[box] for box in rest], width), strict=True):
        places[box] = (x, y + top)
        wide, height = max(wide, x + sizes[box].width), max(height, y + top + sizes[box].height)
    aside = 0.0 if across else (wide - width) / 2
    for box in linked:
        places[box] = (places[box][0] + aside, places[box][1])
    lines = [line if across else line.turned().moved(aside, 0.0) for line in lines_of(flow)]
    return Arranged(places, lines, wide, height)


def _rows(sizes: Sequence[Rectangle], least: float) -> list[Point]:
    """Set boxes in rows that together are about twice as wide as high."""
    if not sizes:
        return []
    area = fsum((size.width + BETWEEN_BOXES) * (size.height + BETWEEN_BOXES) for size in sizes)
    limit = max(least, ceil(sqrt(2 * area)), _WIDE_ENOUGH if len(sizes) < _FEW else 0.0)
    places: list[Point] = []
    x = y = high = 0.0
    for size in sizes:
        if places and x + size.width > limit:
            x, y, high = 0.0, y + high + BETWEEN_BOXES, 0.0
        places.append((x, y))
        x, high = x + size.width + BETWEEN_BOXES, max(high, size.height)
    return places
