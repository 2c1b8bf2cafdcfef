"""Live views: tuples of what is in a program, computed at the moment of asking, each object once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from synmod.errors import NotBuiltError
from synmod.leaves.names import path_str
from synmod.tree.walking.walk import Visit, walk

if TYPE_CHECKING:
    from synmod.tree.variable.variable import Variable

T = TypeVar("T")


def variables_of(root: Any) -> tuple[Variable, ...]:
    """Give all Variables, in definition order.

    Raises:
        NotBuiltError: A node has yet to make its Variables; names every such node.
    """
    return tuple(visit.value for visit in _variable_visits(root))


def trainable_variables_of(root: Any) -> tuple[Variable, ...]:
    """Give the Variables whose own bit is set and that no frozen module stands above on their canonical path.

    Raises:
        NotBuiltError: As `variables_of`.
    """
    return tuple(visit.value for visit in _variable_visits(root) if is_trainable(visit))


def non_trainable_variables_of(root: Any) -> tuple[Variable, ...]:
    """Give the other Variables.

    Raises:
        NotBuiltError: As `variables_of`.
    """
    return tuple(visit.value for visit in _variable_visits(root) if not is_trainable(visit))


def variables_by_path(root: Any) -> dict[str, Variable]:
    """Give all Variables by their canonical path as text.

    Raises:
        NotBuiltError: As `variables_of`.
    """
    return {path_str(visit.path): visit.value for visit in _variable_visits(root)}


def submodules_of(root: Any, cls: type[T]) -> tuple[T, ...]:
    """Give every node of a class but the root itself, in definition order."""
    return tuple(
        visit.value
        for visit in walk(root)
        if visit.kind == "node" and visit.first and visit.value is not root and isinstance(visit.value, cls)
    )


def is_trainable(visit: Visit) -> bool:
    """Tell whether a visited Variable counts as trainable, as seen from the root of the walk."""
    return visit.value.trainable and not visit.masked


def _variable_visits(root: Any) -> list[Visit]:
    """Visit each Variable once; refuse where some are still to be made."""
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
