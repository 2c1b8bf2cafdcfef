"""Constructor arguments with other objects in the place of some: through every container that the walk sees through."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from synmod.tree import (
    DICT,
    KNOWN,
    SEQUENCE,
    STATIC,
    TREE,
    NodeRef,
    VariableRef,
    class_of,
    kind_of,
    numbered,
    put_together,
    take_apart,
)

if TYPE_CHECKING:
    from collections.abc import Callable


_CONTAINERS = frozenset({SEQUENCE, DICT, TREE})
_REFERENCES = (NodeRef, VariableRef)
_COMPARED = frozenset({str, int, bool, type(None)})


class _Open:
    """A container, its steps and parts, and the parts that have taken their place so far."""

    __slots__ = ("done", "parts", "rest", "steps", "value")

    def __init__(self, value: Any, kind: int) -> None:
        pairs, self.rest = take_apart(value) if kind == TREE else (_pairs(value, kind), None)
        self.value = value
        self.steps = [step for step, _ in pairs]
        self.parts = [part for _, part in pairs]
        self.done: list[Any] = []

    def closed(self) -> Any:
        """The container itself where nothing in it has changed, else a new one of its kind."""
        if all(new is old for new, old in zip(self.done, self.parts, strict=True)):
            return self.value
        rest = self.rest if self.rest is not None else getattr(self.value, "default_factory", None)
        return put_together(class_of(self.value), self.steps, self.done, rest)


def may_refer(value: Any) -> bool:
    """Tell whether a node or Variable, or a reference to one, may be in an argument: not in a scalar, or in nothing."""
    kind = KNOWN.get(class_of(value))
    return kind is None or (kind != STATIC and bool(value))


def with_references(fn: Callable[[Any], Any], value: Any) -> Any:
    """Replace every leaf `x` below an argument by `fn(x)`; without recursion.

    A container below which every result is its leaf stays the same object.
    """
    kind = _kind(value)
    if kind not in _CONTAINERS:
        return fn(value)
    stack = [_Open(value, kind)]
    while True:
        container = stack[-1]
        if len(container.done) == len(container.parts):
            stack.pop()
            made = container.closed()
            if not stack:
                return made
            stack[-1].done.append(made)
            continue
        part = container.parts[len(container.done)]
        kind = _kind(part)
        if kind in _CONTAINERS:
            stack.append(_Open(part, kind))
        else:
            container.done.append(fn(part))


def _kind(value: object) -> int:
    """The kind of an object; references are dataclasses, and no containers."""
    return STATIC if isinstance(value, _REFERENCES) else kind_of(value)


def _pairs(value: Any, kind: int) -> list[tuple[Any, Any]]:
    """The steps and parts of a list, tuple or dict."""
    return list(value.items()) if kind == DICT else numbered(value)
