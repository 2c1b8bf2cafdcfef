"""The difference of two States."""

from __future__ import annotations

from typing import TYPE_CHECKING

from synmod.leaves.names import path_str

if TYPE_CHECKING:
    from collections.abc import Mapping

    from synmod.leaves.names import KeyPath
    from synmod.tree.variable.variable_state import VariableState

Change = tuple["VariableState | None", "VariableState | None"]


def difference(a: Mapping[KeyPath, VariableState], b: Mapping[KeyPath, VariableState]) -> dict[str, Change]:
    """Return `{path text: (old, new)}` of what differs; None where a path is absent."""
    changes: dict[str, Change] = {}
    for path, old in a.items():
        new = b.get(path)
        if new is None or (old is not new and old != new):
            changes[path_str(path)] = old, new
    changes.update({path_str(path): (None, new) for path, new in b.items() if path not in a})
    return changes
