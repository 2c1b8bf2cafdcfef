"""One level: the boxes of one holder in layers along the flow, and those without a line in rows below."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, sqrt
from typing import Any, Final, NamedTuple

from synmod.view.layout.layers import Pair, layers_of, without_circles
from synmod.view.layout.order import Layered
from synmod.view.layout.places import places_across
from synmod.view.layout.routes import Line, Point, route

BETWEEN_LAYERS: Final = 52.0
_MOST_BETWEEN: Final = 110.0
_SLOPE: Final = 0.1
"""How much farther apart layers stand for each step that a line between them goes across."""

BETWEEN_BOXES: Final = 18.0
_ROUND_LINES: Final = 12.0
_SHORTER: Final = 40.0
_LEAST_APART: Final = 7.0  # lines that would come nearer to one another meet in one point


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
    flow = _Flow(
        turned,
        [
            link._replace(source=numbers[link.source], target=numbers[link.target], label=link.label.turned(across))
            for link in links
        ],
    )
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
    lines = [line if across else line.turned().moved(aside, 0.0) for line in flow.lines()]
    return Arranged(places, lines, wide, height)


def _rows(sizes: Sequence[Rectangle], least: float) -> list[Point]:
    """Set boxes in rows that together are about twice as wide as high."""
    if not sizes:
        return []
    area = sum((size.width + BETWEEN_BOXES) * (size.height + BETWEEN_BOXES) for size in sizes)
    limit = max(least, ceil(sqrt(2 * area)), 640.0 if len(sizes) < 9 else 0.0)
    places: list[Point] = []
    x = y = high = 0.0
    for size in sizes:
        if places and x + size.width > limit:
            x, y, high = 0.0, y + high + BETWEEN_BOXES, 0.0
        places.append((x, y))
        x, high = x + size.width + BETWEEN_BOXES, max(high, size.height)
    return places


class _Flow:
    """The boxes of a level that have lines; `width` of a size is its extent along the flow, `height` across it."""

    def __init__(self, sizes: Sequence[Rectangle], links: Sequence[Link]) -> None:
        self.sizes = sizes
        self.links = links
        self.kept = without_circles(len(sizes), [(link.source, link.target) for link in links])
        layer = layers_of(len(sizes), self.kept)
        self.layered = Layered(layer, self.kept)
        self.layered.untangle()
        self.room: dict[int, float] = {}
        pulls = self._pulls()
        self.middles = places_across(self.layered, pulls, self._breadth, self._gap)
        self._move_to_origin()
        self.layer_start: list[float] = []
        self.layer_end: list[float] = []
        along = 0.0
        for items in self.layered.layers:
            along += self._room_before(items)
            thick = max([self.sizes[item].width for item in items if item < len(sizes)], default=0.0)
            self.layer_start.append(along)
            self.layer_end.append(along + thick)
            along += thick
        self.length = along
        self.layer = {item: number for number, items in enumerate(self.layered.layers) for item in items}
        self.starts = [
            (self.layer_start[number] + self.layer_end[number] - size.width) / 2
            for number, size in zip(layer, sizes, strict=True)
        ]

    def _pulls(self) -> dict[Pair, float]:
        """How strongly each line pulls; where a line passes a layer there is room for its label."""
        pulls: dict[Pair, float] = {}
        for link in self.links:
            pair = link.source, link.target
            if pair not in self.kept:
                pair = link.target, link.source
            pulls[pair] = max(link.pull, pulls.get(pair, 0.0))
            for item in self.layered.ways.get(pair, ())[1:-1]:
                self.room[item] = max(link.label.height, self.room.get(item, 0.0))
        return pulls

    def _room_before(self, items: Sequence[int]) -> float:
        """The room between a layer and the one before it: more where lines go far across."""
        across = [abs(self.middles[one] - self.middles[item]) for item in items for one in self.layered.before[item]]
        if not self.layer_start:
            return 0.0
        return min(max([BETWEEN_LAYERS, *(BETWEEN_LAYERS / 2 + _SLOPE * far for far in across)]), _MOST_BETWEEN)

    def _breadth(self, item: int) -> float:
        """How much room an item takes across the flow."""
        return self.sizes[item].height if item < len(self.sizes) else self.room.get(item, 0.0)

    def _gap(self, one: int, other: int) -> float:
        """How much is left free between two items."""
        return _ROUND_LINES if one >= len(self.sizes) and other >= len(self.sizes) else BETWEEN_BOXES

    def _move_to_origin(self) -> None:
        """Let the first item begin at zero, and note how far the last one reaches."""
        items = range(len(self.middles))
        least = min((self.middles[item] - self._breadth(item) / 2 for item in items), default=0.0)
        self.middles = [middle - least for middle in self.middles]
        self.breadth = max((self.middles[item] + self._breadth(item) / 2 for item in items), default=0.0)

    def lines(self) -> list[Line]:
        """The lines along their ways; where several meet a side of a box they stand apart."""
        ways = [
            (link.what, self._way(link.source, link.target), (link.source, link.target) not in self.kept)
            for link in self.links
        ]
        leaving, coming = self._spread(ways, at_start=True), self._spread(ways, at_start=False)
        drawn: list[Line] = []
        for number, (what, way, back) in enumerate(ways):
            points = self._points(way, leaving[number], coming[number])
            drawn.append(Line(what, route(points[::-1] if back else points)))
        return drawn

    def _way(self, one: int, other: int) -> list[int]:
        """The items of a line, in the direction of the flow."""
        return self.layered.ways.get((one, other)) or self.layered.ways[(other, one)]

    def _points(self, way: list[int], leaving: float, coming: float) -> list[Point]:
        """The points of a way: out of the first box, through the layers it passes, into the last.

        Where a box is much shorter than its layer the line runs straight through the layer, clear of its neighbours.
        """
        first, last = way[0], way[-1]
        points = [(self.starts[first] + self.sizes[first].width, leaving)]
        if self.layer_end[self.layer[first]] - points[0][0] > _SHORTER:
            points.append((self.layer_end[self.layer[first]], leaving))
        for item in way[1:-1]:
            number = self.layer[item]
            points += [(self.layer_start[number], self.middles[item]), (self.layer_end[number], self.middles[item])]
        if self.starts[last] - self.layer_start[self.layer[last]] > _SHORTER:
            points.append((self.layer_start[self.layer[last]], coming))
        return [*points, (self.starts[last], coming)]

    def _spread(self, ways: list[tuple[Any, list[int], bool]], *, at_start: bool) -> list[float]:
        """Give each line its place on the side of the box that it leaves, or comes to."""
        by_box: dict[int, list[int]] = {}
        for number, (_, way, _) in enumerate(ways):
            by_box.setdefault(way[0] if at_start else way[-1], []).append(number)
        places = [0.0] * len(ways)
        for box, numbers in by_box.items():
            numbers.sort(key=lambda number: self.middles[ways[number][1][1 if at_start else -2]])
            step = min(_ROUND_LINES, self.sizes[box].height * 0.7 / len(numbers))
            if step < _LEAST_APART:
                step = 0.0
            for index, number in enumerate(numbers):
                places[number] = self.middles[box] + (index - (len(numbers) - 1) / 2) * step
        return places
