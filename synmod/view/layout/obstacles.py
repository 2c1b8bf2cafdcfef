"""What is in the way on a page: boxes and lines by their place, so that a label or a line can look for free room."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import ceil, hypot
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from synmod.view.layout.routes import Line, Path, Point

_CELL: Final = 64.0
_FINE: Final = 6.0  # lines nearer to one another than this cannot be told apart
_MANY: Final = object()


class Area(NamedTuple):
    """A rectangle by its corners, and what is there."""

    left: float
    top: float
    right: float
    bottom: float
    what: object = None


class Obstacles:
    """Boxes, found by the square of the page that they touch, and lines, of which the fine squares are known."""

    __slots__ = ("_areas", "_lines")

    def __init__(self, areas: Iterable[Area], lines: Iterable[Line]) -> None:
        self._areas: dict[tuple[int, int], list[Area]] = {}
        self._lines: dict[tuple[int, int], object] = {}
        for area in areas:
            self.add(area)
        for line in lines:
            for x, y in points_of(line.path):
                cell = int(x // _FINE), int(y // _FINE)
                self._lines[cell] = line if self._lines.get(cell, line) is line else _MANY

    def add(self, area: Area) -> None:
        """Let something more be in the way."""
        for cell in _cells(area, _CELL):
            self._areas.setdefault(cell, []).append(area)

    def areas(self, at: Area) -> list[Area]:
        """Give the areas that have room in common with one; one may come twice."""
        left, top, right, bottom, _ = at
        return [
            each
            for cell in _cells(at, _CELL)
            for each in self._areas.get(cell, ())
            if each.left < right and left < each.right and each.top < bottom and top < each.bottom
        ]

    def areas_at(self, x: float, y: float) -> list[Area]:
        """Give the areas around a point."""
        around = self._areas.get((int(x // _CELL), int(y // _CELL)), ())
        return [each for each in around if each.left < x < each.right and each.top < y < each.bottom]

    def has_line_at(self, x: float, y: float) -> bool:
        """Tell whether a line passes a point."""
        return (int(x // _FINE), int(y // _FINE)) in self._lines

    def lines(self, at: Area) -> list[object]:
        """Give what passes an area: a line for each fine square, something else where there are several."""
        return [self._lines[cell] for cell in _cells(at, _FINE) if cell in self._lines]


def _cells(area: Area, side: float) -> Iterator[tuple[int, int]]:
    """The squares of the page that an area touches."""
    left, top, right, bottom, _ = area
    for x in range(int(left // side), int(right // side) + 1):
        for y in range(int(top // side), int(bottom // side) + 1):
            yield x, y


def points_of(path: Path) -> list[Point]:
    """Points along a line, a few pixels from one to the next."""
    points = [path.start]
    for (ax, ay), (bx, by), (to_x, to_y) in path.curves:
        x, y = points[-1]
        steps = max(ceil(hypot(to_x - x, to_y - y) / _FINE), 4)
        for step in range(1, steps + 1):
            t = step / steps
            a, b, c, d = (1 - t) ** 3, 3 * t * (1 - t) ** 2, 3 * t * t * (1 - t), t**3
            points.append((a * x + b * ax + c * bx + d * to_x, a * y + b * ay + c * by + d * to_y))
    return points
