"""Looking into a program: live views, iteration, sharing, paths, and the kept table. All are folds of the walk."""

from collections.abc import Callable, Iterable, Iterator
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
    """All Variables in definition order, or those that count as trainable, or those that do not.

    What stands below a node that is apart, the root excepted, is left out.

    Raises:
        NotBuiltError: A node has yet to make its Variables; names every such node.
    """
    found: list[Visit] = []
    unbuilt: list[str] = []
    for visit in walk(root):
        above = visit.above
        visit.parts = above is not None and (above.parts or (visit.impl is not None and is_apart(visit.value)))
        if visit.parts:
            continue
        if visit.first and visit.kind == "variable":
            found.append(visit)
        elif visit.impl is not None and visit.impl.unbuilt is not None and visit.impl.unbuilt(visit.value):
            unbuilt.append(f"{leaves.path_str(visit.path)!r} ({type(visit.value).__name__})")
    if unbuilt:
        raise errors.NotBuiltError(
            f"Variables cannot be listed before the program is built; not built: {', '.join(unbuilt)}. "
            "Build it first: await sm.build(module, Schema)."
        )
    return tuple(visit.value for visit in found if trainable is None or is_trainable(visit) == trainable)


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


# -- iteration ---------------------------------------------------------------------------------------------------------


def iter_graph(
    node: Any,
    filter: filters.FilterLike = ...,  # noqa: A002  (the word of the contract)
    *,
    order: Order = "pre",
    repeats: bool = False,
    statics: bool = False,
) -> Iterator[tuple[leaves.KeyPath, Any]]:
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
        raise errors.ArgumentError(f"order must be 'pre' or 'post', not {order!r}.")
    decisions = filters.Decisions(filters.to_filter(filter), node if order == "post" else None)
    visits = walk(node, order=order, statics=statics)
    return ((visit.path, visit.value) for visit in visits if (visit.first or repeats) and decisions.takes(visit))


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
    wanted: filters.Filter = filters.Where(lambda _, value: predicate(value))
    if isinstance(predicate, type | filters.Filter) or not callable(predicate):
        wanted = filters.to_filter(... if predicate is None else predicate)
    decisions = filters.Decisions(wanted, None if key is None else root)
    return (
        (visit.path, visit.value) if with_path else visit.value
        for visit in walk(root, statics=statics, every_path=with_path, key=key, recursive=recursive)
        if visit.value is not root and visit.kind != "container"
        if (visit.first or with_path) and decisions.takes(visit)
    )


# -- sharing -----------------------------------------------------------------------------------------------------------


def find_duplicates(node: Any) -> list[list[leaves.KeyPath]]:
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


def paths_of(node: Any, x: Any) -> list[leaves.KeyPath]:
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


class Record(Protocol):
    """The bookkeeping of a node whose structural edits are announced by `outdate`; for modules."""

    sealed: bool
    paths: "PathTable | None"
    """As a root: the table of what is below it."""
    listed_in: "WeakValueDictionary[int, PathTable] | None"
    """The tables that list the node, by identity."""


class PathTable(dict[int, str]):
    """The path text of every module and Variable of one program, by the identity of its record, or its own.

    It keeps what stands below the root alive, since an identity is taken again by what comes after.

    Attributes:
        variables: The Variables by canonical path, in definition order.
        texts: The same by path text.
        is_current: Whether no structural edit was announced since it was made.
        is_sealed: Whether all changes of the structure that it shows are announced.
    """

    __slots__ = ("__weakref__", "_below", "_ints", "is_current", "is_sealed", "texts", "variables")

    def __init__(self) -> None:
        super().__init__()
        self.variables: dict[leaves.KeyPath, variable.Variable] = {}
        self.texts: dict[str, variable.Variable] = {}
        self.is_current = True
        self.is_sealed = True
        self._below: list[Any] = []
        self._ints: set[str] = set()  # the paths whose last step is an int, which their text does not show

    def add(self, visits: Iterable[Visit], lead: str = "", steps: leaves.KeyPath = ()) -> list[Any]:
        """List what a walk visits; what has a path already keeps it.

        Args:
            visits: The visits, in definition order.
            lead: The path text of a module that is listed.
            steps: The steps from there to the root of the walk.

        Returns:
            The records and Variables that were visited.
        """
        for step in steps:
            lead = self._joined(lead, step)
        above = self.steps_of(lead)
        texts: dict[int, str] = {}
        found: list[Any] = []
        for visit in list(visits):  # held, so that no visit takes the identity of another
            text = lead if visit.above is None else self._joined(texts[id(visit.above)], visit.step)
            texts[id(visit)] = text
            located = self._located(visit) if visit.first else None
            if located is None:
                continue
            found.append(located)
            if id(located) not in self:
                self[id(located)] = text
                if text:  # not the root, which holds this table
                    self._below.append(located)
                if visit.kind == "variable":
                    self.variables[(*above, *visit.path)] = self.texts[text] = located
        return found

    @property
    def located(self) -> tuple[Any, ...]:
        """The records and Variables below the root."""
        return tuple(self._below)

    def _joined(self, lead: str, step: Any) -> str:
        text = f"{lead}/{leaves.escape_step(step)}" if lead else leaves.escape_step(step)
        if type(step) is int:
            self._ints.add(text)
        return text

    def _located(self, visit: Visit) -> Any:
        """The Variable, or the record of the module, that is visited; None for the rest."""
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
        """The steps of a path text; the table shows which of them are ints."""
        if not path:
            return ()
        leads = accumulate(path.split("/"), "{}/{}".format)
        steps = zip(leads, leaves.parse_path(path), strict=True)
        return tuple(int(step) if lead in self._ints else step for lead, step in steps)


def path_table(root: Any, *, sealed: bool = False) -> PathTable:
    """The table of a program: the kept one, or made by a walk.

    Args:
        root: A program; the table is kept by a root that has a record.
        sealed: Whether a kept table will do only if all changes of the structure are announced.

    Raises:
        ArgumentError: `root` holds no graph.
        GraphError: The walk cannot be made.
    """
    impl = own_impl(variable.class_of(root))
    record: Record | None = None if impl is None or impl.record is None else impl.record(root)
    kept = None if record is None else record.paths
    if kept is not None and kept.is_current and (kept.is_sealed or not sealed):
        return kept
    check_root(root)
    table = PathTable()
    table.add(walk(root))
    if record is not None:
        record.paths = table
    return table


def outdate(record: Record, keep: PathTable | None = None) -> None:
    """Announce a structural edit of a node: the tables that list it are made anew when they are next needed.

    Args:
        record: The record of the node.
        keep: A table that shows the edit already.
    """
    for table in list((record.listed_in or {}).values()):
        if table is not keep:
            table.is_current = False
