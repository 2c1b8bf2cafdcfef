"""Lines that say nothing of who comes first: straight where nothing stands between their ends, else around it."""

from __future__ import annotations

from collections.abc import Iterator
from math import inf
from typing import TYPE_CHECKING, Any, Final

from synmod.view.layout.obstacles import Area, Obstacles, points_of
from synmod.view.layout.routes import Line, Path, across_levels, is_inside

if TYPE_CHECKING:
    from collections.abc import Iterable

    from synmod.view.layout.boxes import Box
    from synmod.view.layout.routes import Point

_CLEAR: Final = 9.0  # how far from the boxes a line goes around them
_ROUND: Final = 14.0
_BOX: Final = 20.0
_DETOUR: Final = 3.0  # what is gained by a detour must be more than this: some other lines may be crossed
_MOST: Final = 100  # more lines than that nobody follows, so they go straight


def loose_lines(
    boxes: Iterable[Box], others: Iterable[Line], loose: Iterable[tuple[Box, Box, Any]], *, across: bool
) -> list[Line]:
    """Draw lines between boxes anywhere on the page, each on the way that meets the fewest boxes and other lines."""
    wanted = list(loose)
    if len(wanted) > _MOST or not wanted:
        return [across_levels(one, other, what, across=across) for one, other, what in wanted]
    areas = [Area(box.x, box.y, box.x + box.width, box.y + box.height, box) for box in boxes if not box.members]
    obstacles = Obstacles(areas, others)
    lines: list[Line] = []
    for one, other, what in wanted:
        best = across_levels(one, other, what, across=across)
        fewest = _met(best, one, other, obstacles, inf)
        for line in _around(one, other, what) if fewest > _DETOUR else ():
            met = _met(line, one, other, obstacles, fewest - _DETOUR)
            if met + _DETOUR < fewest:
                best, fewest = line, met + _DETOUR
        lines.append(best)
    return lines


def _met(line: Line, one: Box, other: Box, obstacles: Obstacles, limit: float) -> float:
    """Count the points of a line that lie on other boxes, or on other lines, which count less; up to a limit."""
    met = 0.0
    for x, y in points_of(line.path):
        if any(each.what is not one and each.what is not other for each in obstacles.areas_at(x, y)):
            met += _BOX
        elif obstacles.has_line_at(x, y):
            met += 1
        if met >= limit:
            break
    return met


def _around(one: Box, other: Box, what: Any) -> Iterator[Line]:
    """The ways below, above, to the right and to the left of both boxes."""
    x, to_x = one.x + one.width / 2, other.x + other.width / 2
    y, to_y = one.y + one.height / 2, other.y + other.height / 2
    if is_inside(one, other) or is_inside(other, one):
        return
    bottoms, rights = (one.y + one.height, other.y + other.height), (one.x + one.width, other.x + other.width)
    yield Line(what, _detour((x, bottoms[0]), (to_x, bottoms[1]), max(bottoms) + _CLEAR))
    yield Line(what, _detour((x, one.y), (to_x, other.y), min(one.y, other.y) - _CLEAR))
    yield Line(what, _detour((y, rights[0]), (to_y, rights[1]), max(rights) + _CLEAR)).turned()
    yield Line(what, _detour((y, one.x), (to_y, other.x), min(one.x, other.x) - _CLEAR)).turned()


def _detour(start: Point, end: Point, level: float) -> Path:
    """A line that goes to a level, along it, and from there to its end."""
    (x, y), (to_x, to_y) = start, end
    turn = min(_ROUND, abs(to_x - x) / 2) * (1 if to_x >= x else -1)
    begin, stop = (x + turn, level), (to_x - turn, level)
    return Path(
        start,
        [
            ((x, (y + level) / 2), (x, level), begin),
            (begin, stop, stop),
            ((to_x, level), (to_x, (level + to_y) / 2), end),
        ],
    )
