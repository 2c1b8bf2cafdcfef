"""update: write values into live Variables, all of them or none."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from synmod.errors import Problem, SchemaError
from synmod.leaves.frozen import FrozenDict, json_equal
from synmod.leaves.names import path_str
from synmod.scope import notify_assign
from synmod.tree.graphs.record import record
from synmod.tree.states.faults import Fault, raise_faults
from synmod.tree.states.gather import Leaf, gather
from synmod.tree.states.layout import Layout

if TYPE_CHECKING:
    from collections.abc import Mapping

    from synmod.leaves.names import KeyPath
    from synmod.tree.states.layout import StateLike
    from synmod.tree.variable.variable import Variable


def update(
    node: Any,
    *states: StateLike,
    allow_extra: bool = False,
    metadata: bool = False,
) -> tuple[KeyPath, ...]:
    """Write values into the live Variables of a program.

    Every check comes before the first write. Missing paths leave theirs alone; equal values are not assigned. Inside
    an overlay of the program the values go to the overlay.

    Args:
        node: A program.
        *states: States or their JSON; alias paths are accepted.
        allow_extra: Skip unknown paths.
        metadata: Take the metadata of the States too.

    Returns:
        The changed paths, in definition order.

    Raises:
        StateError: A path is unknown, leads to a static or a subgraph, or got two values.
        StateSchemaError: Values miss the live schemas.
        ArgumentError: `node` holds no graph, or something is no State.

    Example:
        >>> from synmod.tree import Param
        >>> program = {"a": Param("x"), "b": Param("y")}
        >>> update(program, {"a": "z"})
        (('a',),)

    Source: Flax NNX `update`; differs: atomic, validated.
    """
    live = record(node)
    paths = {visit.path: visit.index for visit in live.leaves if visit.index is not None}
    layout = Layout(lambda: (live.graphdef.root, live.graphdef.definitions), paths)
    found = gather(layout, states, lambda index: live.objects[index].schema, "update")
    static = "Trying to update a non-Variable:"
    faults = found.refused(static) if allow_extra else found.misfit_faults(static)
    raise_faults("update", [*found.faults, *faults])
    leaves = {path: (live.objects[i], found.leaves[i]) for path, i in paths.items() if i in found.leaves}
    writes = _asked(leaves, metadata)
    changes = [write for write in writes if write.is_change]
    for write in changes:
        write.commit()
    for write in changes:
        write.tell()
    return tuple(write.path for write in changes)


class Write:
    """One Variable to be written: everything that can fail is done when it is made."""

    __slots__ = ("_about", "_new", "_old", "_told", "_variable", "_version", "path")

    def __init__(self, path: KeyPath, variable: Variable, leaf: Leaf, metadata: bool) -> None:
        self.path = path
        self._variable = variable
        self._old = variable.value
        self._new = self._old
        self._told = False
        self._version = 0
        if not json_equal(self._old, leaf.value):
            self._new = variable._seen_by_class(self._old, leaf.value)
        takes = metadata and leaf.metadata is not None and not json_equal(leaf.metadata, variable._about)
        self._about: FrozenDict | None = leaf.metadata if takes else None

    @property
    def is_change(self) -> bool:
        """Whether there is anything to write."""
        return self._new is not self._old or self._about is not None

    def commit(self) -> None:
        """Write; nothing here can fail."""
        variable = self._variable
        with variable._lock:
            if self._new is not self._old:
                self._told, self._version = variable._put(self._new)
            if self._about is not None:
                variable._about = self._about

    def tell(self) -> None:
        """Tell the hooks, when all is written."""
        if self._told:
            notify_assign(self._variable, self._variable.name or "", self._old, self._new, self._version)


def _asked(leaves: Mapping[KeyPath, tuple[Variable, Leaf]], metadata: bool) -> list[Write]:
    """Let the class of each Variable look at its value; all that miss a schema are named."""
    writes: list[Write] = []
    faults: list[Fault] = []
    for path, (variable, leaf) in leaves.items():
        try:
            writes.append(Write(path, variable, leaf, metadata))
        except SchemaError as error:
            where = path_str(path)
            missed = error.errors or (Problem("", "a value that its class takes", str(error)),)
            problems = tuple(each._replace(pointer=f"{where}#{each.pointer}") for each in missed)
            faults.append(Fault(len(faults), f"{where!r}: {error}", problems))
    raise_faults("update", faults)
    return writes
