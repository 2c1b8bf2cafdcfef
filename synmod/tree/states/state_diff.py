"""Differences of States: what changed at which path, as a mapping and as a JSON Patch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from synmod.leaves.frozen import FrozenDict, FrozenList, Json, json_equal
from synmod.leaves.names import KeyPath, parse_path, path_str, pointer
from synmod.tree.states.faults import Fault, raise_faults
from synmod.tree.states.path_map import check_apart

if TYPE_CHECKING:
    from synmod.tree.variable.variable_state import VariableState

Change = tuple["VariableState | None", "VariableState | None"]
Patch = list[dict[str, Any]]


class StateDiff(Mapping[KeyPath, Change]):
    """`{path: (old, new)}`; None where the path is absent."""

    __slots__ = ("_changes",)

    def __init__(self, changes: Mapping[KeyPath, Change]) -> None:
        self._changes = dict(changes)

    def to_json_patch(self) -> Patch:
        """Give the JSON Patch (RFC 6902) that turns `a.to_json()` into `b.to_json()`, as small as keys and items go."""
        patch: Patch = []
        for path, (old, new) in self._changes.items():
            at = [path_str(path)]
            if old is None:
                assert new is not None
                patch.append({"op": "add", "path": pointer(at), "value": new.value})
            elif new is None:
                patch.append({"op": "remove", "path": pointer(at)})
            else:
                _patch_value(patch, at, old.value, new.value)
        return patch

    def __getitem__(self, path: KeyPath | str) -> Change:
        if isinstance(path, str):
            for known, change in self._changes.items():
                if path_str(known) == path:
                    return change
            raise KeyError(path)
        return self._changes[path]

    def __iter__(self) -> Iterator[KeyPath]:
        return iter(self._changes)

    def __len__(self) -> int:
        return len(self._changes)

    def __repr__(self) -> str:
        return (
            f"StateDiff({{{', '.join(f'{path_str(path)!r}: {change!r}' for path, change in self._changes.items())}}})"
        )


def difference(a: Mapping[KeyPath, VariableState], b: Mapping[KeyPath, VariableState]) -> StateDiff:
    """Compare two States leaf by leaf."""
    changes: dict[KeyPath, Change] = {}
    for path, old in a.items():
        new = b.get(path)
        if new is None or (old is not new and old != new):
            changes[path] = old, new
    changes.update({path: (None, new) for path, new in b.items() if path not in a})
    return StateDiff(changes)


def applied(
    leaves: Mapping[KeyPath, VariableState], diff: Mapping[KeyPath | str, Change]
) -> dict[KeyPath, VariableState]:
    """Make the changes of a diff.

    Raises:
        StateError: A path no longer has the old value; names every such path. Or an added path is below a leaf.
    """
    changed = dict(leaves)
    faults: list[Fault] = []
    for path, (old, new) in _by_steps(leaves, diff).items():
        now = leaves.get(path)
        if now != old:
            faults.append(Fault(len(faults), f"{path_str(path)!r}: expected the old value {old!r}, it has {now!r}"))
        elif new is not None:
            changed[path] = new
        elif old is not None:
            del changed[path]
    raise_faults("apply", faults)
    if changed.keys() - leaves.keys():
        check_apart(changed)
    return changed


def _by_steps(leaves: Mapping[KeyPath, VariableState], diff: Mapping[KeyPath | str, Change]) -> dict[KeyPath, Change]:
    """Give the changes by steps; a path text means the path that is written like it."""
    if isinstance(diff, StateDiff):
        return diff._changes
    known = {path_str(path): path for path in leaves}
    return {
        known.get(path, parse_path(path)) if isinstance(path, str) else path: change for path, change in diff.items()
    }


def _patch_value(patch: Patch, at: list[Any], old: Json, new: Json) -> None:
    """Write the operations that turn one value into another; JSON nests at most 50 deep."""
    if isinstance(old, FrozenDict) and isinstance(new, FrozenDict):
        patch += [{"op": "remove", "path": pointer([*at, key])} for key in old if key not in new]
        for key, value in new.items():
            if key in old:
                _patch_value(patch, [*at, key], old[key], value)
            else:
                patch.append({"op": "add", "path": pointer([*at, key]), "value": value})
    elif isinstance(old, FrozenList) and isinstance(new, FrozenList):
        for index, (one, other) in enumerate(zip(old, new, strict=False)):
            _patch_value(patch, [*at, index], one, other)
        for index in range(len(old) - 1, len(new) - 1, -1):
            patch.append({"op": "remove", "path": pointer([*at, index])})
        for index in range(len(old), len(new)):
            patch.append({"op": "add", "path": pointer([*at, index]), "value": new[index]})
    elif not json_equal(old, new):
        patch.append({"op": "replace", "path": pointer(at), "value": new})
