"""The looks of an SVG picture: colours, line styles, and how text and numbers are written."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple
from xml.sax.saxutils import escape

from synmod.view.plain import printable

if TYPE_CHECKING:
    from synmod.view.picture import EdgeKind, Node

FONT: Final = "ui-sans-serif, system-ui, -apple-system, 'Segoe UI', Roboto, Helvetica, Arial, sans-serif"
INK: Final = "#1c2430"
MUTED: Final = "#5a6573"
PAGE: Final = "#ffffff"
PAGE_BORDER: Final = "#d5dbe3"


class Look(NamedTuple):
    """How a box or a line looks."""

    fill: str
    stroke: str
    width: str = "1.3"
    dashes: str = ""


LOOKS: Final = {
    "asking": Look("#e8f0fe", "#3d6fb8"),
    "module": Look("#fdf2e0", "#b9812a"),
    "function": Look("#f1f3f5", "#77818d"),
    "port": Look("#ffffff", "#77818d"),
    "holder": Look("#f6f8fa", "#c3cbd5"),
    "holder_inside": Look("#ffffff", "#c3cbd5"),
    "variables": Look("", "#3f7d58"),
}
"""Boxes by what they are; modules that ask a language model stand out."""

LINES: Final[dict[EdgeKind, Look]] = {
    "data": Look("none", "#5a6573", "1.5"),
    "skip": Look("none", "#8250b8", "1.5", "6 4"),
    "shared": Look("none", "#3f7d58", "2", "0.1 5"),
}


def look_of(node: Node) -> Look:
    """The look of a box that holds nothing."""
    if node.kind in ("input", "output"):
        return LOOKS["port"]
    if node.kind == "module":
        return LOOKS["asking" if node.facts.get("language_models") else "module"]
    return LOOKS["function"]


def escaped(text: str) -> str:
    """Write a text between tags: no character of it can be taken for one, none is missing from XML."""
    return escape(printable(text))


def number(x: float) -> str:
    """Write a coordinate, with one digit after the point where it needs one."""
    return f"{x:.1f}".removesuffix(".0").replace("-0", "0", 1) if abs(x) < 0.05 else f"{x:.1f}".removesuffix(".0")


def rounded(x: float, y: float, width: float, height: float, radius: float, look: Look) -> str:
    """A rectangle with round corners; its border lies inside."""
    return (
        f'<rect x="{number(x + 0.7)}" y="{number(y + 0.7)}" width="{number(width - 1.4)}" '
        f'height="{number(height - 1.4)}" rx="{number(radius)}" fill="{look.fill}" stroke="{look.stroke}" '
        f'stroke-width="{look.width}"/>'
    )
