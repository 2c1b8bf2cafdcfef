"""Boxes in boxes: each holder arranges what it holds and is then a box like any other in its own holder."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final, NamedTuple

from synmod.view.layout.detours import loose_lines
from synmod.view.layout.level import Arranged, arrange_level
from synmod.view.layout.routes import Line
from synmod.view.layout.sizes import Link, Rectangle

PADDING: Final = 18.0
HEAD: Final = 32.0
"""Room for the title of a box that holds others."""


class Measure(NamedTuple):
    """How much room something takes.

    Attributes:
        box: The size of a thing that holds nothing; of one that holds others, that of its title.
        label: The size of the label of a line.
    """

    box: Callable[[Any], Rectangle]
    label: Callable[[Any], Rectangle]


class Box:
    """A rectangle on the page.

    Attributes:
        thing: What it is of; None for the page itself, where no one thing holds everything.
        members: The boxes in it.
        x, y, width, height: Where it stands and how large it is.
    """

    __slots__ = ("above", "depth", "height", "links", "members", "thing", "width", "x", "y")

    def __init__(self, thing: Any, above: Box | None) -> None:
        self.thing = thing
        self.above = above
        self.depth = 0 if above is None else above.depth + 1
        self.members: list[Box] = []
        self.links: list[tuple[Box, Box, Any, float]] = []
        self.x = self.y = self.width = self.height = 0.0


class Layout(NamedTuple):
    """Everything on the page: boxes, holders before what they hold, and lines."""

    boxes: list[Box]
    lines: list[Line]

    @property
    def width(self) -> float:
        """The width of the page."""
        return self.boxes[0].width

    @property
    def height(self) -> float:
        """The height of the page."""
        return self.boxes[0].height


def arranged(
    things: Iterable[tuple[Any, Any]],
    links: Iterable[tuple[Any, Any, Any, float]],
    measure: Measure,
    *,
    across: bool,
) -> Layout:
    """Arrange a picture.

    Args:
        things: Each with what holds it (None for the page), holders before what they hold.
        links: Two things, what the line between them is of, and how strongly it draws them below one another; 0 where
            it does not even say who comes first.
        measure: The sizes of things and labels.
        across: Whether data flows from left to right; else from top to bottom.
    """
    boxes, by_thing = _boxes(things)
    loose: list[tuple[Box, Box, Any]] = []
    ends: dict[int, tuple[Box, Box]] = {}
    for source, target, what, pull in links:
        one, other = ends[id(what)] = by_thing[id(source)], by_thing[id(target)]
        level = _lifted(one, other) if pull else None
        if level is None or level[0].above is None:
            loose.append((one, other, what))
        else:
            level[0].above.links.append((*level, what, pull))
    levels: list[tuple[Box, Arranged]] = []
    for box in reversed(boxes):
        if box.members:
            levels.append((box, _arrange(box, measure, across=across)))
        elif box.thing is not None:
            box.width, box.height = measure.box(box.thing)
    for box in boxes:
        if box.above is not None:
            box.x, box.y = box.x + box.above.x, box.y + box.above.y
    lines = [
        line.moved(box.x + PADDING, box.y + _head(box)).between(*ends[id(line.what)], across=across)
        for box, level in reversed(levels)
        for line in level.lines
    ]
    return Layout(boxes, [*lines, *loose_lines(boxes, lines, loose, across=across)])


def _boxes(things: Iterable[tuple[Any, Any]]) -> tuple[list[Box], dict[int, Box]]:
    """Make the boxes; the page is the one thing that holds all others, or a box without one."""
    pairs = list(things)
    single = len([holder for _, holder in pairs if holder is None]) == 1 and len(pairs) > 1
    page = Box(pairs[0][0] if single else None, None)
    boxes, by_thing = [page], {id(page.thing): page}
    for thing, holder in pairs[1:] if single else pairs:
        above = page if holder is None else by_thing[id(holder)]
        box = by_thing[id(thing)] = Box(thing, above)
        above.members.append(box)
        boxes.append(box)
    return boxes, by_thing


def _lifted(one: Box, other: Box) -> tuple[Box, Box] | None:
    """The boxes of one holder in which two boxes stand; None where one of them stands in the other."""
    while one.depth > other.depth and one.above is not None:
        one = one.above
    while other.depth > one.depth and other.above is not None:
        other = other.above
    if one is other:
        return None
    while one.above is not other.above and one.above is not None and other.above is not None:
        one, other = one.above, other.above
    return one, other


def _arrange(box: Box, measure: Measure, *, across: bool) -> Arranged:
    """Arrange the members of a box, which gives it its size."""
    places = {id(member): index for index, member in enumerate(box.members)}
    links = [
        Link(places[id(one)], places[id(other)], what, pull, measure.label(what))
        for one, other, what, pull in box.links
    ]
    sizes = [Rectangle(member.width, member.height) for member in box.members]
    level = arrange_level(sizes, links, across=across)
    for member, (x, y) in zip(box.members, level.places, strict=True):
        member.x, member.y = x + PADDING, y + _head(box)
    wide, high = measure.box(box.thing) if box.thing is not None else Rectangle(0.0, 0.0)
    box.width = max(level.width + 2 * PADDING, wide)
    box.height = max(level.height + _head(box) + PADDING, high)
    return level


def _head(box: Box) -> float:
    """How far below its upper edge the members of a box begin."""
    return PADDING if box.thing is None else PADDING + HEAD
