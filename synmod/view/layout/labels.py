"""Where the names on lines stand: on their line or beside it, clear of boxes, of other lines and of one another."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from math import hypot
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from synmod.view.layout.boxes import HEAD, Layout
from synmod.view.layout.obstacles import Area, Obstacles, points_of

if TYPE_CHECKING:
    from synmod.view.layout.routes import Line, Point
    from synmod.view.layout.sizes import Rectangle

_ALONG: Final = (0.5, 0.4, 0.6, 0.3, 0.7, 0.2, 0.8)
"""Where along a line a label is tried, as parts of its points."""

_BESIDE: Final = 0.5  # what it costs to stand beside the line
_FROM_THE_MIDDLE: Final = 2.0  # and for each part of the line away from its middle
_BLOCKED: Final = 100.0  # and to cover a box, a title, another label, or to leave the page
_HIDING: Final = 4.0  # from which cost on a label hides what should be seen
_SHOWN: Final = 16.0  # a line must be so much longer than a label that stands on it
_MOST: Final = 400  # more labels than that nobody reads, so they stand in the middle
_MOST_CURVES: Final = 3000
_APART: Final = 3.0


class Label(NamedTuple):
    """The middle of a label, and whether it covers nothing that must be read."""

    line: Line
    middle: Point
    is_free: bool


def labelled(layout: Layout, size_of: Callable[[Any], Rectangle]) -> list[Label]:
    """Find a place for the label of each line that has one.

    Args:
        layout: The page.
        size_of: How large the label of what a line is of is; nothing where it has none.
    """
    sizes = [(line, size_of(line.what)) for line in layout.lines]
    wanted = [(line, size) for line, size in sizes if size.width]
    if not wanted or len(wanted) > _MOST or sum(len(line.path.curves) for line in layout.lines) > _MOST_CURVES:
        return [Label(line, line.middle, is_free=False) for line, _ in wanted]
    obstacles, page = _obstacles(layout), Area(0.0, 0.0, layout.width, layout.height)
    labels: list[Label] = []
    for line, size in wanted:
        cost, middle = min(_places(line, size, obstacles, page), key=lambda place: place[0])
        obstacles.add(_area(middle, size))
        labels.append(Label(line, middle, cost < _HIDING))
    return labels


def _obstacles(layout: Layout) -> Obstacles:
    """Everything that a label should leave to be seen: boxes, titles and lines."""
    areas = [
        Area(box.x, box.y, box.x + box.width, box.y + (HEAD if box.members else box.height))
        for box in layout.boxes
        if box.thing is not None
    ]
    return Obstacles(areas, layout.lines)


def _places(line: Line, size: Rectangle, obstacles: Obstacles, page: Area) -> Iterator[tuple[float, Point]]:
    """The places that come into question, each with what it costs; none after one that costs nothing."""
    points = points_of(line.path)
    is_long = _length(points) >= size.width + _SHOWN
    aside, over = size.width / 2 + _APART, size.height / 2 + _APART
    for dx, dy in ((0.0, 0.0), (aside, 0.0), (-aside, 0.0), (0.0, -over), (0.0, over)):
        is_beside = bool(dx or dy)
        for part in _ALONG:
            x, y = points[round(part * (len(points) - 1))]
            cost = _FROM_THE_MIDDLE * abs(part - 0.5) + _BESIDE * is_beside
            cost += _covered(_area((x + dx, y + dy), size), line, obstacles, page, may_cover=is_long)
            yield cost, (x + dx, y + dy)
            if not cost:
                return


def _covered(area: Area, line: Line, obstacles: Obstacles, page: Area, *, may_cover: bool) -> float:
    """What it costs to cover what is there."""
    inside = page.left <= area.left and page.top <= area.top and area.right <= page.right and area.bottom <= page.bottom
    cost = 0.0 if inside else _BLOCKED
    cost += _BLOCKED * len(obstacles.areas(area))
    for each in obstacles.lines(area):
        if each is not line:
            cost += 1.0
        elif not may_cover:
            cost += 0.5
    return cost


def _area(middle: Point, size: Rectangle) -> Area:
    x, y = middle
    return Area(x - size.width / 2, y - size.height / 2, x + size.width / 2, y + size.height / 2)


def _length(points: Sequence[Point]) -> float:
    return sum(hypot(x - to_x, y - to_y) for (x, y), (to_x, to_y) in pairwise(points))
