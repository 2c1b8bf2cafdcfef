"""Constructor arguments with other objects in the place of some: through every container that the walk sees through."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from synmod.tree.containers import class_of, numbered, put_together, take_apart
from synmod.tree.defs import NodeRef, VariableRef
from synmod.tree.encoding import static_text
from synmod.tree.kinds import DICT, NODE, SEQUENCE, STATIC, TREE, VARIABLE, kind_of

if TYPE_CHECKING:
    from collections.abc import Callable

_CONTAINERS = frozenset({SEQUENCE, DICT, TREE})
_REFERENCES = (NodeRef, VariableRef)


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


def say_the_same(one: Any, other: Any) -> bool:
    """Tell whether two values are the same object, equal statics, or containers of one kind with such parts."""
    pending: list[tuple[Any, Any]] = [(one, other)]
    while pending:
        a, b = pending.pop()
        if a is b:
            continue
        if class_of(a) is not class_of(b):
            return False
        kind = _kind(a)
        if kind in _CONTAINERS:
            parts = _paired(a, b, kind)
            if parts is None:
                return False
            pending += parts
        elif kind in (NODE, VARIABLE):
            return False
        else:
            text = static_text(a)
            if text is None or text != static_text(b):
                return False
    return True


def _paired(a: Any, b: Any, kind: int) -> list[tuple[Any, Any]] | None:
    """The parts of two containers of one class side by side; None where they have different steps."""
    (ours, our_rest), (theirs, their_rest) = (
        take_apart(x) if kind == TREE else (_pairs(x, kind), None) for x in (a, b)
    )
    if [step for step, _ in ours] != [step for step, _ in theirs]:
        return None
    parts = [(part, other) for (_, part), (_, other) in zip(ours, theirs, strict=True)]
    return [*parts, (our_rest, their_rest)]


def _kind(value: object) -> int:
    """The kind of an object; references are dataclasses, and no containers."""
    return STATIC if isinstance(value, _REFERENCES) else kind_of(value)


def _pairs(value: Any, kind: int) -> list[tuple[Any, Any]]:
    """The steps and parts of a list, tuple or dict."""
    return list(value.items()) if kind == DICT else numbered(value)
