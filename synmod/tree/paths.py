"""The cached path table of a program: where each module and Variable is, until a structural edit is announced."""

from collections.abc import Iterable, Mapping
from itertools import accumulate
from typing import Any, Protocol
from weakref import WeakValueDictionary

from synmod import leaves

from . import variable
from .walk import Visit, check_root, own_impl, walk


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
        located: The records and Variables below the root.
        variables: The Variables by canonical path, in definition order.
        texts: The Variables by path text.
        is_current: Whether no structural edit was announced since the table was made.
        is_sealed: Whether every change of the listed structure is announced.
    """

    def __init__(self) -> None:
        super().__init__()
        self.variables: dict[leaves.KeyPath, variable.Variable] = {}
        self.texts: dict[str, variable.Variable] = {}
        self.is_current = True
        self.is_sealed = True
        self.located: list[Any] = []
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
        objects: list[Any] = []
        for visit in visits:
            text = visit.parts = lead if visit.parent is None else self._join(visit.parent.parts, visit.step)
            located = self._locate(visit) if visit.first else None
            if located is None:
                continue
            objects.append(located)
            if id(located) not in self:
                self[id(located)] = text
                if text:  # not the root, which owns this table
                    self.located.append(located)
                if visit.kind == "variable":
                    self.variables[(*leading_steps, *visit.path)] = self.texts[text] = located
        return objects

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
        record: Record | None = None if impl is None else impl.record(visit.value)
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
    record: Record | None = None if impl is None else impl.record(root)
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


class Edges:
    """The edges of a graph, to follow paths step by step: alias paths are never listed, since they may be very many.

    Args:
        visits: The visits of a walk.
    """

    def __init__(self, visits: Iterable[Visit]) -> None:
        self._below: dict[tuple[int, str], Visit] = {}
        self._first: dict[int | None, Visit] = {}
        self._root: Visit | None = None
        for visit in visits:
            self._root = self._root or visit
            if visit.first and visit.index is not None:
                self._first[visit.index] = visit
            self._below[id(visit.parent), str(visit.step)] = visit

    @property
    def variables(self) -> list[Visit]:
        """The first visit of each Variable, in definition order."""
        return [visit for visit in self._first.values() if visit.kind == "variable"]

    def follow(self, steps: Iterable[str]) -> tuple[Visit, list[str]]:
        """Return the visit that steps lead to, and the steps that lead no further."""
        assert self._root is not None
        visit, rest = self._root, list(steps)
        while rest:
            below = self._below.get((id(self._first.get(visit.index, visit)), rest[0]))
            if below is None:
                break
            visit = below
            del rest[0]
        return visit, rest


def find_variables(root: Any, paths: Iterable[str]) -> tuple[dict[str, Any], list[Visit]]:
    """Return the Variables that path texts lead to, aliases followed, and visits of the others."""
    edges = Edges(walk(root))
    ends = {path: edges.follow(leaves.parse_path(path)) for path in paths}
    targets = {path: visit.value for path, (visit, rest) in ends.items() if visit.kind == "variable" and not rest}
    matched = set(map(id, targets.values()))
    return targets, [visit for visit in edges.variables if id(visit.value) not in matched]
