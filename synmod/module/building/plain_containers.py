"""Plain containers below a module (lists, dicts, sets, deques, dataclasses) and their content, to be put back."""

from __future__ import annotations

import dataclasses
from collections import OrderedDict, defaultdict, deque
from collections.abc import Container
from typing import TYPE_CHECKING, Any

from synmod.module.attributes import attributes_of
from synmod.tree import NODE, VARIABLE, class_of, get_node_impl, kind_of_type, take_apart, walk

if TYPE_CHECKING:
    from synmod.module.building.builds import Build
    from synmod.module.module import Module
    from synmod.module.record import ModuleRecord

_SEQUENCES = (list, deque)
_MAPPINGS = (dict, OrderedDict, defaultdict)


class Contents:
    """The plain containers that one node holds, as they were, ignored attributes included."""

    __slots__ = ("_contents", "_others", "_record")

    def __init__(self, node: Any, seen: set[int]) -> None:
        self._record: ModuleRecord | None = getattr(node, "_record", None)
        self._others = _done_by_others(self._record)
        self._contents: list[_Content] = []
        pairs = attributes_of(node) if self._record is not None else get_node_impl(node).pairs(node)
        todo = [value for _, value in pairs]
        while todo:
            value = todo.pop()
            content = _content_of(value)
            if content is not None and id(value) not in seen:
                seen.add(id(value))
                self._contents.append(content)
                todo += content.parts

    def restore(self, mine: Container[Build]) -> None:
        """Fill the containers anew, unless others had to do with the module meanwhile.

        Args:
            mine: The builds that are undone.
        """
        record = self._record
        if record is None or (is_free(record, mine) and _done_by_others(record) == self._others):
            for content in self._contents:
                content.restore()


def contents_below(root: Module, mine: Container[Build]) -> list[Contents]:
    """Take a snapshot of the plain containers below a module, but for what others are building just now.

    Args:
        root: The module.
        mine: The builds that will be undone with this.
    """
    seen: set[int] = set()
    nodes = (visit.value for visit in walk(root) if visit.kind == "node" and visit.first)
    return [Contents(node, seen) for node in nodes if not hasattr(node, "_record") or is_free(node._record, mine)]


def is_free(record: ModuleRecord, mine: Container[Build]) -> bool:
    """Tell whether nobody else builds a module."""
    return record.building is None or record.building in mine


def _done_by_others(record: ModuleRecord | None) -> object:
    """What tells whether others have built a module meanwhile, or called a built one, which may change itself."""
    if record is None or not record.built:
        return None
    return record.counters.total(), record.counters.nested


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
