"""Containers: how the walk takes one apart, one level, and how a copy is put together again.

list, tuple and dict are the walk's own business; what is rarer comes here. Types of users go through optree, which is
imported when the first of them is met.
"""

from __future__ import annotations

import dataclasses
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterable
from functools import cached_property
from types import MemberDescriptorType
from typing import Any, Final, cast

NAMESPACE: Final = "synmod"
"""Where optree knows the tree types of users."""

DICTS: Final = (dict, OrderedDict, defaultdict)
SEQUENCES: Final = (list, tuple)

Flatten = Callable[[Any], tuple[Any, ...]]
Unflatten = Callable[[Any, list[Any]], Any]
_UNSET: Final = object()
_items: Final[Any] = vars(tuple)["__iter__"]
"""The items of a tuple, also where its class iterates in another way."""

TREE_TYPES: Final[dict[type[Any], tuple[Flatten, Unflatten]]] = {}
"""The registry of users' container types."""


def class_of(x: object) -> type[Any]:
    """Give the class of an object; it says so to type checkers, for which `type` of Any is half known."""
    return type(x)


def is_tree_type(cls: type[Any]) -> bool:
    """Tell whether the class is a container that `take_apart` knows."""
    return cls in TREE_TYPES or cls is deque or is_namedtuple(cls) or dataclasses.is_dataclass(cls)


def is_namedtuple(cls: type[Any]) -> bool:
    """Tell whether the class is a tuple with named fields."""
    fields: Any = getattr(cls, "_fields", None)
    return isinstance(fields, tuple) and issubclass(cls, tuple)


def take_apart(x: Any) -> tuple[list[tuple[Any, Any]], Any]:
    """Give the `(step, child)` pairs of a container that is no list, tuple or dict, and what else makes it up."""
    cls = class_of(x)
    if cls in TREE_TYPES:
        return _through_optree(x, cls)
    if cls is deque:
        return numbered(x), x.maxlen
    if is_namedtuple(cls):
        return list(zip(x._fields, _items(x), strict=True)), None
    return _fields_of(x)


def numbered(items: Iterable[Any]) -> list[tuple[Any, Any]]:
    """Give the items of a sequence with their indices."""
    return list(enumerate(items))


def put_together(cls: type[Any], steps: Iterable[Any], children: list[Any], aux: Any) -> Any:
    """Make a container of its parts; no constructor of a dataclass or namedtuple runs."""
    if cls is list:
        return children
    if cls is tuple:
        return tuple(children)
    if cls is defaultdict:
        return defaultdict(aux, zip(steps, children, strict=True))
    if cls in DICTS:
        return cast("Any", cls)(zip(steps, children, strict=True))
    if cls in TREE_TYPES:
        return TREE_TYPES[cls][1](aux, children)
    if cls is deque:
        return deque(children, aux)
    if is_namedtuple(cls):
        return cast("Any", tuple).__new__(cls, children)
    new: Any = object.__new__(cls)
    others: dict[str, Any] = aux or {}
    for step, child in (*zip(steps, children, strict=True), *others.items()):
        object.__setattr__(new, step, child)
    return new


def _through_optree(x: Any, cls: type[Any]) -> tuple[list[tuple[Any, Any]], Any]:
    """Let optree call the user's function and check what it gives."""
    import optree as optree_module

    optree: Any = optree_module  # its stubs leave the registry half unknown
    if optree.register_pytree_node.get(cls, namespace=NAMESPACE) is None:
        flatten, unflatten = TREE_TYPES[cls]
        optree.register_pytree_node(cls, flatten, unflatten, namespace=NAMESPACE)
    children, aux, steps, _ = optree.tree_flatten_one_level(x, none_is_leaf=True, namespace=NAMESPACE)
    return list(zip(steps, children, strict=True)), aux


def _fields_of(x: Any) -> tuple[list[tuple[Any, Any]], dict[str, Any] | None]:
    """Read the fields of a dataclass, in their order, without running any property; the other attributes go along."""
    cls = class_of(x)
    held: dict[str, Any] = getattr(x, "__dict__", {})
    names = [field.name for field in dataclasses.fields(x)]
    pairs: list[tuple[Any, Any]] = []
    for name in names:
        value = held.get(name, _UNSET)
        if value is _UNSET:
            value = _slot(x, cls, name)
        if value is not _UNSET:
            pairs.append((name, value))
    others = {k: v for k, v in held.items() if k not in names and not _is_cached(cls, k)}
    return pairs, others or None


def _slot(x: Any, cls: type[Any], name: str) -> Any:
    """Read a declared slot."""
    for base in cls.__mro__:
        member = vars(base).get(name)
        if isinstance(member, MemberDescriptorType):
            try:
                return member.__get__(x)
            except AttributeError:
                return _UNSET
    return _UNSET


def _is_cached(cls: type[Any], name: str) -> bool:
    """Tell whether an attribute is only what `functools.cached_property` left there."""
    return any(isinstance(vars(base).get(name), cached_property) for base in cls.__mro__)
