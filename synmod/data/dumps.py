"""Freezing what pydantic has written: plain JSON of exact types nearly always, so the check is short."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from math import isfinite
from typing import Any, Final

from synmod.leaves.frozen import MAX_DEPTH, FrozenDict, FrozenList, frozen, frozen_dict, frozen_list

_PLAIN_INT: Final = 10**18
_CONTAINERS: Final[tuple[object, ...]] = (dict, list)
_STR: Final[set[type]] = {str}


def frozen_fields(plain: dict[str, Any]) -> tuple[FrozenDict, list[str]]:
    """Freeze the dump of an instance, whose keys are names of fields; hot.

    Returns:
        The frozen dump, and the keys under which containers stand.

    Raises:
        DataError: Something in it is no JSON.
    """
    has_parts = _has_parts(plain.values())
    if has_parts is None:
        return _carefully_frozen(plain)
    if not has_parts:
        return frozen_dict(plain), []
    nested = [key for key, value in plain.items() if type(value) in _CONTAINERS]
    for key in nested:
        part = _quickly_frozen(plain[key], MAX_DEPTH - 1)
        if part is None:
            return _carefully_frozen(plain)
        plain[key] = part
    return frozen_dict(plain), nested


def _carefully_frozen(plain: dict[str, Any]) -> tuple[FrozenDict, list[str]]:
    """Let `frozen` decide, and explain, where something is out of the ordinary."""
    json = frozen(plain)
    return json, [key for key, value in json.items() if isinstance(value, FrozenDict | FrozenList)]


def _has_parts(values: Iterable[Any]) -> bool | None:
    """Tell whether containers are among values that are ordinary otherwise; None if one is not.

    Ordinary are texts, small ints, finite floats, bools and None.
    """
    has_parts = False
    for value in values:
        kind: Any = value.__class__
        if kind is str:
            if value.isascii() or _is_text(value):
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
            has_parts = True
            continue
        return None
    return has_parts


def _quickly_frozen(plain: dict[Any, Any] | list[Any], room: int) -> FrozenDict | FrozenList | None:
    """Freeze an ordinary dict or list, nested at most `room` deep; None for any other."""
    return _quick_list(plain, room) if isinstance(plain, list) else _quick_dict(plain, room)


def _quick_list(plain: list[Any], room: int) -> FrozenList | None:
    has_parts = _has_parts(plain)
    if has_parts is None or not room:
        return None
    return frozen_list(plain) if not has_parts else _with_parts(list(plain), enumerate(plain), room, frozen_list)


def _quick_dict(plain: dict[Any, Any], room: int) -> FrozenDict | None:
    has_parts = _has_parts(plain.values())
    if has_parts is None or not room or not (set(map(type, plain)) <= _STR and "".join(plain).isascii()):
        return None
    return frozen_dict(plain) if not has_parts else _with_parts(dict(plain), plain.items(), room, frozen_dict)


def _with_parts(copy: Any, entries: Iterable[tuple[Any, Any]], room: int, close: Callable[[Any], Any]) -> Any:
    """Freeze the containers in a container, then itself."""
    for key, value in entries:
        if type(value) in _CONTAINERS:
            copy[key] = part = _quickly_frozen(value, room - 1)
            if part is None:
                return None
    return close(copy)


def _is_text(text: str) -> bool:
    """Tell whether a text is valid Unicode: no half of a surrogate pair."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
