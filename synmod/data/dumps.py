"""Freezing what pydantic has written: plain JSON of exact types nearly always, so the check is short."""

from __future__ import annotations

from math import isfinite
from typing import Any, Final

from synmod.leaves.frozen import MAX_DEPTH, FrozenDict, FrozenList, frozen, frozen_dict, frozen_list

_PLAIN_INT: Final = 10**18
_CONTAINERS: Final = (dict, list)
_STR: Final = {str}


def frozen_fields(plain: dict[str, Any]) -> tuple[FrozenDict, list[str]]:
    """Freeze the dump of an instance, whose keys are names of fields; hot.

    Returns:
        The frozen dump, and the keys under which containers stand.

    Raises:
        DataError: Something in it is no JSON.
    """
    nested: list[str] = []
    for key, value in plain.items():
        kind = type(value)
        if kind is str:
            if value.isascii():
                continue
        elif value is None or kind is bool:
            continue
        elif kind is int:
            if -_PLAIN_INT < value < _PLAIN_INT:
                continue
        elif kind is float:
            if isfinite(value):
                continue
        elif kind in _CONTAINERS:
            part = _quickly_frozen(value, MAX_DEPTH - 1)
            if part is not None:
                plain[key] = part
                nested.append(key)
                continue
        return _carefully_frozen(plain)
    return frozen_dict(plain), nested


def _carefully_frozen(plain: dict[str, Any]) -> tuple[FrozenDict, list[str]]:
    """Let `frozen` decide, and explain, where something is out of the ordinary."""
    json = frozen(plain)
    return json, [key for key, value in json.items() if isinstance(value, FrozenDict | FrozenList)]


def _quickly_frozen(plain: Any, room: int) -> FrozenDict | FrozenList | None:
    """Freeze an ordinary dict or list: ASCII texts, small ints, finite floats; None for any other."""
    is_dict = type(plain) is dict
    nested = False
    for value in plain.values() if is_dict else plain:
        kind = type(value)
        if kind is str:
            if value.isascii():
                continue
        elif value is None or kind is bool:
            continue
        elif kind is int:
            if -_PLAIN_INT < value < _PLAIN_INT:
                continue
        elif kind is float:
            if isfinite(value):
                continue
        elif kind in _CONTAINERS:
            nested = True
            continue
        return None
    if is_dict and not (set(map(type, plain)) <= _STR and "".join(plain).isascii()):
        return None
    if nested:
        return _with_frozen_parts(plain, room - 1)
    return frozen_dict(plain) if is_dict else frozen_list(plain)


def _with_frozen_parts(plain: Any, room: int) -> FrozenDict | FrozenList | None:
    """Freeze the containers in a container, then itself."""
    if not room:
        return None
    parts = dict(plain) if type(plain) is dict else list(plain)
    for key, value in plain.items() if type(plain) is dict else enumerate(plain):
        if type(value) in _CONTAINERS:
            part = _quickly_frozen(value, room)
            if part is None:
                return None
            parts[key] = part
    return frozen_dict(parts) if type(plain) is dict else frozen_list(parts)
