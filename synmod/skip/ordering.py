"""The order of a graph whose steps pass skips: a skip is a scheduling edge beside the data flow."""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING

from synmod.module import Execution
from synmod.skip.namespace import Key

if TYPE_CHECKING:
    from synmod.skip.structure import Structure

Edges = dict[int, set[int]]
"""For each part, the parts that come before it."""

Cycle = tuple[int, int, Key]
"""Consumer, producer and key of a skip that the data flow contradicts."""


def ordered(graph: Execution, structure: Structure) -> tuple[list[int], list[Cycle]]:
    """Give the parts of a graph in topological order, ties by definition order, and the skips that close a cycle."""
    before, cycles = _with_skips(graph, structure)
    return _topological(before), cycles


def skips_before(graph: Execution, structure: Structure) -> dict[int, list[int]]:
    """For each part of a graph that takes what others stash, the parts that must end before it, beside its data."""
    before, _ = _with_skips(graph, structure)
    more = {index: sorted(before[index].difference(needs)) for index, needs in enumerate(graph.needs)}
    return {index: found for index, found in more.items() if found}


def _with_skips(graph: Execution, structure: Structure) -> tuple[Edges, list[Cycle]]:
    """The edges of the data flow, with those from producers to consumers, and from who peeks to who pops."""
    before = {index: set(needs) for index, needs in enumerate(graph.needs)}
    producers: dict[Key, list[int]] = {}
    peekers: dict[Key, list[int]] = {}
    wishes = [structure.wanted_in(part) for part in graph.parts]
    offers = [structure.stashed_in(part) for part in graph.parts]
    for index, offered in enumerate(offers):
        for key in offered:
            producers.setdefault(key, []).append(index)
        for key in wishes[index].peeked:
            peekers.setdefault(key, []).append(index)
    cycles: list[Cycle] = []
    is_forward = True
    for consumer, wished in enumerate(wishes):
        for key in sorted(wished.popped | wished.peeked, key=lambda key: key[1]):
            for producer in () if key in offers[consumer] else producers.get(key, ()):
                is_forward = is_forward and producer < consumer
                joined = _join(before, producer, consumer, is_forward=is_forward)
                if not joined and key in wished.needed:  # else it is absent there
                    cycles.append((consumer, producer, key))
    for consumer, wished in enumerate(wishes):
        for peeker in (peeker for key in wished.popped for peeker in peekers.get(key, ()) if peeker != consumer):
            is_forward = is_forward and peeker < consumer
            _join(before, peeker, consumer, is_forward=is_forward)
    return before, cycles


def _join(before: Edges, first: int, then: int, *, is_forward: bool) -> bool:
    """Add an edge, unless it would close a cycle; where all edges lead forward, one that does cannot."""
    if first in before[then] or is_forward:
        before[then].add(first)
        return True
    pending, seen = [first], {first}
    while pending:
        for index in before[pending.pop()]:
            if index == then:
                return False
            if index not in seen:
                seen.add(index)
                pending.append(index)
    before[then].add(first)
    return True


def _topological(before: Edges) -> list[int]:
    """The parts, each after those before it, ties by index."""
    after: dict[int, list[int]] = {index: [] for index in before}
    for index, needed in before.items():
        for each in needed:
            after[each].append(index)
    left = {index: len(needed) for index, needed in before.items()}
    ready = [index for index, count in left.items() if not count]
    heapq.heapify(ready)
    order: list[int] = []
    while ready:
        index = heapq.heappop(ready)
        order.append(index)
        for each in after[index]:
            left[each] -= 1
            if not left[each]:
                heapq.heappush(ready, each)
    return order
