"""Going through a program: iter_graph and its two common cases, and what is behind `Module.flatten`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from synmod.errors import ArgumentError
from synmod.tree.filtering.decisions import Decisions
from synmod.tree.filtering.filters import Any as AnyOf
from synmod.tree.filtering.filters import Everything, Filter, FilterLike, to_filter
from synmod.tree.graphs.record import check_root
from synmod.tree.walking.walk import Order, walk

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from synmod.leaves.names import KeyPath


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


def flattened(
    root: Any,
    predicate: Any = None,
    *,
    recursive: bool = True,
    with_path: bool = False,
    key: Callable[[Any], Any] | None = None,
    statics: bool = False,
) -> Iterator[Any]:
    """Go through the nodes and Variables below a root, lazily, in walk order.

    Args:
        root: A node, or a container of nodes.
        predicate: A filter, or a function of the value; None takes everything.
        recursive: Whether to go into the child nodes, which are yielded in any case.
        with_path: Yield `(path, value)` once for every acyclic path, instead of each object once.
        key: Sorts the attributes of each node, stable.
        statics: Yield statics too.

    Raises:
        ArgumentError: The predicate is no filter.
        GraphError: (while it runs) The walk cannot go on.
    """
    check_root(root)
    return _flattened(root, _wanted(predicate), recursive, with_path, key, statics)


def _flattened(
    root: Any,
    wanted: Filter,
    recursive: bool,
    with_path: bool,
    key: Callable[[Any], Any] | None,
    statics: bool,
) -> Iterator[Any]:
    decisions = Decisions(wanted, root if key is not None else None)
    for visit in walk(root, statics=statics, every_path=with_path, key=key, recursive=recursive):
        if visit.value is root or visit.kind == "container" or not (visit.first or with_path):
            continue
        if decisions.takes(visit):
            yield (visit.path, visit.value) if with_path else visit.value


def _wanted(predicate: Any) -> Filter:
    """Turn a predicate into a filter; a plain function is one of the value alone."""
    if predicate is None:
        return Everything()
    if callable(predicate) and not isinstance(predicate, type | Filter):
        return _OfValue(predicate)
    return to_filter(predicate)


class _OfValue(Filter):
    """What a function of the value alone says yes to."""

    __slots__ = ()
    looks_at_path = False

    def matches(self, path: KeyPath, value: Any, masked: bool) -> bool:  # noqa: ARG002
        """Ask the function."""
        return bool(self._content[0](value))
