"""Places across the layers: as near to the neighbours as the order and the gaps allow."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from math import fsum, inf
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from synmod.view.layout.layers import Pair
    from synmod.view.layout.order import Layered

_SWEEPS: Final = 12
_ROUNDS: Final = 3
_NEARLY: Final = 0.001
_PULLS: Final = (2.0, 1.5, 8.0)
"""Between two boxes, between a box and a place that a line passes, between two such places: long lines are straight,
and boxes stand rather below one another than below a line."""

Springs = list[tuple[list[tuple[int, float]], list[tuple[int, float]]]]
"""By item, its neighbours in the layer before and in the one after, each with how strongly it pulls."""


def places_across(
    layered: Layered,
    pulls: Mapping[Pair, float],
    size: Callable[[int], float],
    gap: Callable[[int, int], float],
) -> list[float]:
    """Give each item the place of its middle across the layers.

    Args:
        layered: The items in order.
        pulls: How strongly each line pulls its ends below one another.
        size: How much room an item takes across.
        gap: How much is left free between two items that stand beside each other.
    """
    places = [0.0] * len(layered.before)
    for layer in layered.layers:
        _settle(layer, [0.0] * len(layer), [1.0] * len(layer), size, gap, places)
    springs = _springs(layered, pulls)
    for sweep in range(_SWEEPS):
        forth, both = sweep % 2 == 0, sweep >= _SWEEPS // 2
        for layer in layered.layers if forth else layered.layers[::-1]:
            wanted: list[float] = []
            weights: list[float] = []
            for item in layer:
                before, after = springs[item]
                one_side = (before if forth else after) or [*before, *after]
                place, weight = _pulled(places[item], [*before, *after] if both else one_side, places)
                wanted.append(place)
                weights.append(weight)
            _settle(layer, wanted, weights, size, gap, places)
    _straighten(layered, size, gap, places)
    return places


def _straighten(
    layered: Layered, size: Callable[[int], float], gap: Callable[[int, int], float], places: list[float]
) -> None:
    """Let a line that passes several layers go straight where what stands beside it leaves room; the longest first."""
    least: dict[int, int] = {}
    most: dict[int, int] = {}
    for layer in layered.layers:
        for one, other in pairwise(layer):
            most[one], least[other] = other, one
    for _ in range(_ROUNDS):
        for way in reversed(layered.ways.values()):
            passed = way[1:-1]
            low, high = -inf, inf
            for item in passed:
                if item in least:
                    one = least[item]
                    low = max(low, places[one] + (size(one) + size(item)) / 2 + gap(one, item))
                if item in most:
                    other = most[item]
                    high = min(high, places[other] - (size(other) + size(item)) / 2 - gap(item, other))
            if passed and low <= high + _NEARLY:
                place = min(max(fsum(places[item] for item in passed) / len(passed), low), high)
                for item in passed:
                    places[item] = place


def _springs(layered: Layered, pulls: Mapping[Pair, float]) -> Springs:
    """The pull of each line, step by step along its way."""
    springs: Springs = [([], []) for _ in layered.before]
    for pair, way in layered.ways.items():
        for one, other in pairwise(way):
            passed = (one >= layered.count) + (other >= layered.count)
            pull = _PULLS[passed] * pulls[pair]
            springs[one][1].append((other, pull))
            springs[other][0].append((one, pull))
    return springs


def _pulled(place: float, pulls: list[tuple[int, float]], places: list[float]) -> tuple[float, float]:
    """Where its neighbours would have an item, and how strongly."""
    total = weight = 0.0
    for neighbour, pull in pulls:
        total += pull * places[neighbour]
        weight += pull
    return (total / weight, weight) if weight else (place, 0.1)


def _settle(
    layer: Sequence[int],
    wanted: Sequence[float],
    weights: Sequence[float],
    size: Callable[[int], float],
    gap: Callable[[int, int], float],
    places: list[float],
) -> None:
    """Set the items of a layer as near as possible to where they want to be, in order and apart.

    Least squares under these conditions is isotonic regression, which pooling neighbours that push solves exactly.
    """
    offsets = [0.0]
    for one, other in pairwise(layer):
        offsets.append(offsets[-1] + (size(one) + size(other)) / 2 + gap(one, other))
    pools: list[tuple[float, float, int]] = []  # place, weight, how many items
    for index, place in enumerate(wanted):
        pool = (place - offsets[index], weights[index], 1)
        while pools and pools[-1][0] > pool[0]:
            other = pools.pop()
            weight = other[1] + pool[1]
            pool = ((other[0] * other[1] + pool[0] * pool[1]) / weight, weight, other[2] + pool[2])
        pools.append(pool)
    index = 0
    for place, _, many in pools:
        for _ in range(many):
            places[layer[index]] = place + offsets[index]
            index += 1
