"""Where an object stands: shared objects, and every path to one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from synmod.tree.graphs.record import check_root
from synmod.tree.walking.kinds import NODE, VARIABLE, kind_of
from synmod.tree.walking.walk import walk

if TYPE_CHECKING:
    from collections.abc import Iterator

    from synmod.leaves.names import KeyPath
    from synmod.tree.walking.walk import Visit


def find_duplicates(node: Any) -> list[list[KeyPath]]:
    """List what is shared.

    Args:
        node: A program.

    Returns:
        For every node or Variable with two or more incoming edges its paths, canonical first; in definition order.

    Raises:
        ArgumentError: `node` holds no graph.

    Example:
        >>> from synmod.tree import Param
        >>> a = Param("x")
        >>> find_duplicates({"a": a, "c": a})
        [[('a',), ('c',)]]

    Source: Flax NNX `find_duplicates`.
    """
    check_root(node)
    edges: dict[int, list[Visit]] = {}
    for visit in walk(node):
        if visit.index is not None:
            edges.setdefault(visit.index, []).append(visit)
    return [
        [visit.path for visit in visits]
        for visits in edges.values()
        if len(visits) - (visits[0].above is None) >= 2  # the root is not come to by an edge
    ]


def paths_of(node: Any, x: Any) -> list[KeyPath]:
    """Find an object.

    Args:
        node: A program.
        x: A node, a Variable, or any other object that it holds.

    Returns:
        Every acyclic path to it, also through shared parents, in definition order; empty if it is not there.

    Raises:
        ArgumentError: `node` holds no graph.

    Example:
        >>> from synmod.tree import Param
        >>> a = Param("x")
        >>> paths_of([a, [a]], a)
        [(0,), (1, 0)]

    Source: Flax NNX `Variable` paths; differs: exact, nothing is stored.
    """
    check_root(node)
    if node is x:
        return [()]
    edges = _edges(node, x)
    return list(_simple_paths(edges, _reaching(edges)))


_ROOT = 0
_TARGET = -1
Edges = dict[int, list[tuple[tuple[Any, ...], int]]]
"""By node: the steps of each edge (through containers), and where it leads. Nodes count from 1, above the root is 0."""


def _edges(node: Any, x: Any) -> Edges:
    """Write down which node leads to which, and to `x`."""
    statics = kind_of(x) not in (NODE, VARIABLE)
    edges: Edges = {}
    for visit in walk(node, statics=statics):
        if visit.value is x or visit.kind == "node":
            steps: list[Any] = [visit.step]
            above = visit.above
            while above is not None and above.kind != "node":
                steps.append(above.step)
                above = above.above
            holder = _ROOT if above is None else (above.index or 0) + 1
            target = _TARGET if visit.value is x else (visit.index or 0) + 1
            edges.setdefault(holder, []).append((tuple(reversed(steps)), target))
    return edges


def _reaching(edges: Edges) -> set[int]:
    """Find the nodes from which the target can be reached."""
    incoming: dict[int, list[int]] = {}
    for holder, below in edges.items():
        for _, target in below:
            incoming.setdefault(target, []).append(holder)
    reaching: set[int] = {_TARGET}
    pending = [_TARGET]
    while pending:
        for holder in incoming.get(pending.pop(), ()):
            if holder not in reaching:
                reaching.add(holder)
                pending.append(holder)
    return reaching


def _simple_paths(edges: Edges, reaching: set[int]) -> Iterator[KeyPath]:
    """Follow every way to the target that passes no node twice, depth first."""
    way: list[tuple[int, tuple[Any, ...]]] = [(_ROOT, ())]
    on_way = {_ROOT}
    levels = [iter(edges.get(_ROOT, ()))]
    while levels:
        for steps, target in levels[-1]:
            if target == _TARGET:
                parts = [*(part for _, part in way), steps]
                yield tuple(step for part in parts for step in part)[1:]  # the root itself is come to by no step
            elif target in reaching and target not in on_way:
                way.append((target, steps))
                on_way.add(target)
                levels.append(iter(edges.get(target, ())))
                break
        else:
            levels.pop()
            on_way.discard(way.pop()[0])
