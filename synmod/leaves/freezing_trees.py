"""Freezing what a parser or serializer has just written: trees of exact types nearly always, so the check is short."""

from __future__ import annotations

from collections.abc import Iterable
from math import isfinite
from typing import Any, Final

from synmod.leaves.freezing import freeze
from synmod.leaves.frozen_types import FrozenDict, FrozenList, frozen_dict, frozen_list
from synmod.leaves.not_json import MAX_DEPTH

_PLAIN_INT: Final = 10**18
_CONTAINERS: Final[tuple[object, ...]] = (dict, list)
_STR: Final[set[type]] = {str}


def freeze_tree(plain: Any) -> Any:
    """Freeze a tree, in which no container stands twice; raise DataError for what is no JSON."""
    quick = frozen_tree(plain, MAX_DEPTH) if type(plain) in _CONTAINERS else None
    return freeze(plain) if quick is None else quick


def freeze_own_tree(plain: Any) -> Any:
    """Freeze a tree that nobody else will use, and use it up: what is frozen takes the place of what was plain."""
    quick = frozen_tree(plain, MAX_DEPTH, own=True) if type(plain) in _CONTAINERS else None
    return freeze(plain) if quick is None else quick


def frozen_tree(plain: dict[Any, Any] | list[Any], room: int, *, own: bool = False) -> FrozenDict | FrozenList | None:
    """Freeze an ordinary tree, nested at most `room` deep; None for any other, which `freeze` judges and explains."""
    return _quick_list(plain, room, own) if isinstance(plain, list) else _quick_dict(plain, room, own)


def holds_containers(values: Iterable[Any]) -> bool | None:
    """Tell whether containers are among values that are ordinary otherwise; None if one is not.

    Ordinary are texts, small ints, finite floats, bools and None.
    """
    found = False
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
            found = True
            continue
        return None
    return found


def _quick_list(plain: list[Any], room: int, own: bool) -> FrozenList | None:
    has_parts = holds_containers(plain)
    if has_parts is None or not room:
        return None
    if has_parts:
        copy = plain if own else list(plain)
        if not _freeze_parts(copy, enumerate(plain), room, own):
            return None
        plain = copy
    return frozen_list(plain)


def _quick_dict(plain: dict[Any, Any], room: int, own: bool) -> FrozenDict | None:
    has_parts = holds_containers(plain.values())
    if has_parts is None or not room or not (set(map(type, plain)) <= _STR and "".join(plain).isascii()):
        return None
    if has_parts:
        copy = plain if own else dict(plain)
        if not _freeze_parts(copy, plain.items(), room, own):
            return None
        plain = copy
    return frozen_dict(plain)


def _freeze_parts(copy: Any, entries: Iterable[tuple[Any, Any]], room: int, own: bool) -> bool:
    """Put the frozen form of each container among the entries into the copy; False where one is out of the ordinary."""
    for key, value in entries:
        if type(value) in _CONTAINERS:
            copy[key] = part = frozen_tree(value, room - 1, own=own)
            if part is None:
                copy[key] = value
                return False
    return True


def _is_text(text: str) -> bool:
    """Tell whether a text is valid Unicode: no half of a surrogate pair."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
