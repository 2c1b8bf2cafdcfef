"""iter_graph and its two common cases: the walk for users, with filters and plain pairs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from synmod.errors import ArgumentError
from synmod.tree.decisions import Decisions
from synmod.tree.filters import Any as AnyOf
from synmod.tree.filters import Everything, FilterLike
from synmod.tree.record import check_root
from synmod.tree.walk import Order, walk

if TYPE_CHECKING:
    from collections.abc import Iterator

    from synmod.leaves.paths import KeyPath


def iter_graph(
    node: Any, *filters: FilterLike, order: Order = "pre", repeats: bool = False, statics: bool = False
) -> Iterator[tuple[KeyPath, Any]]:
    """Go through nodes, containers and Variables in definition order, each identity once.

    Args:
        node: A program.
        *filters: What to yield: anything that matches one of them; everything without one.
        order: `"pre"`: a parent before what is below it; `"post"`: after it, the root last.
        repeats: Yield once more for every further edge to a shared object, without descending it.
        statics: Yield statics too.

    Yields:
        `(path, value)`.

    Raises:
        ArgumentError: `node` holds no graph, a filter is none, or `order` is neither.
        GraphError: The walk cannot go on.

    Example:
        >>> from synmod.tree import Param
        >>> [path for path, _ in iter_graph({"a": [Param("x")]})]
        [(), ('a',), ('a', 0)]

    Source: Flax NNX `iter_graph`.
    """
    check_root(node)
    if order not in ("pre", "post"):
        raise ArgumentError(f"order must be 'pre' or 'post', not {order!r}.")
    wanted = AnyOf(*filters) if filters else Everything()
    return _pairs(node, wanted, order, repeats, statics)


def _pairs(node: Any, wanted: Any, order: Order, repeats: bool, statics: bool) -> Iterator[tuple[KeyPath, Any]]:
    decisions = Decisions(wanted)
    for visit in walk(node, order=order, statics=statics):
        if (visit.first or repeats) and decisions.takes(visit):
            yield visit.path, visit.value


def iter_modules(node: Any) -> Iterator[tuple[KeyPath, Any]]:
    """Go through the modules of a program, itself included if it is one, each once.

    Args:
        node: A program.

    Yields:
        `(path, Module)`, in definition order.

    Raises:
        ArgumentError: `node` holds no graph.

    Example:
        >>> import synmod as sm
        >>> [path for path, _ in sm.tree.iter_modules([sm.Module(), sm.Module()])]
        [(0,), (1,)]

    Source: Flax NNX `iter_modules`.
    """
    check_root(node)
    return ((visit.path, visit.value) for visit in walk(node) if visit.impl is not None and visit.impl.is_module)


def iter_children(node: Any) -> Iterator[tuple[Any, Any]]:
    """Go through the direct child nodes, each once.

    Args:
        node: A program.

    Yields:
        `(key, child)`, in definition order; the key of a child inside a container is its path there.

    Raises:
        ArgumentError: `node` holds no graph.

    Example:
        >>> import synmod as sm
        >>> [key for key, _ in sm.tree.iter_children([sm.Module(), [sm.Module()]])]
        [0, (1, 0)]

    Source: Flax NNX `iter_children`.
    """
    check_root(node)
    return _children(node)


def _children(node: Any) -> Iterator[tuple[Any, Any]]:
    for visit in walk(node, recursive=False):
        if visit.kind == "node" and visit.first and visit.value is not node:
            path = visit.path
            yield (path[0] if len(path) == 1 else path), visit.value
