"""The boxes of a level that have lines: their layers along the flow, and their places across it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from synmod.view.layout.layers import Pair, layers_of, without_circles
from synmod.view.layout.order import Layered
from synmod.view.layout.places import places_across
from synmod.view.layout.sizes import BETWEEN_BOXES, BETWEEN_LINES, Link, Rectangle

_BETWEEN_LAYERS: Final = 52.0
_MOST_BETWEEN: Final = 110.0
_SLOPE: Final = 0.1
"""How much farther apart layers stand for each step that a line between them goes across."""


class Flow:
    """Boxes with lines between them, in layers; `width` of a size is its extent along the flow, `height` across it.

    Attributes:
        links: The lines.
        kept: The lines as they are layered: those that close a circle are turned round.
        layered: The boxes, and the places that long lines pass, in layers and in order.
        layer: The layer of each of these items.
        layer_start, layer_end: Where each layer begins and ends along the flow.
        starts: Where each box begins along the flow.
        middles: Where the middle of each item is across the flow.
        length, breadth: How much room everything takes along the flow and across it.
    """

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
        return min(max([_BETWEEN_LAYERS, *(_BETWEEN_LAYERS / 2 + _SLOPE * far for far in across)]), _MOST_BETWEEN)

    def _breadth(self, item: int) -> float:
        """How much room an item takes across the flow."""
        return self.sizes[item].height if item < len(self.sizes) else self.room.get(item, 0.0)

    def _gap(self, one: int, other: int) -> float:
        """How much is left free between two items."""
        return BETWEEN_LINES if one >= len(self.sizes) and other >= len(self.sizes) else BETWEEN_BOXES

    def _move_to_origin(self) -> None:
        """Let the first item begin at zero, and note how far the last one reaches."""
        items = range(len(self.middles))
        least = min((self.middles[item] - self._breadth(item) / 2 for item in items), default=0.0)
        self.middles = [middle - least for middle in self.middles]
        self.breadth = max((self.middles[item] + self._breadth(item) / 2 for item in items), default=0.0)
