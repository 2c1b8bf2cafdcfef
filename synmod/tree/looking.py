"""Looking into a program: live views, iteration, sharing, paths, and the kept table. All are folds of the walk."""

from __future__ import annotations

import weakref
from itertools import count
from typing import TYPE_CHECKING, Any, Final, TypeVar

from synmod.errors import ArgumentError, NotBuiltError
from synmod.leaves.names import KeyPath, path_str

from .filters import Decisions, Everything, Filter, FilterLike, to_filter
from .nodes import NODE, VARIABLE, kind_of, own_impl
from .walk import Order, Visit, check_root, walk

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from .variable import Variable

T = TypeVar("T")


# -- live views --------------------------------------------------------------------------------------------------------


def variables_of(root: Any) -> tuple[Variable, ...]:
    """All Variables, in definition order.

    Raises:
        NotBuiltError: A node has yet to make its Variables; names every such node.
    """
    return tuple(visit.value for visit in _variable_visits(root))


def trainable_variables_of(root: Any) -> tuple[Variable, ...]:
    """The Variables whose own bit is set and that no frozen module stands above on their canonical path.

    Raises:
        NotBuiltError: As `variables_of`.
    """
    return tuple(visit.value for visit in _variable_visits(root) if is_trainable(visit))


def non_trainable_variables_of(root: Any) -> tuple[Variable, ...]:
    """The other Variables.

    Raises:
        NotBuiltError: As `variables_of`.
    """
    return tuple(visit.value for visit in _variable_visits(root) if not is_trainable(visit))


def submodules_of(root: Any, cls: type[T]) -> tuple[T, ...]:
    """Every node of a class except the root itself, in definition order."""
    return tuple(
        visit.value
        for visit in walk(root)
        if visit.kind == "node" and visit.first and visit.value is not root and isinstance(visit.value, cls)
    )


def is_trainable(visit: Visit) -> bool:
    """Whether a visited Variable counts as trainable, as seen from the root of the walk."""
    return visit.value.trainable and not visit.masked


def _variable_visits(root: Any) -> list[Visit]:
    """The first visit of each Variable; raises where some are still to be made."""
    found: list[Visit] = []
    unbuilt: list[Visit] = []
    for visit in walk(root):
        if visit.first:
            if visit.kind == "variable":
                found.append(visit)
            elif visit.impl is not None and visit.impl.unbuilt is not None and visit.impl.unbuilt(visit.value):
                unbuilt.append(visit)
    if unbuilt:
        names = ", ".join(f"{path_str(visit.path)!r} ({type(visit.value).__name__})" for visit in unbuilt)
        raise NotBuiltError(
            f"Variables cannot be listed before the program is built; not built: {names}. "
            "Build it first: await sm.build(module, Schema)."
        )
    return found


# -- iteration ---------------------------------------------------------------------------------------------------------


def iter_graph(
    node: Any,
    filter: FilterLike = ...,  # noqa: A002  (the word of the contract)
    *,
    order: Order = "pre",
    repeats: bool = False,
    statics: bool = False,
) -> Iterator[tuple[KeyPath, Any]]:
    """Iterate over nodes, containers and Variables in definition order, each once.

    Args:
        node: A program.
        filter: What to yield; everything by default.
        order: `"pre"`: a parent before what is below it; `"post"`: after it, the root last.
        repeats: Yield once more for every further edge to a shared object, without descending it.
        statics: Yield statics too.

    Yields:
        `(path, value)`.

    Raises:
        ArgumentError: `node` holds no graph, the filter is not one, or `order` is neither.
        GraphError: (while it runs) The walk cannot go on.

    Example:
        >>> from synmod.tree import Param
        >>> [path for path, _ in iter_graph({"a": [Param("x")]})]
        [(), ('a',), ('a', 0)]

    Source: Flax NNX `iter_graph`.
    """
    check_root(node)
    if order not in ("pre", "post"):
        raise ArgumentError(f"order must be 'pre' or 'post', not {order!r}.")
    return _pairs(node, to_filter(filter), order, repeats, statics)


def _pairs(node: Any, wanted: Filter, order: Order, repeats: bool, statics: bool) -> Iterator[tuple[KeyPath, Any]]:
    decisions = Decisions(wanted, node if order == "post" else None)
    for visit in walk(node, order=order, statics=statics):
        if (visit.first or repeats) and decisions.takes(visit):
            yield visit.path, visit.value


def flattened(
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
        recursive: Whether to go into the child nodes, which are yielded in any case.
        with_path: Yield `(path, value)` once for every acyclic path, instead of each object once.
        key: Sorts the attributes of each node, stable.
        statics: Yield statics too.

    Raises:
        ArgumentError: The predicate is not a filter.
        GraphError: (while it runs) The walk cannot go on.
    """
    check_root(root)
    if predicate is None:
        wanted: Filter = Everything()
    elif callable(predicate) and not isinstance(predicate, type | Filter):
        wanted = _OfValue(predicate)
    else:
        wanted = to_filter(predicate)
    return _flattened(root, wanted, recursive, with_path, key, statics)


def _flattened(
    root: Any, wanted: Filter, recursive: bool, with_path: bool, key: Callable[[Any], Any] | None, statics: bool
) -> Iterator[Any]:
    decisions = Decisions(wanted, root if key is not None else None)
    for visit in walk(root, statics=statics, every_path=with_path, key=key, recursive=recursive):
        if visit.value is root or visit.kind == "container" or not (visit.first or with_path):
            continue
        if decisions.takes(visit):
            yield (visit.path, visit.value) if with_path else visit.value


class _OfValue(Filter):
    """Take what a function of the value alone returns True for."""

    __slots__ = ()
    looks_at_path = False

    def matches(self, path: KeyPath, value: Any, masked: bool) -> bool:  # noqa: ARG002
        """Call the function."""
        return bool(self._content[0](value))


# -- sharing -----------------------------------------------------------------------------------------------------------


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
        if len(visits) - (visits[0].above is None) >= 2  # no edge leads to the root itself
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
    statics = kind_of(x) not in (NODE, VARIABLE)
    return [visit.path for visit in walk(node, every_path=True, statics=statics) if visit.value is x]


# -- the kept table of a program ---------------------------------------------------------------------------------------


class Edits:
    """Counts edits of sealed structure in this process; every number is given out once."""

    __slots__ = ("_numbers", "now")

    def __init__(self) -> None:
        self._numbers = count(1)
        self.now = 0

    def bump(self) -> None:
        """Note that the structure of a sealed node was changed; called after the change."""
        self.now = next(self._numbers)


EDITS: Final = Edits()
"""The counter that whoever changes a sealed node bumps."""


class LeafTable:
    """The Variables of a program by canonical path, and their identities.

    Attributes:
        variables: By canonical path, in definition order.
        members: Their identities.
        edits: The structural edit that it was made at; None where no count shows whether it still holds.
    """

    __slots__ = ("edits", "members", "variables")

    def __init__(self, visits: list[Visit], edits: int | None) -> None:
        self.edits = edits
        self.variables: dict[KeyPath, Variable] = {visit.path: visit.value for visit in visits}
        self.members = frozenset(map(id, self.variables.values()))


_KEPT: Final[dict[int, tuple[weakref.ref[Any], LeafTable]]] = {}


def leaf_table(root: Any) -> LeafTable:
    """The table of a program; made anew where anything may have changed since.

    Raises:
        ArgumentError: `root` holds no graph.
        GraphError: The walk cannot be made.
    """
    kept = _KEPT.get(id(root))
    edits = EDITS.now
    if kept is not None and kept[1].edits == edits and kept[0]() is root:
        return kept[1]
    check_root(root)
    leaves: list[Visit] = []
    sealed = own_impl(type(root)) is not None
    for visit in walk(root):
        if visit.first and visit.kind == "variable":
            leaves.append(visit)
        elif visit.impl is not None and sealed:
            sealed = visit.impl.by_reference if visit.impl.sealed is None else visit.impl.sealed(visit.value)
    table = LeafTable(leaves, edits if sealed else None)
    if sealed:
        key = id(root)

        def forget(gone: weakref.ref[Any]) -> None:
            entry = _KEPT.get(key)
            if entry is not None and entry[0] is gone:
                del _KEPT[key]

        try:
            _KEPT[key] = (weakref.ref(root, forget), table)
        except TypeError:  # it cannot be referred to weakly
            pass
    return table
