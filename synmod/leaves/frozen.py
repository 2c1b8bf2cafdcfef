"""Frozen JSON: values that nobody can change, so that they may be shared by everybody.

A JSON value is None, a bool, an int, a float, a str, a list, or a dict with str keys, of exactly these types. `frozen`
checks that once and gives the same content as `FrozenDict` and `FrozenList`; after that nothing is copied or checked
again. A class whose instances stand for JSON (a data model) says so with a method `__synmod_json__`, which gives the
frozen JSON of an instance.
"""

# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false
# Why: JSON is Any, and what isinstance(x, dict) or type(x) makes of that is unknown to the type checker.

from __future__ import annotations

from math import copysign
from typing import Any, TypeAlias

from synmod.leaves.freezing import freeze
from synmod.leaves.frozen_types import (
    CONTAINERS,
    FrozenDict,
    FrozenList,
    depth_of,
    fill,
    frozen_dict,
    frozen_list,
    is_array,
    is_object,
    thawed,
)
from synmod.leaves.not_json import INT_END, MAX_DEPTH, MAX_DIGITS

__all__ = [
    "CONTAINERS",
    "INT_END",
    "MAX_DEPTH",
    "MAX_DIGITS",
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
    return json if kind is FrozenDict or kind is FrozenList else freeze(json)


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
