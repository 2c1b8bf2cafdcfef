"""One pass that checks JSON and freezes it: linear, without recursion, and with the place of every fault."""

# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false
# Why: JSON is Any, and what isinstance(x, dict) or type(x) makes of that is unknown to the type checker.

from __future__ import annotations

from math import isfinite
from typing import Any, Final

from synmod.errors import DataError
from synmod.leaves.frozen_types import FROZEN, depth_of, frozen_dict, frozen_list, put
from synmod.leaves.names import pointer
from synmod.leaves.not_json import (
    INT_END,
    MAX_DEPTH,
    Fault,
    check_text,
    cycle_fault,
    depth_fault,
    key_fault,
    value_fault,
)

_PLAIN: Final = (dict, list)


def freeze(json: Any, limit: int = MAX_DEPTH, too_deep: type[Exception] = DataError) -> Any:
    """Freeze what nests at most `limit` deep; raise DataError for what is no JSON, `too_deep` for what nests deeper."""
    path: list[_Open] = []
    try:
        return _leaf(json) if type(json) not in _PLAIN else _freeze_container(json, limit, path)
    except Fault as fault:
        error = too_deep if fault.too_deep else DataError
        steps = [step.key for step in path[1:]]
        raise error(fault.text(pointer(steps if fault.key is None else [*steps, fault.key]))) from None


def _freeze_container(json: Any, limit: int, path: list[_Open]) -> Any:
    """Freeze a plain container; `path` holds the containers that are open, so that the caller can name a place."""
    path.append(_Open("", json))
    done: dict[int, Any] = {id(json): None}  # id of a plain container -> its frozen form, None while on the path
    path[0].read()
    while True:
        top = path[-1]
        if not top.pending:
            part, key = top.closed(), top.key
            done[id(top.source)] = part
            path.pop()
            if not path:
                return part
        else:
            key, part = top.pending.pop()
            if type(part) in _PLAIN and id(part) not in done:
                if len(path) == limit:
                    raise depth_fault(key, limit)
                done[id(part)] = None
                path.append(_Open(key, part))
                path[-1].read()
                continue
            if type(part) in _PLAIN and (part := done[id(part)]) is None:
                raise cycle_fault(key)
        path[-1].put(key, part, limit - len(path), limit)


class _Open:
    """A container that is being frozen: its frozen form, and the parts that must still be put into that."""

    __slots__ = ("deepest", "key", "pending", "source", "target")

    def __init__(self, key: str | int, source: Any) -> None:
        self.key = key
        self.source = source
        self.target = frozen_dict(source) if type(source) is dict else frozen_list(source)
        self.pending: list[tuple[Any, Any]] = []
        self.deepest = 0

    def read(self) -> None:
        """Check the keys and scalars, which stand in the frozen form already; list the rest, the first one last."""
        pending = self.pending
        if type(self.source) is dict:
            _check_keys(self.source)
        for key, value in self.source.items() if type(self.source) is dict else enumerate(self.source):
            kind: type[Any] = type(value)
            if kind is str:
                if not value.isascii():
                    check_text(value, key)
            elif kind is dict or kind is list:
                pending.append((key, value))
            elif kind is int:
                if not -INT_END < value < INT_END:
                    raise value_fault(value, key)
            elif kind is float:
                if not isfinite(value):
                    raise value_fault(value, key)
            elif kind is not bool and value is not None:
                pending.append((key, _leaf(value, key)))
        pending.reverse()

    def put(self, key: Any, part: Any, room: int, limit: int) -> None:
        """Put a frozen part in its place, if it nests no deeper than there is room for."""
        deep = depth_of(part)
        if deep > room:
            raise depth_fault(key, limit)
        if deep > self.deepest:
            self.deepest = deep
        put(self.target, key, part)

    def closed(self) -> Any:
        """Give the frozen form, now that every part is in it."""
        self.target._depth = self.deepest + 1
        return self.target


def _check_keys(source: dict[Any, Any]) -> None:
    """Refuse a key that is no str, or no Unicode."""
    for key in source:
        if type(key) is not str:
            raise key_fault(key)
        if not key.isascii():
            check_text(key)


def _leaf(value: Any, key: str | int | None = None) -> Any:
    """Freeze what is no plain container: a scalar, something frozen, or something that stands for JSON."""
    kind: type[Any] = type(value)
    if isinstance(value, FROZEN) or value is None or kind is bool:
        return value
    if kind is str:
        check_text(value, key)
        return value
    if (kind is int and -INT_END < value < INT_END) or (kind is float and isfinite(value)):
        return value
    stands_for = getattr(kind, "__synmod_json__", None)
    if stands_for is None:
        raise value_fault(value, key)
    return freeze(stands_for(value))
