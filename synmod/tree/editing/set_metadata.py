"""set_metadata: what many Variables say of themselves, changed at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from synmod.tree.filtering.decisions import Decisions
from synmod.tree.filtering.filters import FilterLike, to_filter
from synmod.tree.graphs.record import check_root
from synmod.tree.variable import about
from synmod.tree.walking.walk import walk

if TYPE_CHECKING:
    from synmod.leaves.frozen import FrozenDict, Json
    from synmod.leaves.names import KeyPath
    from synmod.tree.variable.variable import Variable


def set_metadata(node: Any, *, only: FilterLike = ..., **metadata: Json) -> tuple[KeyPath, ...]:
    """Change metadata of Variables; values, types and schemas stay.

    Args:
        node: A program.
        only: Filter for the Variables; all by default.
        **metadata: `trainable`, `name`, `description` (None takes a name or description away) and free JSON.

    Returns:
        The paths of the Variables that changed, in definition order.

    Raises:
        ArgumentError: `node` holds no graph, the filter is none, or a key with a meaning has a wrong value.
        BadNameError: `name` is no identifier.
        DataError: Something is no JSON. Nothing is changed in any of these cases.

    Example:
        >>> import synmod as sm
        >>> program = {"a": sm.Param("x"), "b": sm.Param("y")}
        >>> sm.set_metadata(program, only=sm.PathContains("b"), trainable=False)
        (('b',),)

    Source: Flax NNX `set_metadata`.
    """
    check_root(node)
    wanted = Decisions(to_filter(only))
    changes: list[tuple[KeyPath, Variable, FrozenDict]] = []
    for visit in walk(node):
        if visit.kind == "variable" and visit.first and wanted.takes(visit):
            says = about.changed(visit.value._about, metadata)
            if says != visit.value._about:
                changes.append((visit.path, visit.value, says))
    for _, variable, says in changes:
        with variable._lock:
            variable._about = says
    return tuple(path for path, _, _ in changes)
