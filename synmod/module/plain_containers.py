"""Plain containers below a module (lists, dicts, sets, deques, dataclasses) and their content, to be put back."""

from __future__ import annotations

import dataclasses
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from synmod.module.attributes import attributes_of
from synmod.tree.containers import class_of, take_apart
from synmod.tree.kinds import NODE, VARIABLE, kind_of_type
from synmod.tree.node_types import get_node_impl
from synmod.tree.walk import walk

if TYPE_CHECKING:
    from synmod.module.module import Module

_SEQUENCES = (list, deque)
_MAPPINGS = (dict, OrderedDict, defaultdict)


def contents_below(root: Module) -> list[Callable[[], None]]:
    """Take a snapshot of each plain container below a module, those in ignored attributes included.

    Returns:
        For each container a function that gives it its present content again.
    """
    contents: list[Callable[[], None]] = []
    seen: set[int] = set()
    for visit in walk(root):
        if visit.kind != "node" or not visit.first:
            continue
        node = visit.value
        pairs = attributes_of(node) if hasattr(node, "_record") else get_node_impl(node).pairs(node)
        todo = [value for _, value in pairs]
        while todo:
            value = todo.pop()
            content = _content_of(value)
            if content is not None and id(value) not in seen:
                seen.add(id(value))
                contents.append(content.restore)
                todo += content.parts
    return contents


class _Content:
    """What a list or deque holds."""

    __slots__ = ("container", "parts")

    def __init__(self, container: Any, parts: list[Any]) -> None:
        self.container = container
        self.parts = parts

    def restore(self) -> None:
        """Fill the container anew, unless it holds the same."""
        now = _content_of(self.container)
        if now is None or not _are_same(now.parts, self.parts):
            self.fill()

    def fill(self) -> None:
        """Give the container its parts."""
        self.container.clear()
        self.container.extend(self.parts)


class _Members(_Content):
    """What a set holds."""

    __slots__ = ()

    def fill(self) -> None:
        """Give the set its members."""
        self.container.clear()
        self.container.update(self.parts)


class _Pairs(_Content):
    """What a dict holds: keys, then values."""

    __slots__ = ()

    def fill(self) -> None:
        """Give the dict its pairs, in order."""
        half = len(self.parts) // 2
        self.container.clear()
        self.container.update(zip(self.parts[:half], self.parts[half:], strict=True))


class _Fields(_Content):
    """What a dataclass holds: names, then values."""

    __slots__ = ()

    def fill(self) -> None:
        """Give the fields their values."""
        half = len(self.parts) // 2
        for name, value in zip(self.parts[:half], self.parts[half:], strict=True):
            object.__setattr__(self.container, name, value)


class _Fixed(_Content):
    """What cannot change itself, but may hold what can."""

    __slots__ = ()

    def restore(self) -> None:
        """Do nothing."""


def _content_of(value: Any) -> _Content | None:
    """Look into a container, one level; None where it is none, or may be a node or Variable."""
    cls = class_of(value)
    if cls in _SEQUENCES:
        return _Content(value, list(value))
    if cls is set:
        return _Members(value, list(value))
    if cls in _MAPPINGS:
        return _Pairs(value, [*value.keys(), *value.values()])
    if issubclass(cls, tuple | frozenset):
        return _Fixed(value, list(value))
    if dataclasses.is_dataclass(cls) and kind_of_type(cls) not in (NODE, VARIABLE):
        pairs = take_apart(value)[0]
        return _Fields(value, [*(name for name, _ in pairs), *(part for _, part in pairs)])
    return None


def _are_same(some: list[Any], others: list[Any]) -> bool:
    return len(some) == len(others) and all(a is b for a, b in zip(some, others, strict=True))
