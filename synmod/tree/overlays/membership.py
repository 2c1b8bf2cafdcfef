"""Which Variables belong to the program under an overlay, also those that came to it after the block began."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from synmod.errors import GraphError
from synmod.tree.overlays.leaf_table import LeafTable, leaf_table
from synmod.tree.walking.edits import EDITS

if TYPE_CHECKING:
    from synmod.leaves.names import KeyPath
    from synmod.tree.variable.overlay import Layer
    from synmod.tree.variable.variable import Variable


class Membership:
    """The Variables of a program, as far as anybody has asked.

    A build inside the block, or a structural edit, may bring new ones; they are looked for when a Variable that is no
    member is written, and never while the structure stays sealed.
    """

    __slots__ = ("_edits", "_first", "_layer", "_outside", "_paths", "_root", "table")

    def __init__(self, root: Any, table: LeafTable, layer: Layer) -> None:
        self._root = root
        self._first = self.table = table
        self._layer = layer
        self._edits = table.edits
        self._outside: dict[int, tuple[Any, int]] = {}
        self._paths: dict[int, KeyPath] | None = None

    def has_joined(self, variable: Variable) -> bool:
        """Tell whether a Variable that was no member has become one, and let it be one."""
        if self._edits is not None and self._edits == EDITS.now:
            return False
        known = self._outside.get(id(variable))
        if known is not None and known[1] == EDITS.now:
            return False
        try:
            table = leaf_table(self._root)
        except GraphError:  # somebody is in the midst of an edit
            return False
        self._edits = table.edits
        if id(variable) not in table.members:
            self._outside[id(variable)] = variable, EDITS.now  # held, so that its identity stays its own
            return False
        self.table = table
        self._paths = None
        self._layer.members = table.members | self._first.members
        return True

    def path_of(self, variable: Variable) -> KeyPath | None:
        """Give the canonical path of a member, None for other Variables."""
        if not self._layer.takes(variable):
            return None
        paths = self._paths
        if paths is None:
            paths = self._paths = {id(each): path for path, each in self.variables().items()}
        return paths[id(variable)]

    def variables(self) -> dict[KeyPath, Variable]:
        """Give the members by canonical path, in definition order, last those that are no longer there."""
        if self.table is self._first:
            return self.table.variables
        gone = {p: each for p, each in self._first.variables.items() if id(each) not in self.table.members}
        return {**gone, **self.table.variables} if gone else self.table.variables
