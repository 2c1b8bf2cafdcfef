"""Freezing what pydantic has written of an instance, and telling which of its fields hold containers."""

from __future__ import annotations

from typing import Any, Final

from synmod.leaves.freezing_trees import frozen_tree, holds_containers
from synmod.leaves.frozen import MAX_DEPTH, FrozenDict, FrozenList, frozen, frozen_dict

_CONTAINERS: Final[tuple[object, ...]] = (dict, list)


def frozen_fields(plain: dict[str, Any]) -> tuple[FrozenDict, list[str]]:
    """Freeze the dump of an instance, whose keys are names of fields; hot.

    Returns:
        The frozen dump, and the keys under which containers stand.

    Raises:
        DataError: Something in it is no JSON.
    """
    has_parts = holds_containers(plain.values())
    if has_parts is None:
        return _carefully_frozen(plain)
    if not has_parts:
        return frozen_dict(plain), []
    nested = [key for key, value in plain.items() if type(value) in _CONTAINERS]
    for key in nested:
        part = frozen_tree(plain[key], MAX_DEPTH - 1)
        if part is None:
            return _carefully_frozen(plain)
        plain[key] = part
    return frozen_dict(plain), nested


def _carefully_frozen(plain: dict[str, Any]) -> tuple[FrozenDict, list[str]]:
    """Let `frozen` decide, and explain, where something is out of the ordinary."""
    json = frozen(plain)
    return json, [key for key, value in json.items() if isinstance(value, FrozenDict | FrozenList)]
