"""The Variables of a program by path, kept while its structure is sealed, so that `using` needs no walk."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any, Final

from synmod.tree.edits import EDITS
from synmod.tree.node_types import get_node_impl, impl_of
from synmod.tree.record import check_root
from synmod.tree.walk import walk

if TYPE_CHECKING:
    from collections.abc import Mapping

    from synmod.leaves.paths import KeyPath
    from synmod.tree.variable import Variable


class LeafTable:
    """Variables by canonical path, in definition order, and their identities."""

    __slots__ = ("members", "variables")

    def __init__(self, variables: Mapping[KeyPath, Variable]) -> None:
        self.variables = variables
        self.members = frozenset(map(id, variables.values()))


_KEPT: Final[dict[int, tuple[weakref.ref[Any], int, LeafTable]]] = {}
"""By the identity of a root, for as long as it lives: the structural edit it was made at, and its table."""


def leaf_table(root: Any) -> LeafTable:
    """Give the table of a program; made anew where anything could have changed since.

    Raises:
        ArgumentError: `root` holds no graph.
        GraphError: The walk cannot be made.
    """
    kept = _KEPT.get(id(root))
    edits = EDITS.now
    if kept is not None and kept[1] == edits and kept[0]() is root:
        return kept[2]
    check_root(root)
    variables: dict[KeyPath, Variable] = {}
    sealed = impl_of(root) is not None
    for visit in walk(root):
        if visit.first and visit.kind == "variable":
            variables[visit.path] = visit.value
        elif visit.first and visit.kind == "node":
            sealed = sealed and _is_sealed(visit.value)
    table = LeafTable(variables)
    if sealed:
        _keep(root, edits, table)
    return table


def _is_sealed(node: Any) -> bool:
    """Tell whether the structure of a node cannot change without a bump of `EDITS`."""
    impl = get_node_impl(node)
    return impl.by_reference if impl.sealed is None else impl.sealed(node)


def _keep(root: Any, edits: int, table: LeafTable) -> None:
    """Keep a table for as long as its root lives; what cannot be referred to weakly is not kept."""
    key = id(root)

    def forget(gone: weakref.ref[Any]) -> None:
        entry = _KEPT.get(key)
        if entry is not None and entry[0] is gone:
            del _KEPT[key]

    try:
        _KEPT[key] = (weakref.ref(root, forget), edits, table)
    except TypeError:
        return
