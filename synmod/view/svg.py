"""A picture as SVG, laid out here: a light card with colours of its own, so that it reads on light and dark pages."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final
from xml.sax.saxutils import quoteattr

from synmod.view.layout import Box, Label, Layout, Line, Measure, Rectangle, arranged, labelled
from synmod.view.letters import fitted, text_width
from synmod.view.plain import printable
from synmod.view.svg_looks import (
    FONT,
    INK,
    LINES,
    LOOKS,
    MUTED,
    PAGE,
    PAGE_BORDER,
    Look,
    escaped,
    look_of,
    number,
    rounded,
)  # fmt: skip

if TYPE_CHECKING:
    from synmod.view.picture import Edge, Node, Picture

_PULLS: Final = {"data": 1.0, "skip": 0.001, "shared": 0.0}
"""How strongly a line draws its ends below one another: data flow is the backbone of a picture."""

_WIDEST_ACROSS: Final = 1000.0
_NAME, _SMALL = 14, 12
_LEAST, _MOST = 96, 230
_MARGIN: Final = 28
_MOST_VARIABLES: Final = 3


def svg(picture: Picture) -> str:
    """Draw a picture: from left to right, or from top to bottom where that would be very wide."""
    layout = _laid_out(picture, across=True)
    if layout.width > _WIDEST_ACROSS:
        upright = _laid_out(picture, across=False)
        layout = upright if upright.width < layout.width else layout
    width, height = number(layout.width), number(layout.height)
    about = ", ".join(
        f"{node.label} ({node.detail})" for node in picture.nodes if node.kind == "module" and node.parent
    )
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        f'role="img" font-family={quoteattr(FONT)}>',
        f"  <title>{escaped(picture.name)}</title>",
        f"  <desc>{escaped(fitted(about, 1, 2000))}</desc>",
        *_markers(),
        *(f"  {shape}" for box in layout.boxes if box.members for shape in _holder(box)),
        *(f"  {_line(line)}" for line in layout.lines),
        *(f"  {shape}" for box in layout.boxes if not box.members for shape in _box(box.thing, box)),
        *(f"  {shape}" for label in labelled(layout, _label_size) for shape in _label(label)),
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


def _laid_out(picture: Picture, *, across: bool) -> Layout:
    """Arrange the picture; shared Variables say nothing of who comes first."""
    return arranged(
        [(node, node.parent) for node in picture.nodes],
        [(edge.source, edge.target, edge, _PULLS[edge.kind]) for edge in picture.lines()],
        Measure(_size, _label_size),
        across=across,
    )


def _rows(node: Node) -> list[tuple[str, int, str, bool]]:
    """The lines of text in a box: text, size, colour, whether bold."""
    if node.kind in ("input", "output"):
        return [(printable(node.label), _NAME, INK, False)]
    rows = [(printable(node.label), _NAME, INK, True), (printable(node.detail), _SMALL, MUTED, False)]
    rows.append((_variables(node), _SMALL, LOOKS["variables"].stroke, False))
    return [(fitted(text, size, _MOST, bold=bold), size, colour, bold) for text, size, colour, bold in rows if text]


def _size(node: Node) -> Rectangle:
    """The size of a box: that of its text; of one that holds others that of its title."""
    rows = _rows(node)
    if node.members:
        title = "  ".join((node.label, node.detail, _variables(node)))
        wide = min(text_width(printable(title), _NAME), _MOST) + 2 * _MARGIN
        return Rectangle(float(wide), 0.0)
    wide = max(text_width(text, size, bold=bold) for text, size, _, bold in rows)
    if node.kind in ("input", "output"):
        return Rectangle(float(wide + _MARGIN + 4), 36.0)
    return Rectangle(float(max(wide + _MARGIN, _LEAST)), float(18 + 18 * len(rows)))


def _markers() -> Iterator[str]:
    """The arrow heads, one for each colour of a line that has one."""
    yield "  <defs>"
    for kind in ("data", "skip"):
        yield (
            f'    <marker id="{kind}" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7" markerHeight="7" '
            f'orient="auto"><path d="M0 0.8 L9.4 5 L0 9.2 L2.4 5 z" fill="{LINES[kind].stroke}"/></marker>'
        )
    yield "  </defs>"


def _holder(box: Box) -> Iterator[str]:
    """A box that holds others, with its title; the outermost is the card itself."""
    look = Look(PAGE, PAGE_BORDER) if box.above is None else LOOKS["holder" if box.depth % 2 else "holder_inside"]
    yield rounded(box.x, box.y, box.width, box.height, 12 if box.above is None else 10, look)
    if box.thing is not None:
        yield (
            f'<text x="{number(box.x + 18)}" y="{number(box.y + 29)}" xml:space="preserve" font-size="{_NAME}" '
            f'font-weight="600" fill="{INK}">{_title(box.thing, int(box.width) - _MARGIN)}</text>'
        )


def _title(node: Node, room: int) -> str:
    """What stands above the members of a box: name, class and Variables, as far as there is room."""
    label = fitted(printable(node.label), _NAME, room, bold=True)
    room -= text_width(label, _NAME, bold=True)
    title = escaped(label)
    for text, colour in ((printable(node.detail), MUTED), (_variables(node), LOOKS["variables"].stroke)):
        text = f"  {text}"
        if text.strip() and text_width(text, _SMALL) <= room:
            room -= text_width(text, _SMALL)
            title += f'<tspan font-size="{_SMALL}" font-weight="400" fill="{colour}">{escaped(text)}</tspan>'
    return title


def _variables(node: Node) -> str:
    """The names of the Variables of a module; their number where there are many."""
    names: list[str] = node.facts.get("variables") or []
    return printable(", ".join(names) if len(names) <= _MOST_VARIABLES else f"{len(names)} Variables")


def _box(node: Node, box: Box) -> Iterator[str]:
    """A box that holds nothing: what it is in a line each."""
    is_port = node.kind in ("input", "output")
    yield f"<g><title>{escaped(_about(node))}</title>"
    yield rounded(box.x, box.y, box.width, box.height, box.height / 2 if is_port else 8, look_of(node))
    rows = _rows(node)
    top = box.y + box.height / 2 - 9 * (len(rows) - 1) + 5
    for index, (text, size, colour, bold) in enumerate(rows):
        weight = ' font-weight="600"' if bold else ""
        yield (
            f'<text x="{number(box.x + box.width / 2)}" y="{number(top + 18 * index)}" font-size="{size}"{weight} '
            f'text-anchor="middle" fill="{colour}">{escaped(text)}</text>'
        )
    yield "</g>"


def _about(node: Node) -> str:
    """What is shown of a node when somebody points at it."""
    return " ".join(part for part in (node.id or node.label, str(node.facts.get("schema", ""))) if part)


def _line(line: Line) -> str:
    """A line, with the name of what flows."""
    edge: Edge = line.what
    look = LINES[edge.kind]
    points = [f"M{number(line.path.start[0])} {number(line.path.start[1])}"]
    points += ["C" + ", ".join(f"{number(x)} {number(y)}" for x, y in curve) for curve in line.path.curves]
    dashes = f' stroke-dasharray="{look.dashes}"' if look.dashes else ""
    cap = ' stroke-linecap="round"' if edge.kind == "shared" else ""
    tip = "" if edge.kind == "shared" else f' marker-end="url(#{edge.kind})"'
    title = f"<title>{escaped(edge.label)}</title>" if edge.label else ""
    return (
        f'<path d="{" ".join(points)}" fill="none" stroke="{look.stroke}" stroke-width="{look.width}"'
        f"{dashes}{cap}{tip}>{title}</path>"
    )


def _label_text(edge: Edge) -> str:
    """What stands on a line: the name of a skip or of a shared Variable."""
    return "" if edge.kind == "data" else fitted(printable(edge.label), _SMALL, _MOST)


def _label_size(edge: Edge) -> Rectangle:
    """The room for what stands on a line."""
    text = _label_text(edge)
    return Rectangle(float(text_width(text, _SMALL) + 8), 18.0) if text else Rectangle(0.0, 0.0)


def _label(label: Label) -> Iterator[str]:
    """The name on a line; that of a shared Variable stands in its box as well, so it may give way."""
    edge: Edge = label.line.what
    if edge.kind == "shared" and not label.is_free:
        return
    (x, y), (wide, _) = label.middle, _label_size(edge)
    yield (
        f'<rect x="{number(x - wide / 2)}" y="{number(y - 9)}" width="{number(wide)}" height="17" rx="5" fill="{PAGE}" '
        'fill-opacity="0.92"/>'
    )
    yield (
        f'<text x="{number(x)}" y="{number(y + 4)}" font-size="{_SMALL}" text-anchor="middle" '
        f'fill="{LINES[edge.kind].stroke}">{escaped(_label_text(edge))}</text>'
    )
