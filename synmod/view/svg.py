"""A picture as SVG: boxes in layers along the data flow, each holder around its members; no external program."""

from collections.abc import Sequence
from graphlib import TopologicalSorter
from itertools import pairwise
from math import ceil, sqrt
from typing import Final

from synmod.skip.wiring import add_edge

from .pages import escape
from .picture import Edge, EdgeKind, Node, Picture
from .tables import cut, width

_GAP: Final = 22.0  # between boxes of a row
_BETWEEN: Final = 46.0  # between rows
_PADDING: Final = 18.0
_HEAD: Final = 30.0  # for the title of a holder
_ROW: Final = 18.0
_LETTER: Final = 7.7
_WORD: Final = 8.0  # between the words of a title
_LONGEST: Final = 30
_SWEEPS: Final = 8
_INK: Final = "#1c2430"
_FONT: Final = "ui-sans-serif, system-ui, -apple-system, 'Segoe UI', Roboto, Helvetica, Arial, sans-serif"
_LINES: Final = {
    "data": ("#5a6573", ""),
    "skip": ("#8250b8", ' stroke-dasharray="6 4"'),
    "shared": ("#3f7d58", ' stroke-dasharray="0.1 5" stroke-linecap="round"'),
}
"""Colour and dashes by kind."""

_LOOKS: Final = {
    "model_call": ("#e8f0fe", "#3d6fb8"),
    "module": ("#fdf2e0", "#b9812a"),
    "input": ("#ffffff", "#77818d"),
    "output": ("#ffffff", "#77818d"),
}
"""Fill and border by kind; `model_call` is for modules that call a language model."""


class _Box:
    """The rectangle of a node or, without one, of the page or of the spot where a long line crosses a row.

    Attributes:
        node: The node, None for the page and for a spot.
        holder: The box around it; None for the page.
        depth: Number of boxes around it.
        members: The boxes in it.
        links: The lines between its members that determine their places, each with its labels.
        labels: The labels at a spot, below one another.
    """

    def __init__(self, node: Node | None = None, holder: "_Box | None" = None, labels: Sequence[str] = ()) -> None:
        self.node = node
        self.holder = holder
        self.depth: int = 0 if holder is None else holder.depth + 1
        self.members: list[_Box] = []
        self.links: dict[_Link, list[str]] = {}
        self.labels = labels
        self.x = self.y = self.height = 0.0
        self.width = max((width(label) * _LETTER for label in labels), default=0.0)
        if node is not None:
            texts = [width(text) * _LETTER for text, *_ in _texts(node)]
            self.width = (sum(texts) + _WORD * (len(texts) - 1) if node.members else max(texts)) + 28
            self.height = _ROW * (1 + len(texts))

    @property
    def middle(self) -> float:
        """The x of the centre."""
        return self.x + self.width / 2


_Link = tuple[_Box, _Box, EdgeKind]
_Neighbours = dict[_Box, tuple[list[_Box], list[_Box]]]
_Routes = dict[_Link, list[_Box]]


def svg(picture: Picture) -> str:
    """Return a picture as SVG, drawn from top to bottom."""
    page = _Box()
    boxes: dict[str, _Box] = {}
    for node in picture.nodes:
        holder = page if node.parent is None else boxes[node.parent.id]
        boxes[node.id] = _Box(node, holder)
        holder.members.append(boxes[node.id])
    edges = picture.lines()
    for edge in edges:
        if edge.kind != "shared":
            source, target = _siblings(boxes[edge.source.id], boxes[edge.target.id])
            if source is not target and source.holder is not None and source.holder is target.holder:
                labels = source.holder.links.setdefault((source, target, edge.kind), [])
                labels += [cut(edge.label, _LONGEST)] if edge.kind == "skip" else []
    routes: _Routes = {}
    for box in reversed([page, *boxes.values()]):  # members before their holder
        if box.members:
            _arrange(box, routes)
    passed = [place for route in routes.values() for place in route[1:-1]]
    for box in (*boxes.values(), *passed):  # positions in a holder become positions on the page
        if box.holder is not None:
            box.x, box.y = box.x + box.holder.x, box.y + box.holder.y
    return _page(picture.name, page, list(boxes.values()), [_line(edge, boxes, routes) for edge in edges])


def _siblings(source: _Box, target: _Box) -> tuple[_Box, _Box]:
    """Return the two boxes, or their ancestors, that have the same holder."""
    while source.holder is not target.holder:
        if source.depth >= target.depth and source.holder is not None:
            source = source.holder
        elif target.holder is not None:
            target = target.holder
    return source, target


# -- placing ----------------------------------------------------------------------------------------------------------


def _arrange(holder: _Box, routes: _Routes) -> None:
    """Place the members of a holder in rows, and set its size accordingly."""
    rows, neighbours = _rows(holder, routes)
    for sweep in range(_SWEEPS):
        _sort(rows if sweep % 2 == 0 else rows[::-1], neighbours, sweep % 2)
    top = _PADDING + (_HEAD if holder.node is not None else 0.0)
    for row in rows:
        high = max(max(box.height, _ROW * len(box.labels)) for box in row)
        for box in row:
            box.height = box.height or high  # a line crosses a row straight
            box.y = top + (high - box.height) / 2
        top += high + _BETWEEN
    for sweep in range(_SWEEPS + 1):
        for row in rows if sweep % 2 else rows[::-1]:
            _place_row(row, neighbours)
    left = min(box.x for row in rows for box in row) - _PADDING
    right = max(box.x + box.width for row in rows for box in row) + _PADDING
    left -= max(holder.width - (right - left), 0.0) / 2  # under a long title, the members stand in the middle
    for row in rows:
        for box in row:
            box.x -= left
    holder.width, holder.height = max(holder.width, right - left), top - _BETWEEN + _PADDING


def _rows(holder: _Box, routes: _Routes) -> tuple[list[list[_Box]], _Neighbours]:
    """Return the members in layers, with placeholders where long lines cross a row, and the neighbours of each box."""
    layer = _layers(holder.members, holder.links)
    linked = {box for link in holder.links for box in link[:2]}
    alone = [box for box in holder.members if box not in linked]
    per_row = max(ceil(sqrt(len(alone))), 4)
    first = max((layer[box] for box in linked), default=-1) + 1
    for number, box in enumerate(alone):  # unlinked boxes go below the others, in a block
        layer[box] = first + number // per_row
    rows: list[list[_Box]] = [[] for _ in range(max(layer.values()) + 1)]
    for box in holder.members:
        rows[layer[box]].append(box)
    neighbours: _Neighbours = {box: ([], []) for box in holder.members}
    for (source, target, kind), labels in holder.links.items():
        upper, lower = (source, target) if layer[source] <= layer[target] else (target, source)
        passed = range(layer[upper] + 1, layer[lower])
        middle = passed[len(passed) // 2] if passed else None
        spots = [_Box(None, holder, labels if number == middle else ()) for number in passed]
        route = [upper, *spots, lower]
        for number, place in enumerate(spots, layer[upper] + 1):
            rows[number].append(place)
            neighbours[place] = ([], [])
        for before, after in pairwise(route):
            neighbours[before][1].append(after)
            neighbours[after][0].append(before)
        routes[source, target, kind] = route if upper is source else route[::-1]
    return rows, neighbours


def _layers(boxes: list[_Box], links: dict[_Link, list[str]]) -> dict[_Box, int]:
    """Return for each box the length of the longest path to it; a link that closes a cycle does not count.

    A link with labels counts twice, so that there is a spot for them.
    """
    number = {box: place for place, box in enumerate(boxes)}
    before: list[set[int]] = [set() for _ in boxes]
    lengths: dict[tuple[int, int], int] = {}
    ends = [(number[source], number[target], 2 if labels else 1) for (source, target, _), labels in links.items()]
    for source, target, length in sorted(ends, key=lambda end: end[0] > end[1]):
        if add_edge(before, source, target):
            lengths[source, target] = max(lengths.get((source, target), 0), length)
    layer: dict[int, int] = {}
    for place in TopologicalSorter(dict(enumerate(before))).static_order():
        layer[place] = max((layer[earlier] + lengths[earlier, place] for earlier in before[place]), default=0)
    return {box: layer[place] for box, place in number.items()}


def _sort(rows: list[list[_Box]], neighbours: _Neighbours, side: int) -> None:
    """Sort each row by the mean position of its neighbours in the previous row."""
    before: dict[_Box, int] = {}
    for row in rows:
        here = {box: number for number, box in enumerate(row)}
        row.sort(key=lambda box: _mean([before[neighbour] for neighbour in neighbours[box][side]], here[box]))
        before = {box: number for number, box in enumerate(row)}


def _place_row(row: list[_Box], neighbours: _Neighbours) -> None:
    """Set the x of the boxes of a row: near their neighbours, in order, without overlaps."""
    offsets = [0.0]
    for left, right in pairwise(row):
        offsets.append(offsets[-1] + (left.width + right.width) / 2 + _GAP)
    groups: list[tuple[float, int]] = []  # isotonic regression: boxes that would overlap move together
    for box, offset in zip(row, offsets, strict=True):
        middle = _mean([neighbour.middle for side in neighbours[box] for neighbour in side], box.middle)
        place, count = middle - offset, 1
        while groups and groups[-1][0] > place:
            last, size = groups.pop()
            place, count = (last * size + place * count) / (size + count), size + count
        groups.append((place, count))
    places = [place for place, count in groups for _ in range(count)]
    for box, place, offset in zip(row, places, offsets, strict=True):
        box.x = place + offset - box.width / 2


def _mean(values: Sequence[float], default: float) -> float:
    """Return the mean of values; without values, the default."""
    return sum(values) / len(values) if values else default


# -- writing ----------------------------------------------------------------------------------------------------------


def _page(name: str, page: _Box, boxes: list[_Box], lines: list[tuple[str, str]]) -> str:
    """Return the SVG document: holders, lines, boxes, and on top the labels of lines."""
    shapes = [_shape(box) for box in boxes if box.members]
    shapes += [line for line, _ in lines]
    shapes += [_shape(box) for box in boxes if not box.members]
    shapes += [label for _, label in lines if label]
    arrowheads = "".join(
        f'<marker id="{kind}" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7" markerHeight="7" orient="auto">'
        f'<path d="M0 .8L9.4 5 0 9.2 2.4 5z" fill="{_LINES[kind][0]}"/></marker>'
        for kind in ("data", "skip")
    )
    size = f'width="{page.width:.0f}" height="{page.height:.0f}"'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {page.width:.0f} {page.height:.0f}" {size} role="img" '
        f'font-family="{_FONT}">\n<title>{escape(name)}</title><defs>{arrowheads}</defs>'
        f'<rect {size} rx="12" fill="#fff" stroke="#d5dbe3"/>\n' + "\n".join(shapes) + "\n</svg>\n"
    )


def _line(edge: Edge, boxes: dict[str, _Box], routes: _Routes) -> tuple[str, str]:
    """Return a line between two boxes, through the spots where it crosses rows, and its label."""
    source, target = boxes[edge.source.id], boxes[edge.target.id]
    between = routes.get((*_siblings(source, target), edge.kind), [])[1:-1]
    points = _points(source, target, between)
    path = f"M{points[0][0]:.1f} {points[0][1]:.1f}" + "".join(
        f"C{x:.1f} {(y + to_y) / 2:.1f} {to_x:.1f} {(y + to_y) / 2:.1f} {to_x:.1f} {to_y:.1f}"
        for (x, y), (to_x, to_y) in pairwise(points)
    )
    colour, dashes = _LINES[edge.kind]
    tip = "" if edge.kind == "shared" else f' marker-end="url(#{edge.kind})"'
    line = f'<path class="{edge.kind}" d="{path}" fill="none" stroke="{colour}" stroke-width="1.5"{dashes}{tip}/>'
    if edge.kind == "data" or not edge.label:
        return line, ""
    label = cut(edge.label, _LONGEST)
    spot = next((place for place in between if label in place.labels), None)
    if spot is None:
        (x, y), (to_x, to_y) = points[(len(points) - 1) // 2], points[len(points) // 2]
        x, y = (x + to_x) / 2, (y + to_y) / 2
    else:
        line_number = spot.labels.index(label) - (len(spot.labels) - 1) / 2
        x, y = spot.middle, spot.y + spot.height / 2 + _ROW * line_number
    wide, holder = width(label) * _LETTER, _siblings(source, target)[0].holder
    ground = f'<rect x="{x - wide / 2:.1f}" y="{y - 8:.1f}" width="{wide:.1f}" height="16" fill="{_ground(holder)}"/>'
    return line, ground + _words(label, x, y + 4, 12, colour)


def _points(source: _Box, target: _Box, between: list[_Box]) -> list[tuple[float, float]]:
    """Return the points of a line: from lower to upper edge, from a holder's title to its member, or side to side."""
    upper, lower = sorted((source, target), key=lambda box: box.y)
    is_above = upper.y + upper.height <= lower.y
    if is_above or (upper.members and upper.y < lower.y):
        ends = [(upper.middle, upper.y + (upper.height if is_above else _HEAD)), (lower.middle, lower.y)]
        ends = ends if upper is source else ends[::-1]
    else:
        left, right = sorted((source, target), key=lambda box: box.x)
        ends = [(left.x + left.width, left.y + left.height / 2), (right.x, right.y + right.height / 2)]
        ends = ends if left is source else ends[::-1]
    passed: list[tuple[float, float]] = []
    for place in between:
        edges = [(place.middle, place.y), (place.middle, place.y + place.height)]
        passed += edges if ends[0][1] <= ends[1][1] else edges[::-1]
    return [ends[0], *passed, ends[1]]


def _shape(box: _Box) -> str:
    """Return a box with its text; a box with members has its title at the upper edge."""
    node = box.node
    assert node is not None
    fill, stroke = _LOOKS["model_call" if node.facts.get("language_models") else node.kind]
    texts = _texts(node)
    if box.members:
        fill, stroke = _ground(box), "#c3cbd5"
        words = _title(texts, box.middle, box.y + 22)
    else:
        top = box.y + box.height / 2 - _ROW / 2 * (len(texts) - 1) + 5
        words = "".join(
            _words(text, box.middle, top + _ROW * number, size, colour, weight)
            for number, (text, size, colour, weight) in enumerate(texts)
        )
    tooltip = escape(" ".join(filter(None, (node.id, str(node.facts.get("schema", ""))))))
    radius = box.height / 2 if node.kind in ("input", "output") else 9
    return (
        f'<g class="{node.kind}"><title>{tooltip}</title><rect x="{box.x:.1f}" y="{box.y:.1f}" width="{box.width:.1f}" '
        f'height="{box.height:.1f}" rx="{radius:.0f}" fill="{fill}" stroke="{stroke}"/>{words}</g>'
    )


def _ground(holder: _Box | None) -> str:
    """Return the fill of a box with members; the page is white."""
    return "#f6f8fa" if holder is not None and holder.node is not None and holder.depth % 2 == 0 else "#ffffff"


def _texts(node: Node) -> list[tuple[str, int, str, str]]:
    """Return the lines of text in a box: text, size, colour, weight."""
    if node.kind in ("input", "output"):
        return [(cut(node.label, _LONGEST), 14, _INK, "")]
    names: Sequence[str] = node.facts.get("variables") or ()
    variables = ", ".join(names) if len(names) < 4 else f"{len(names)} Variables"
    rows = [
        (node.label, 14, _INK, 'font-weight="600"'),
        (node.detail, 12, "#5a6573", ""),
        (variables, 12, "#3f7d58", ""),
    ]
    return [(cut(text, _LONGEST), size, colour, weight) for text, size, colour, weight in rows if text]


def _title(texts: Sequence[tuple[str, int, str, str]], x: float, y: float) -> str:
    """Return texts beside one another, centred on a point."""
    spans = (
        f'<tspan dx="{_WORD if number else 0:.0f}" font-size="{size}" fill="{colour}" {weight}>{escape(text)}</tspan>'
        for number, (text, size, colour, weight) in enumerate(texts)
    )
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="middle">{"".join(spans)}</text>'


def _words(text: str, x: float, y: float, size: int, colour: str, more: str = "") -> str:
    """Return a text centred on a point."""
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="middle" fill="{colour}" {more}>'
        f"{escape(text)}</text>"
    )
