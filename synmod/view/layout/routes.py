"""Lines: from box to box in gentle curves, straight where they pass a layer."""

from __future__ import annotations

from itertools import pairwise
from math import dist
from typing import Any, Final, NamedTuple, Protocol

Point = tuple[float, float]
_TOUCHING: Final = 0.01
Curve = tuple[Point, Point, Point]
"""Two control points and the end of a cubic curve."""


class Placed(Protocol):
    """A rectangle on the page."""

    x: float
    y: float
    width: float
    height: float


class Path(NamedTuple):
    """A start, and curves from there."""

    start: Point
    curves: list[Curve]


class Line(NamedTuple):
    """What a line is of, and its path."""

    what: Any
    path: Path

    def moved(self, x: float, y: float) -> Line:
        """The line somewhere else."""
        start, curves = self.path
        moved = [((a + x, b + y), (c + x, d + y), (e + x, f + y)) for (a, b), (c, d), (e, f) in curves]
        return Line(self.what, Path((start[0] + x, start[1] + y), moved))

    def between(self, one: Placed, other: Placed, *, across: bool) -> Line:
        """The line from and to these boxes, where it began and ended at boxes around them."""
        (start, curves), end = self.path, self.path.curves[-1][2]
        first, last = _exit(one, start, across=across), _exit(other, end, across=across)
        if first != start:
            bend = _bend(first, start, across=across)
            start, curves = first, [bend, *curves]
        if last != end:
            curves = [*curves, _bend(end, last, across=across)]
        return Line(self.what, Path(start, curves))

    def turned(self) -> Line:
        """The line with its axes exchanged."""
        (x, y), curves = self.path
        turned = [((b, a), (d, c), (f, e)) for (a, b), (c, d), (e, f) in curves]
        return Line(self.what, Path((y, x), turned))

    @property
    def length(self) -> float:
        """About how long the line is."""
        (x, y), (to_x, to_y) = self.path.start, self.path.curves[-1][2]
        return abs(to_x - x) + abs(to_y - y)

    @property
    def middle(self) -> Point:
        """A point in the middle of the line, for its label."""
        curves = self.path.curves
        start = self.path.start if len(curves) == 1 else curves[len(curves) // 2 - 1][2]
        one, other, end = curves[len(curves) // 2]
        return tuple((a + 3 * b + 3 * c + d) / 8 for a, b, c, d in zip(start, one, other, end, strict=True))  # pyright: ignore[reportReturnType]  # two numbers


def route(points: list[Point]) -> Path:
    """Join points by curves that leave and come along the flow."""
    curves: list[Curve] = []
    for (x, y), (to_x, to_y) in pairwise(points):
        bend = (to_x - x) / 2
        curves.append(((x + bend, y), (to_x - bend, to_y), (to_x, to_y)))
    return Path(points[0], curves)


def _bend(one: Point, other: Point, *, across: bool) -> Curve:
    """A curve that leaves and comes along the flow."""
    (x, y), (to_x, to_y) = one, other
    if across:
        return ((x + to_x) / 2, y), ((x + to_x) / 2, to_y), other
    return (x, (y + to_y) / 2), (to_x, (y + to_y) / 2), other


def _exit(box: Placed, towards: Point, *, across: bool) -> Point:
    """The point of a box where a line to a point outside leaves it along the flow; that point if it is on its side."""
    x, y = towards
    along, start, extent = (x, box.x, box.width) if across else (y, box.y, box.height)
    middle = box.y + box.height / 2 if across else box.x + box.width / 2
    after = along >= start + extent / 2
    side = start + extent if after else start
    if abs(side - along) < _TOUCHING:
        return towards
    return (side, middle) if across else (middle, side)


def across_levels(one: Placed, other: Placed, what: Any, *, across: bool) -> Line:
    """A line between boxes anywhere on the page, from the sides that face each other."""
    if one is other:
        return Line(what, _loop(one))
    if is_inside(one, other):
        return Line(what, route(_way_out(one, other)))
    if is_inside(other, one):
        return Line(what, route(_way_out(other, one)[::-1]))
    gap_x = max(other.x - (one.x + one.width), one.x - (other.x + other.width))
    gap_y = max(other.y - (one.y + one.height), one.y - (other.y + other.height))
    sideways = gap_x > 0 if across else gap_y <= 0 < gap_x
    if sideways:
        return Line(what, route([_side(one, other), _side(other, one)]))
    upright = Line(what, route([_turned(_edge(one, other)), _turned(_edge(other, one))]))
    return upright.turned()


def _loop(box: Placed) -> Path:
    """A line from a box back to itself, over its right corner and within the room that is left around a box."""
    x, y = box.x + box.width, box.y
    over: Curve = ((x - 28, y - 16), (x + 14, y - 20), (x + 14, y))
    back: Curve = ((x + 14, y + 10), (x + 10, y + 14), (x, y + 14))
    return Path((x - 28, y), [over, back])


def is_inside(one: Placed, other: Placed) -> bool:
    """Tell whether one box stands in another."""
    beside = one.x < other.x or one.x + one.width > other.x + other.width
    return not (beside or one.y < other.y or one.y + one.height > other.y + other.height)


def _way_out(inner: Placed, outer: Placed) -> list[Point]:
    """The shortest way from a box straight to a side of one that it stands in."""
    x, y = inner.x + inner.width / 2, inner.y + inner.height / 2
    ways: list[list[Point]] = [
        [(inner.x, y), (outer.x, y)],
        [(x, inner.y + inner.height), (x, outer.y + outer.height)],
        [(inner.x + inner.width, y), (outer.x + outer.width, y)],
        [(x, inner.y), (x, outer.y)],
    ]
    return min(ways, key=lambda way: dist(*way))


def _side(box: Placed, towards: Placed) -> Point:
    """The middle of the left or right side, whichever faces another box."""
    right = towards.x + towards.width / 2 >= box.x + box.width / 2
    return (box.x + box.width if right else box.x, box.y + box.height / 2)


def _edge(box: Placed, towards: Placed) -> Point:
    """The middle of the upper or lower side, whichever faces another box."""
    below = towards.y + towards.height / 2 >= box.y + box.height / 2
    return (box.x + box.width / 2, box.y + box.height if below else box.y)


def _turned(point: Point) -> Point:
    """A point with its coordinates exchanged."""
    return point[1], point[0]
