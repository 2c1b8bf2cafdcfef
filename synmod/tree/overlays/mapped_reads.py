"""Reads that pass through a function: what `using(program, map=fn)` shows in the place of values."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

from synmod.leaves.frozen import Json
from synmod.leaves.names import KeyPath
from synmod.tree.states.faults import Fault, raise_faults
from synmod.tree.states.gather import checked_leaf
from synmod.tree.variable.overlay import MISSING, Layer, beneath

if TYPE_CHECKING:
    from synmod.tree.overlays.membership import Membership
    from synmod.tree.variable.variable import Variable

ReadMap: TypeAlias = "Callable[[KeyPath, Variable, Json], Any]"
"""`fn(path, variable, value)` gives what reads see."""


class MappedReads:
    """Makes the value of each member of a layer at its first read.

    Args:
        fn: Gives the value to see; runs below the layer, so that it sees what it is given and can read others.
        members: The Variables it is asked for.
        layer: Where the values go; those given at first are passed on to `fn`.
    """

    __slots__ = ("_fn", "_given", "_layer", "_lock", "_members")

    def __init__(self, fn: ReadMap, members: Membership, layer: Layer) -> None:
        self._fn = fn
        self._members = members
        self._layer = layer
        self._given = layer.values
        self._lock = threading.RLock()  # once for each Variable, also under threads
        layer.values = {}

    def __call__(self, variable: Variable) -> Json:
        """Give what reads of a Variable see, `MISSING` if it is no member.

        Raises:
            StateSchemaError: `fn` gave what misses the schema, or is no JSON. The next read asks again.
        """
        path = self._members.path_of(variable)
        if path is None:
            return MISSING
        key = id(variable)
        with self._lock:
            value = self._layer.values.get(key, MISSING)
            if value is MISSING:
                value = self._layer.values[key] = self._made(path, variable)
            return value

    def _made(self, path: KeyPath, variable: Variable) -> Json:
        """Ask for a value, and check it."""
        with beneath(self._layer):
            below = self._given.get(id(variable), MISSING)
            given = self._fn(path, variable, variable.value if below is MISSING else below)
        faults: list[Fault] = []
        leaf = checked_leaf(path, given, variable._schema, 0, faults)
        raise_faults("using: map", faults)
        assert leaf is not None  # else there is a fault
        return leaf.value
