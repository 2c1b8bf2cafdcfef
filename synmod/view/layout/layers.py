"""Layers: each node one step after the latest that it waits for; circles are cut where the search meets them again."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

Pair = tuple[int, int]
"""Numbers of the two ends of a line."""


def without_circles(count: int, pairs: Iterable[Pair]) -> dict[Pair, bool]:
    """Turn lines round where they close a circle.

    Args:
        count: How many nodes there are, numbered from 0.
        pairs: The lines.

    Returns:
        Each line as it is to be layered, with whether it stands as given; loops are left out.
    """
    after = _followers(count, [pair for pair in pairs if pair[0] != pair[1]])
    state = [0] * count  # 1 while what follows is searched, 2 when it is done
    kept: dict[Pair, bool] = {}
    for start in range(count):
        if state[start]:
            continue
        state[start] = 1
        open_nodes = [(start, iter(after[start]))]
        while open_nodes:
            node, rest = open_nodes[-1]
            for follower in rest:
                if state[follower] == 1:
                    kept.setdefault((follower, node), False)
                else:
                    kept[(node, follower)] = True
                    if not state[follower]:
                        state[follower] = 1
                        open_nodes.append((follower, iter(after[follower])))
                        break
            else:
                state[node] = 2
                open_nodes.pop()
    return kept


def layers_of(count: int, pairs: Iterable[Pair]) -> list[int]:
    """Give each node its layer: the length of the longest way to it.

    Args:
        count: How many nodes there are.
        pairs: The lines; no circles.

    Returns:
        The layer of each node; what waits for nothing stands in the first.
    """
    pairs = list(pairs)
    after, missing = _followers(count, pairs), [0] * count
    for _, target in pairs:
        missing[target] += 1
    layer = [0] * count
    ready = [node for node in range(count) if not missing[node]]
    for node in ready:  # grows while it is read
        for follower in after[node]:
            layer[follower] = max(layer[follower], layer[node] + 1)
            missing[follower] -= 1
            if not missing[follower]:
                ready.append(follower)
    return layer


def _followers(count: int, pairs: Sequence[Pair]) -> list[list[int]]:
    """By node, the nodes that its lines lead to."""
    after: list[list[int]] = [[] for _ in range(count)]
    for source, target in dict.fromkeys(pairs):
        after[source].append(target)
    return after
