"""The Variables of a program by path, kept while its structure is sealed, so that `using` needs no walk."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any, Final

from synmod.leaves.names import path_str
from synmod.tree.graphs.record import check_root
from synmod.tree.walking.edits import EDITS
from synmod.tree.walking.node_types import impl_of
from synmod.tree.walking.walk import walk

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from synmod.leaves.names import KeyPath
    from synmod.tree.variable.variable import Variable
    from synmod.tree.walking.walk import Visit


class LeafTable:
    """The Variables of a program.

    Attributes:
        variables: By canonical path, in definition order.
        indices: The identity number of each, by canonical path.
        by_index: The Variables by that number.
        rows: By canonical path, the identity of each Variable and itself.
        members: Their identities.
        edits: The structural edit that it was made at; None where no count tells whether it still holds.
    """

    __slots__ = ("_texts", "by_index", "edits", "indices", "members", "rows", "variables")

    def __init__(self, visits: Iterable[Visit], edits: int | None) -> None:
        self.edits = edits
        self.variables: dict[KeyPath, Variable] = {}
        self.indices: dict[KeyPath, int] = {}
        self.by_index: dict[int, Variable] = {}
        for visit in visits:
            if visit.index is not None:
                path = visit.path
                self.variables[path] = self.by_index[visit.index] = visit.value
                self.indices[path] = visit.index
        self.rows = {path: (id(variable), variable) for path, variable in self.variables.items()}
        self.members = frozenset(map(id, self.variables.values()))
        self._texts: dict[str, int] | None = None

    @property
    def texts(self) -> Mapping[str, int]:
        """The identity numbers by path text; made when raw JSON is first overlaid."""
        if self._texts is None:
            self._texts = {path_str(path): index for path, index in self.indices.items()}
        return self._texts


_KEPT: Final[dict[int, tuple[weakref.ref[Any], LeafTable]]] = {}
"""By the identity of a root, for as long as it lives: its table."""


def leaf_table(root: Any) -> LeafTable:
    """Give the table of a program; made anew where anything could have changed since.

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
    sealed = impl_of(root) is not None
    for visit in walk(root):
        if visit.first and visit.kind == "variable":
            leaves.append(visit)
        elif visit.impl is not None and sealed:
            sealed = visit.impl.by_reference if visit.impl.sealed is None else visit.impl.sealed(visit.value)
    table = LeafTable(leaves, edits if sealed else None)
    if sealed:
        _keep(root, table)
    return table


def _keep(root: Any, table: LeafTable) -> None:
    """Keep a table for as long as its root lives; what cannot be referred to weakly is not kept."""
    key = id(root)

    def forget(gone: weakref.ref[Any]) -> None:
        entry = _KEPT.get(key)
        if entry is not None and entry[0] is gone:
            del _KEPT[key]

    try:
        _KEPT[key] = (weakref.ref(root, forget), table)
    except TypeError:
        return
