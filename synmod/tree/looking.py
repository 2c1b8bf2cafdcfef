"""Inspect a program: live views, iteration, sharing, paths, and the cached path table. All are folds of the walk."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import accumulate
from typing import Any, Protocol, TypeVar
from weakref import WeakValueDictionary

from synmod import errors, leaves

from . import filters, variable
from .walk import NODE, VARIABLE, Order, Visit, check_root, kind_of, own_impl, walk

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
        elif visit.impl is not None and visit.impl.unbuilt is not None and visit.impl.unbuilt(visit.value):
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
    if order not in ("pre", "post"):
        raise errors.ArgumentError(f"order must be 'pre' or 'post', not {order!r}.")
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


# -- the cached path table of a program --------------------------------------------------------------------------------


class Record(Protocol):
    """The bookkeeping of a node, a module, whose structural edits are announced with `invalidate_paths`."""

    sealed: bool
    paths: "PathTable | None"
    """The table of the program whose root is this node."""
    listed_in: "WeakValueDictionary[int, PathTable] | None"
    """The tables that list the node, by identity."""


class PathTable(dict[int, str]):
    """The path texts of one program: of modules by the identity of their record, of Variables by their own identity.

    The table keeps the objects below the root alive, since an identity may be reused after its object is freed.

    Attributes:
        variables: The Variables by canonical path, in definition order.
        texts: The Variables by path text.
        is_current: Whether no structural edit was announced since the table was made.
        is_sealed: Whether every change of the listed structure is announced.
    """

    __slots__ = ("__weakref__", "_below", "_frozen_variables", "_ints", "is_current", "is_sealed", "texts", "variables")

    def __init__(self) -> None:
        super().__init__()
        self.variables: dict[leaves.KeyPath, variable.Variable] = {}
        self.texts: dict[str, variable.Variable] = {}
        self.is_current = True
        self.is_sealed = True
        self._below: list[Any] = []
        self._ints: set[str] = set()  # path texts whose last step is an int, which the text does not show
        self._frozen_variables: tuple[Mapping[leaves.KeyPath, variable.Variable], frozenset[int]] | None = None

    def freeze_variables(self) -> tuple[Mapping[leaves.KeyPath, variable.Variable], frozenset[int]]:
        """Return the present Variables by path, and their identities; later additions do not change them. Hot."""
        if self._frozen_variables is None:
            self._frozen_variables = dict(self.variables), frozenset(map(id, self.variables.values()))
        return self._frozen_variables

    def add(self, visits: Iterable[Visit], lead: str = "", steps: leaves.KeyPath = ()) -> list[Any]:
        """Add the objects that a walk visits; objects that are listed already keep their path.

        Args:
            visits: The visits, in definition order.
            lead: The path text of a listed module.
            steps: The steps from that module to the root of the walk.

        Returns:
            The records and Variables that were visited.
        """
        self._frozen_variables = None
        for step in steps:
            lead = self._join(lead, step)
        leading_steps = self.steps_of(lead)
        texts: dict[int, str] = {}
        objects: list[Any] = []
        for visit in list(visits):  # a list, so that every visit lives on and has an identity of its own
            text = lead if visit.parent is None else self._join(texts[id(visit.parent)], visit.step)
            texts[id(visit)] = text
            located = self._locate(visit) if visit.first else None
            if located is None:
                continue
            objects.append(located)
            if id(located) not in self:
                self[id(located)] = text
                if text:  # not the root, which owns this table
                    self._below.append(located)
                if visit.kind == "variable":
                    self.variables[(*leading_steps, *visit.path)] = self.texts[text] = located
        return objects

    @property
    def located(self) -> tuple[Any, ...]:
        """The records and Variables below the root."""
        return tuple(self._below)

    def _join(self, lead: str, step: Any) -> str:
        text = f"{lead}/{leaves.escape_step(step)}" if lead else leaves.escape_step(step)
        if type(step) is int:
            self._ints.add(text)
        return text

    def _locate(self, visit: Visit) -> Any:
        """Return the visited Variable, or the record of the visited module; None for anything else."""
        if visit.kind == "variable":
            return visit.value
        if visit.kind != "node":
            return None
        impl = visit.impl
        record: Record | None = None if impl is None or impl.record is None else impl.record(visit.value)
        if record is None:
            self.is_sealed = self.is_sealed and impl is not None and impl.by_reference
            return None
        self.is_sealed = self.is_sealed and record.sealed
        if record.listed_in is None:
            record.listed_in = WeakValueDictionary()
        record.listed_in[id(self)] = self
        return record

    def steps_of(self, path: str) -> leaves.KeyPath:
        """Return the steps of a path text; the table knows which of them are ints."""
        if not path:
            return ()
        leads = accumulate(path.split("/"), "{}/{}".format)
        steps = zip(leads, leaves.parse_path(path), strict=True)
        return tuple(int(step) if lead in self._ints else step for lead, step in steps)


def path_table(root: Any, *, sealed: bool = False) -> PathTable:
    """Return the path table of a program, cached or made by a walk.

    Args:
        root: A program; a root that has a record caches its table.
        sealed: Whether to use a cached table only if every change of the structure is announced.

    Raises:
        ArgumentError: `root` cannot be the root of a graph.
        GraphError: The graph cannot be walked.
    """
    impl = own_impl(variable.class_of(root))
    record: Record | None = None if impl is None or impl.record is None else impl.record(root)
    cached = None if record is None else record.paths
    if cached is not None and cached.is_current and (cached.is_sealed or not sealed):
        return cached
    check_root(root)
    table = PathTable()
    table.add(walk(root))
    if record is not None:
        record.paths = table
    return table


def invalidate_paths(record: Record, keep: PathTable | None = None) -> None:
    """Announce a structural edit of a node: the tables that list it are rebuilt when they are next needed.

    Args:
        record: The record of the node.
        keep: A table that already reflects the edit.
    """
    for table in list((record.listed_in or {}).values()):
        if table is not keep:
            table.is_current = False
