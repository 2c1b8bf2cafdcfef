"""The ways of the lines of one level: from box to box, through the layers between them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from synmod.view.layout.routes import Line, Point, route
from synmod.view.layout.sizes import BETWEEN_LINES, Link

if TYPE_CHECKING:
    from synmod.view.layout.flow import Flow

_SHORTER: Final = 40.0
_LEAST_APART: Final = (6.5, 4.0)  # tips, and lines without, that would come nearer to one another meet in one point
_CORNER: Final = 9.0  # how far from its corners lines meet a side of a box


def lines_of(flow: Flow) -> list[Line]:
    """Draw the lines along their ways; where several meet a side of a box they stand apart."""
    ways = [
        _Way(link.what, link.pull, _items(flow, link), (link.source, link.target) not in flow.kept)
        for link in flow.links
    ]
    leaving, coming = _spread(flow, ways, at_start=True), _spread(flow, ways, at_start=False)
    drawn: list[Line] = []
    for way, start, end in zip(ways, leaving, coming, strict=True):
        points = _points(flow, way.items, start, end)
        drawn.append(Line(way.what, route(points[::-1] if way.is_back else points)))
    return drawn


class _Way(NamedTuple):
    """What a line is of, how strongly it pulls, its items along the flow, and whether it goes against it."""

    what: Any
    pull: float
    items: list[int]
    is_back: bool


def _items(flow: Flow, link: Link) -> list[int]:
    """The items of a line, in the direction of the flow."""
    ways = flow.layered.ways
    return ways.get((link.source, link.target)) or ways[(link.target, link.source)]


def _points(flow: Flow, items: list[int], leaving: float, coming: float) -> list[Point]:
    """The points of a way: out of the first box, through the layers it passes, into the last.

    Where a box is much shorter than its layer the line runs straight through the layer, clear of its neighbours.
    """
    first, last = items[0], items[-1]
    points = [(flow.starts[first] + flow.sizes[first].width, leaving)]
    if flow.layer_end[flow.layer[first]] - points[0][0] > _SHORTER:
        points.append((flow.layer_end[flow.layer[first]], leaving))
    for item in items[1:-1]:
        number = flow.layer[item]
        points += [(flow.layer_start[number], flow.middles[item]), (flow.layer_end[number], flow.middles[item])]
    if flow.starts[last] - flow.layer_start[flow.layer[last]] > _SHORTER:
        points.append((flow.layer_start[flow.layer[last]], coming))
    return [*points, (flow.starts[last], coming)]


def _spread(flow: Flow, ways: Sequence[_Way], *, at_start: bool) -> list[float]:
    """Give each line its place on the side of the box that it leaves, or comes to."""
    by_box: dict[int, list[int]] = {}
    for number, way in enumerate(ways):
        by_box.setdefault(way.items[0 if at_start else -1], []).append(number)
    places = [0.0] * len(ways)
    for box, numbers in by_box.items():
        numbers.sort(key=lambda number: flow.middles[ways[number].items[1 if at_start else -2]])
        strong = [index for index, number in enumerate(numbers) if ways[number].pull >= 1] or range(len(numbers))
        room = max(flow.sizes[box].height - 2 * _CORNER, 0.0)
        for middle in (
            sum(strong) / len(strong),
            (len(numbers) - 1) / 2,
        ):  # data in the middle, if there is room
            step = min(BETWEEN_LINES, room / 2 / max(middle, len(numbers) - 1 - middle, 0.5))
            if step >= _LEAST_APART[at_start]:
                break
        else:
            step = 0.0
        for index, number in enumerate(numbers):
            places[number] = flow.middles[box] + (index - middle) * step
    return places
