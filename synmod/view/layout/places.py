"""Places across the layers: as near to the neighbours as the order and the gaps allow."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from synmod.view.layout.order import Layered

_SWEEPS: Final = 12
_PULL_OF_LONG_LINES: Final = 6  # they shall be straight


def places_across(layered: Layered, size: Callable[[int], float], gap: Callable[[int, int], float]) -> list[float]:
    """Give each item the place of its middle across the layers.

    Args:
        layered: The items in order.
        size: How much room an item takes across.
        gap: How much is left free between two items that stand beside each other.
    """
    places = [0.0] * len(layered.before)
    for layer in layered.layers:
        _settle(layer, [0.0] * len(layer), [1.0] * len(layer), size, gap, places)
    for sweep in range(_SWEEPS):
        forth = sweep % 2 == 0
        for layer in layered.layers if forth else layered.layers[::-1]:
            wanted: list[float] = []
            weights: list[float] = []
            for item in layer:
                near = [layered.before[item], layered.after[item]]
                place, weight = _pulled(item, near, layered.count, places, both=sweep >= _SWEEPS // 2, forth=forth)
                wanted.append(place)
                weights.append(weight)
            _settle(layer, wanted, weights, size, gap, places)
    return places


def _pulled(
    item: int, near: list[list[int]], count: int, places: list[float], *, both: bool, forth: bool
) -> tuple[float, float]:
    """Where its neighbours would have an item, and how strongly; first those of one side, at last those of both."""
    sides = near if both or not near[0 if forth else 1] else [near[0 if forth else 1]]
    total = weight = 0.0
    for side in sides:
        for neighbour in side:
            pull = _PULL_OF_LONG_LINES if item >= count or neighbour >= count else 1
            total += pull * places[neighbour]
            weight += pull
    return (total / weight, weight) if weight else (places[item], 0.1)


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
