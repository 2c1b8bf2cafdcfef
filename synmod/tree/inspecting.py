"""Inspect a program: live views, iteration, sharing, paths. All are folds of the walk."""

from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from synmod import errors, leaves

from . import filters, variable
from .walk import NODE, VARIABLE, Order, Visit, check_root, kind_of, walk

T = TypeVar("T")


# -- live views --------------------------------------------------------------------------------------------------------


def variables_of(
    root: Any, is_apart: Callable[[Any], bool] = lambda _: False, *, trainable: bool | None = None
) -> tuple[variable.Variable, ...]:
    """Return all Variables in definition order, or only the trainable, or only the untrainable ones.

    Nodes for which `is_apart` returns True, except the root, are left out with everything below them.

    Raises:
        NotBuiltError: A node has not made its Variables yet; names every such node.
    """
    visits: list[Visit] = []
    unbuilt: list[str] = []
    for visit in walk(root):
        parent = visit.parent
        visit.parts = parent is not None and (parent.parts or (visit.impl is not None and is_apart(visit.value)))
        if visit.parts:
            continue
        if visit.first and visit.kind == "variable":
            visits.append(visit)
        elif visit.impl is not None and visit.impl.unbuilt(visit.value):
            path = repr(leaves.path_str(visit.path)) if visit.path else "the root"
            unbuilt.append(f"{path} ({type(visit.value).__name__})")
    if unbuilt:
        raise errors.NotBuiltError(
            f"Variables cannot be listed before the program is built; not built: {', '.join(unbuilt)}. "
            "Build it first: await sm.build(module, Schema)."
        )
    return tuple(visit.value for visit in visits if trainable is None or is_trainable(visit) == trainable)


def submodules_of(root: Any, cls: type[T]) -> tuple[T, ...]:
    """Return every node of a class except the root itself, in definition order."""
    return tuple(
        visit.value
        for visit in walk(root)
        if visit.kind == "node" and visit.first and visit.value is not root and isinstance(visit.value, cls)
    )


def is_trainable(visit: Visit) -> bool:
    """Whether a visited Variable counts as trainable, as seen from the root of the walk."""
    return visit.value.trainable and not visit.masked


# -- iteration ---------------------------------------------------------------------------------------------------------


def iter_graph(
    node: Any,
    filter: filters.FilterLike = ...,  # noqa: A002  (the public name)
    *,
    order: Order = "pre",
    repeats: bool = False,
    statics: bool = False,
) -> Iterator[tuple[leaves.KeyPath, Any]]:
    """Iterate over nodes, containers and Variables in definition order, each once.

    Args:
        node: A program.
        filter: Selects what to yield; everything by default.
        order: `"pre"`: parents before children; `"post"`: children before parents, the root last.
        repeats: Yield a shared object once for every edge to it; its children are yielded only once.
        statics: Yield statics too.

    Yields:
        `(path, value)`.

    Raises:
        ArgumentError: `node` cannot be the root of a graph, the filter is invalid, or `order` is neither value.
        GraphError: (during iteration) The graph cannot be walked.

    Example:
        >>> from synmod.tree import Param
        >>> [path for path, _ in iter_graph({"a": [Param("x")]})]
        [(), ('a',), ('a', 0)]

    Source: Flax NNX `iter_graph`.
    """
    check_root(node)
    leaves.check_choice("iter_graph: order", order, ("pre", "post"))
    decisions = filters.Decisions(filters.to_filter(filter), node if order == "post" else None)
    visits = walk(node, order=order, statics=statics)
    return ((visit.path, visit.value) for visit in visits if (visit.first or repeats) and decisions.takes(visit))


def iter_below(
    root: Any,
    predicate: Any = None,
    *,
    recursive: bool = True,
    with_path: bool = False,
    key: Callable[[Any], Any] | None = None,
    statics: bool = False,
) -> Iterator[Any]:
    """Iterate over the nodes and Variables below a root, lazily, in walk order.

    Args:
        root: A node, or a container of nodes.
        predicate: A filter, or a function of the value; None takes everything.
        recursive: Whether to descend into the child nodes; they are yielded in any case.
        with_path: Yield `(path, value)` once for every acyclic path, instead of each object once.
        key: Sort key for the attribute names of each node; the sort is stable.
        statics: Yield statics too.

    Raises:
        ArgumentError: The predicate is neither a filter nor a function.
        GraphError: (during iteration) The graph cannot be walked.
    """
    check_root(root)
    selection: filters.Filter = filters.Where(lambda _, value: predicate(value))
    if isinstance(predicate, type | filters.Filter) or not callable(predicate):
        selection = filters.to_filter(... if predicate is None else predicate)
    decisions = filters.Decisions(selection, None if key is None else root)
    return (
        (visit.path, visit.value) if with_path else visit.value
        for visit in walk(root, statics=statics, every_path=with_path, key=key, recursive=recursive)
        if visit.value is not root and visit.kind != "container"
        if (visit.first or with_path) and decisions.takes(visit)
    )


# -- sharing -----------------------------------------------------------------------------------------------------------


def find_duplicates(node: Any) -> list[list[leaves.KeyPath]]:
    """Return the paths of shared objects.

    Args:
        node: A program.

    Returns:
        A list of paths for every node or Variable with two or more incoming edges, the canonical path first; in
        definition order.

    Raises:
        ArgumentError: `node` cannot be the root of a graph.

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
        if len(visits) - (visits[0].parent is None) >= 2  # no edge leads to the root itself
    ]


def paths_of(node: Any, x: Any) -> list[leaves.KeyPath]:
    """Return the paths to an object.

    Args:
        node: A program.
        x: A node, a Variable, or any other object in the program.

    Returns:
        Every acyclic path to `x`, also through shared parents, in definition order; empty if `x` is not found.

    Raises:
        ArgumentError: `node` cannot be the root of a graph.

    Example:
        >>> from synmod.tree import Param
        >>> a = Param("x")
        >>> paths_of([a, [a]], a)
        [(0,), (1, 0)]

    Source: Flax NNX `Variable` paths; differs: exact, nothing is stored.
    """
    check_root(node)
    statics = kind_of(x) not in (NODE, VARIABLE)
    return [visit.path for visit in walk(node, every_path=True, statics=statics) if visit.value is x]
