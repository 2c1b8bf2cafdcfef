"""The order in each layer: every node near the middle of its neighbours, so that few lines cross."""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Final

from synmod.view.layout.layers import Pair

_SWEEPS: Final = 8
_MOST_PASSED: Final = 20_000  # places that lines keep free where they pass a layer; beyond, long lines pass anywhere
_MOST_COUNTED: Final = 5_000


class Layered:
    """Nodes and the places that long lines pass, in layers.

    Attributes:
        layers: The items of each layer in order: nodes, and from `count` on places that lines pass.
        before, after: By item, its neighbours in the layer before and in the one after.
        ways: By line, the items from its source to its target.
    """

    __slots__ = ("after", "before", "count", "layers", "ways")

    def __init__(self, layer: Sequence[int], pairs: Iterable[Pair]) -> None:
        self.count = len(layer)
        self.layers: list[list[int]] = [[] for _ in range(max(layer, default=-1) + 1)]
        for node, number in enumerate(layer):
            self.layers[number].append(node)
        self.before: list[list[int]] = [[] for _ in layer]
        self.after: list[list[int]] = [[] for _ in layer]
        self.ways: dict[Pair, list[int]] = {}
        room = _MOST_PASSED
        for source, target in sorted(pairs, key=lambda pair: layer[pair[1]] - layer[pair[0]]):
            room -= layer[target] - layer[source] - 1
            between = range(layer[source] + 1, layer[target]) if room >= 0 else ()
            way = [source, *(self._pass(number) for number in between), target]
            self.ways[(source, target)] = way
            if room >= 0:
                for one, other in pairwise(way):
                    self.after[one].append(other)
                    self.before[other].append(one)

    def _pass(self, number: int) -> int:
        """Make a place in a layer that a line passes."""
        item = len(self.before)
        self.before.append([])
        self.after.append([])
        self.layers[number].append(item)
        return item

    def untangle(self) -> None:
        """Order the layers, sweeping forth and back, and keep the best order that was seen."""
        links = sum(map(len, self.after))
        best, fewest = [list(layer) for layer in self.layers], self._crossings(links)
        for sweep in range(_SWEEPS):
            if not fewest:
                break
            forth = sweep % 2 == 0
            numbers = range(1, len(self.layers)) if forth else range(len(self.layers) - 2, -1, -1)
            for number in numbers:
                self._sort(number, self.before if forth else self.after, number - 1 if forth else number + 1)
            crossings = self._crossings(links)
            if crossings < fewest or links > _MOST_COUNTED:
                best, fewest = [list(layer) for layer in self.layers], crossings
        self.layers = best

    def _sort(self, number: int, neighbours: list[list[int]], beside: int) -> None:
        """Order one layer by the mean place of the neighbours in the layer beside; who has none stays in its place."""
        place = {item: index for index, item in enumerate(self.layers[beside])}
        wanted: dict[int, float] = {}
        for index, item in enumerate(self.layers[number]):
            found = [place[neighbour] for neighbour in neighbours[item]]
            wanted[item] = sum(found) / len(found) if found else float(index)
        self.layers[number].sort(key=lambda item: wanted[item])

    def _crossings(self, links: int) -> int:
        """Count the crossings; of a very large picture only whether there is a line at all."""
        if links > _MOST_COUNTED:
            return 1
        crossings = 0
        for layer, following in pairwise(self.layers):
            place = {item: index for index, item in enumerate(following)}
            ends: list[int] = []
            for item in layer:
                targets = sorted(place[target] for target in self.after[item])
                for target in targets:
                    crossings += len(ends) - bisect_right(ends, target)
                for target in targets:
                    insort(ends, target)
        return crossings
