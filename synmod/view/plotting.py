"""`plot`: a picture of a program as Mermaid, which GitHub renders in place, as SVG, as an HTML page, or as JSON.

The SVG has boxes in layers along the data flow, and each holder around its members; it needs no external program.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from math import ceil, sqrt
from typing import Any, Final

from synmod import data, errors, leaves
from synmod.module import Module

from .picture import Edge, EdgeKind, Node, Picture, escaped, picture_page, written
from .summary import printable, summary_text, width

# -- SVG ---------------------------------------------------------------------------------------------------------------

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
        above: The box of the holder; None for the page.
        depth: Number of boxes around it.
        members: The boxes in it.
        links: The lines between its members that determine their places, each with its labels.
        labels: The labels at a spot, below one another.
    """

    def __init__(self, node: Node | None = None, above: "_Box | None" = None, labels: Sequence[str] = ()) -> None:
        self.node = node
        self.above = above
        self.depth: int = 0 if above is None else above.depth + 1
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
        above = page if node.parent is None else boxes[node.parent.id]
        boxes[node.id] = _Box(node, above)
        above.members.append(boxes[node.id])
    edges = picture.lines()
    for edge in edges:
        if edge.kind != "shared":
            one, other = _siblings(boxes[edge.source.id], boxes[edge.target.id])
            if one is not other and one.above is not None and one.above is other.above:
                labels = one.above.links.setdefault((one, other, edge.kind), [])
                labels += [_cut(edge.label)] if edge.kind == "skip" else []
    routes: _Routes = {}
    for box in reversed([page, *boxes.values()]):  # members before their holder
        if box.members:
            _arrange(box, routes)
    passed = [place for route in routes.values() for place in route[1:-1]]
    for box in (*boxes.values(), *passed):  # positions in a holder become positions on the page
        if box.above is not None:
            box.x, box.y = box.x + box.above.x, box.y + box.above.y
    return _page(picture.name, page, list(boxes.values()), [_line(edge, boxes, routes) for edge in edges])


def _siblings(one: _Box, other: _Box) -> tuple[_Box, _Box]:
    """Return the two boxes, or their ancestors, that have the same holder."""
    while one.above is not other.above:
        if one.depth >= other.depth and one.above is not None:
            one = one.above
        elif other.above is not None:
            other = other.above
    return one, other


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
    for (one, other, kind), labels in holder.links.items():
        upper, lower = (one, other) if layer[one] <= layer[other] else (other, one)
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
        routes[one, other, kind] = route if upper is one else route[::-1]
    return rows, neighbours


def _layers(boxes: list[_Box], links: dict[_Link, list[str]]) -> dict[_Box, int]:
    """Return for each box the length of the longest path to it; a link that closes a cycle does not count.

    A link with labels counts twice, so that there is a spot for them.
    """
    after: dict[_Box, dict[_Box, int]] = {box: {} for box in boxes}
    for (one, other, _), labels in links.items():
        after[one][other] = max(after[one].get(other, 0), 2 if labels else 1)
    done: set[_Box] = set()
    order: list[_Box] = []  # each box after its successors
    for start in boxes:
        pending = [(start, False)]
        while pending:
            box, is_left = pending.pop()
            if is_left:
                order.append(box)
            elif box not in done:
                done.add(box)
                pending += [(box, True), *((each, False) for each in reversed(after[box]))]
    order.reverse()
    place = {box: number for number, box in enumerate(order)}
    layer = dict.fromkeys(boxes, 0)
    for box in order:
        for each, length in after[box].items():
            if place[each] > place[box]:
                layer[each] = max(layer[each], layer[box] + length)
    return layer


def _sort(rows: list[list[_Box]], neighbours: _Neighbours, side: int) -> None:
    """Sort each row by the mean position of its neighbours in the previous row."""
    before: dict[_Box, int] = {}
    for row in rows:
        here = {box: number for number, box in enumerate(row)}
        row.sort(key=lambda box: _mean([before[each] for each in neighbours[box][side]], here[box]))
        before = {box: number for number, box in enumerate(row)}


def _place_row(row: list[_Box], neighbours: _Neighbours) -> None:
    """Set the x of the boxes of a row: near their neighbours, in order, without overlaps."""
    offsets = [0.0]
    for left, right in pairwise(row):
        offsets.append(offsets[-1] + (left.width + right.width) / 2 + _GAP)
    groups: list[tuple[float, int]] = []  # isotonic regression: boxes that would overlap move together
    for box, offset in zip(row, offsets, strict=True):
        wanted = _mean([each.middle for side in neighbours[box] for each in side], box.middle)
        place, count = wanted - offset, 1
        while groups and groups[-1][0] > place:
            other, others = groups.pop()
            place, count = (other * others + place * count) / (others + count), others + count
        groups.append((place, count))
    places = [place for place, count in groups for _ in range(count)]
    for box, place, offset in zip(row, places, offsets, strict=True):
        box.x = place + offset - box.width / 2


def _mean(values: Sequence[float], otherwise: float) -> float:
    """Return the mean of values, or `otherwise` if there are none."""
    return sum(values) / len(values) if values else otherwise


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
        f'font-family="{_FONT}">\n<title>{escaped(name)}</title><defs>{arrowheads}</defs>'
        f'<rect {size} rx="12" fill="#fff" stroke="#d5dbe3"/>\n' + "\n".join(shapes) + "\n</svg>\n"
    )


def _line(edge: Edge, boxes: dict[str, _Box], routes: _Routes) -> tuple[str, str]:
    """Return a line between two boxes, through the spots where it crosses rows, and its label."""
    one, other = boxes[edge.source.id], boxes[edge.target.id]
    between = routes.get((*_siblings(one, other), edge.kind), [])[1:-1]
    points = _points(one, other, between)
    path = f"M{points[0][0]:.1f} {points[0][1]:.1f}" + "".join(
        f"C{x:.1f} {(y + to_y) / 2:.1f} {to_x:.1f} {(y + to_y) / 2:.1f} {to_x:.1f} {to_y:.1f}"
        for (x, y), (to_x, to_y) in pairwise(points)
    )
    colour, dashes = _LINES[edge.kind]
    tip = "" if edge.kind == "shared" else f' marker-end="url(#{edge.kind})"'
    drawn = f'<path class="{edge.kind}" d="{path}" fill="none" stroke="{colour}" stroke-width="1.5"{dashes}{tip}/>'
    if edge.kind == "data" or not edge.label:
        return drawn, ""
    label = _cut(edge.label)
    spot = next((place for place in between if label in place.labels), None)
    if spot is None:
        (x, y), (to_x, to_y) = points[(len(points) - 1) // 2], points[len(points) // 2]
        x, y = (x + to_x) / 2, (y + to_y) / 2
    else:
        above = spot.labels.index(label) - (len(spot.labels) - 1) / 2
        x, y = spot.middle, spot.y + spot.height / 2 + _ROW * above
    wide, holder = width(label) * _LETTER, _siblings(one, other)[0].above
    ground = f'<rect x="{x - wide / 2:.1f}" y="{y - 8:.1f}" width="{wide:.1f}" height="16" fill="{_ground(holder)}"/>'
    return drawn, ground + _words(label, x, y + 4, 12, colour)


def _points(one: _Box, other: _Box, between: list[_Box]) -> list[tuple[float, float]]:
    """Return the points of a line: from lower to upper edge, from a holder's title to its member, or side to side."""
    if one.y + one.height <= other.y:
        ends = (one.middle, one.y + one.height), (other.middle, other.y)
    elif other.y + other.height <= one.y:
        ends = (one.middle, one.y), (other.middle, other.y + other.height)
    elif one.members and one.y < other.y:  # from a holder to its member
        ends = (one.middle, one.y + _HEAD), (other.middle, other.y)
    elif other.members and other.y < one.y:
        ends = (one.middle, one.y), (other.middle, other.y + _HEAD)
    else:  # side by side
        right = one.x <= other.x
        ends = (
            (one.x + one.width * right, one.y + one.height / 2),
            (other.x + other.width * (not right), other.y + other.height / 2),
        )
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
    tooltip = escaped(" ".join(filter(None, (node.id, str(node.facts.get("schema", ""))))))
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
        return [(_cut(node.label), 14, _INK, "")]
    names: Sequence[str] = node.facts.get("variables") or ()
    held = ", ".join(names) if len(names) < 4 else f"{len(names)} Variables"
    rows = [(node.label, 14, _INK, 'font-weight="600"'), (node.detail, 12, "#5a6573", ""), (held, 12, "#3f7d58", "")]
    return [(_cut(text), size, colour, weight) for text, size, colour, weight in rows if text]


def _title(texts: Sequence[tuple[str, int, str, str]], x: float, y: float) -> str:
    """Return texts beside one another, centred on a point."""
    spans = (
        f'<tspan dx="{_WORD if number else 0:.0f}" font-size="{size}" fill="{colour}" {weight}>{escaped(text)}</tspan>'
        for number, (text, size, colour, weight) in enumerate(texts)
    )
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="middle">{"".join(spans)}</text>'


def _words(text: str, x: float, y: float, size: int, colour: str, more: str = "") -> str:
    """Return a text centred on a point."""
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="middle" fill="{colour}" {more}>'
        f"{escaped(text)}</text>"
    )


def _cut(text: str) -> str:
    """Return a text, cut short if it is too long for a box."""
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


# -- Mermaid -----------------------------------------------------------------------------------------------------------

_ARROWS: Final = {"data": "-->", "skip": "-.->", "shared": "-.-"}
_MERMAID_LOOKS: Final = (
    "classDef module fill:#eaf1fd,stroke:#4a72b0,color:#1c2430",
    "classDef port fill:#ffffff,stroke:#6b7480,color:#1c2430",
    "classDef holder fill:#f8f9fb,stroke:#b9c1cc,color:#1c2430",
)


def mermaid(picture: Picture) -> str:
    """Return a Mermaid flowchart; nodes are numbered, so that no name is parsed as syntax."""
    names = {node.id: f"n{number}" for number, node in enumerate(picture.nodes)}
    edges = picture.lines()
    inward: set[str] = set()
    flows: list[str] = []
    for edge in edges:
        ends = [names[edge.source.id], names[edge.target.id]]
        for index, (one, other) in enumerate(((edge.source, edge.target), (edge.target, edge.source))):
            if one.members and one.holds(other):  # Mermaid draws no line from a subgraph to its own member
                inward.add(one.id)
                ends[index] += "_itself"
        label = f"|{_quoted(edge.label)}|" if edge.label and edge.kind != "data" else ""
        flows.append(f"  {ends[0]} {_ARROWS[edge.kind]}{label} {ends[1]}")
    lines = ["flowchart LR", *_boxes(picture, names, inward), *flows]
    dotted = [str(number) for number, edge in enumerate(edges) if edge.kind == "shared"]
    if dotted:
        lines.append(f"  linkStyle {','.join(dotted)} stroke-dasharray:1 4")
    holders = [names[node.id] for node in picture.nodes if node.members]
    if holders:
        lines.append(f"  class {','.join(holders)} holder")
    return "\n".join([*lines, *(f"  {look}" for look in _MERMAID_LOOKS)]) + "\n"


def _boxes(picture: Picture, names: dict[str, str], inward: set[str]) -> Iterator[str]:
    """Yield the nodes: a holder as a subgraph, with a node of its own inside if a line leads to a member."""
    around: list[Node] = []
    for node in [*picture.nodes, None]:
        while around and (node is None or node.parent is not around[-1]):
            around.pop()
            yield f"{_indent(around)}end"
        if node is not None and node.members:
            title = f"{node.label}: {node.detail}" if node.detail else node.label
            yield f"{_indent(around)}subgraph {names[node.id]}[{_quoted(title)}]"
            if node.id in inward:
                yield f"{_indent(around)}  {names[node.id]}_itself([{_quoted(node.label)}]):::port"
            around.append(node)
        elif node is not None and node.kind == "module":
            text = f"{_escaped(node.label)}<br/>{_escaped(node.detail)}"
            yield f'{_indent(around)}{names[node.id]}["{text}"]:::module'
        elif node is not None:
            yield f"{_indent(around)}{names[node.id]}([{_quoted(node.label)}]):::port"


def _indent(around: Sequence[Node]) -> str:
    return "  " * min(len(around) + 1, 20)


def _quoted(text: str) -> str:
    """Return a text, escaped and in quotes."""
    return f'"{_escaped(text)}"'


def _escaped(text: str) -> str:
    """Return a text with every possible syntax character as a numeric entity."""
    return "".join(c if c.isalnum() or c in " _.,:/=+?!" else f"#{ord(c)};" for c in printable(text))


# -- formats -----------------------------------------------------------------------------------------------------------

FORMATS: Final[dict[str, Callable[[Module], str]]] = {
    "mermaid": lambda module: mermaid(Picture(module)),
    "svg": lambda module: svg(Picture(module)),
    "html": lambda module: picture_page(module.name, svg(Picture(module)), summary_text(module)),
    "json": lambda module: data.dump_json(Picture(module).to_json(), indent=2) + "\n",
}
"""The formats of `plot` by name."""


def plot(module: Module, path: Any, format: Any) -> str:  # noqa: A002  # the public parameter name
    """Return the picture of a module, and write it where a path is given; see `Module.plot`."""
    ending = str(path).rpartition(".")[2]
    if format == "auto":
        format = ending if ending in FORMATS else "mermaid"  # noqa: A001
    leaves.check_choice("plot: format", format, tuple(FORMATS))
    if ending in ("png", "pdf"):
        raise errors.ArgumentError(
            f"plot: {str(path)!r:.100}: {ending} is not a format: write a path that ends in .svg."
        )
    if ending != format and ending in FORMATS:
        raise errors.ArgumentError(
            f"plot: the ending of {str(path)!r:.100} does not match format={format!r}: write format={ending!r}, or "
            "leave it out."
        )
    return written("plot", FORMATS[format](module), path)
