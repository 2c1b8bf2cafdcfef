"""Frozen JSON: values that nobody can change, so that they may be shared by everybody.

A JSON value is None, a bool, an int, a float, a str, a list, or a dict with str keys, of exactly these types. `frozen`
checks that once and gives the same content as `FrozenDict` and `FrozenList`; after that nothing is copied or checked
again. A class whose instances stand for JSON (a data model) says so with a method `__synmod_json__`, which gives the
frozen JSON of an instance.
"""

# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false
# Why: JSON is Any, and what isinstance(x, dict) or type(x) makes of that is unknown to the type checker.

from __future__ import annotations

from math import copysign, isfinite
from typing import Any, Final, TypeAlias

from synmod.errors import DataError
from synmod.leaves.frozen_types import (
    FROZEN,
    FrozenDict,
    FrozenList,
    depth_of,
    fill,
    frozen_dict,
    frozen_list,
    is_array,
    is_object,
    put,
    thawed,
)
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
from synmod.leaves.paths import pointer

__all__ = [
    "FrozenDict",
    "FrozenList",
    "Json",
    "depth_of",
    "fill",
    "freeze",
    "frozen",
    "frozen_dict",
    "frozen_list",
    "is_array",
    "is_object",
    "json_equal",
    "thaw",
]

Json: TypeAlias = Any
"""A JSON value, plain or frozen."""

_PLAIN: Final = (dict, list)


def frozen(json: Json) -> Json:
    """Check a JSON value and freeze it, once.

    Linear, one pass, without recursion. What is frozen already is returned as it is, and shared.

    Args:
        json: None, bool, int, float, str, list or dict with str keys, their frozen forms, or data models at any depth.

    Returns:
        The same content; objects as `FrozenDict`, arrays as `FrozenList`, which refuse every change with a TypeError.

    Raises:
        DataError: Something in it is no JSON. Names the JSON Pointer, the type and the remedy.

    Example:
        >>> frozen({"a": [1, 2.0]})
        {'a': [1, 2.0]}

    Source: pyrsistent's `freeze`; differs: subclasses of dict and list, and nothing is converted.
    """
    kind: type[Any] = type(json)
    if kind is FrozenDict or kind is FrozenList:
        return json
    if kind is dict or kind is list:
        return freeze(json)
    try:
        return _frozen_leaf(json)
    except Fault as fault:
        raise DataError(fault.text("")) from None


def thaw(json: Json) -> Json:
    """Give a deep, plain, mutable copy of a JSON value.

    Args:
        json: A JSON value, plain or frozen, or a data model.

    Returns:
        dicts and lists all the way down; scalars as they are.

    Raises:
        DataError: It is no JSON value.

    Example:
        >>> thaw(frozen({"a": [1]}))["a"].append(2)

    Source: pyrsistent's `thaw`.
    """
    return thawed(frozen(json))


def json_equal(a: Json, b: Json) -> bool:
    """Tell whether two JSON values are the same, exactly.

    Unlike `==`, which takes `1`, `1.0` and `True` for equal, and `0.0` and `-0.0`. The order of keys does not count.

    Args:
        a: A JSON value, plain or frozen, or a data model.
        b: Another.

    Returns:
        Whether both have the same kinds and the same content everywhere.

    Raises:
        DataError: One of them is no JSON value.

    Example:
        >>> json_equal([1], [1.0])
        False

    Source: the equality of RFC 8785 texts; differs: ints and floats stay apart.
    """
    pending: list[tuple[Any, Any]] = [(frozen(a), frozen(b))]
    compared: set[tuple[int, int]] = set()
    while pending:
        a, b = pending.pop()
        if a is b or (id(a), id(b)) in compared:
            continue
        if isinstance(a, FrozenDict):
            if not isinstance(b, FrozenDict) or a.keys() != b.keys():
                return False
            pending.extend([(part, b[key]) for key, part in a.items()])
        elif isinstance(a, FrozenList):
            if not isinstance(b, FrozenList) or len(a) != len(b):
                return False
            pending.extend(zip(a, b, strict=True))
        elif type(a) is not type(b) or a != b or (a == 0.0 and copysign(1.0, a) != copysign(1.0, b)):
            return False
        else:
            continue
        compared.add((id(a), id(b)))
    return True


def freeze(json: Json, limit: int = MAX_DEPTH, too_deep: type[Exception] = DataError) -> Json:
    """Freeze a plain dict or list that nests at most `limit` deep; raise as `frozen`, or `too_deep` if it nests more."""
    path = [_Open("", json)]
    done: dict[int, Any] = {id(json): None}  # id of a plain container -> its frozen form, None while on the path
    try:
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
    except Fault as fault:
        steps = [step.key for step in path[1:]]
        error = too_deep if fault.too_deep else DataError
        raise error(fault.text(pointer(steps if fault.key is None else [*steps, fault.key]))) from None


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
                pending.append((key, _frozen_leaf(value, key)))
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


def _frozen_leaf(value: Any, key: str | int | None = None) -> Any:
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
    return frozen(stands_for(value))
