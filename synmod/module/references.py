"""Constructor arguments with other objects in the place of some: through every container that the walk sees through."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from synmod.tree import (
    DICT,
    KNOWN,
    NODE,
    SEQUENCE,
    STATIC,
    TREE,
    VARIABLE,
    ContainerDef,
    NodeRef,
    Reference,
    Static,
    VariableRef,
    class_of,
    kind_of,
    numbered,
    put_together,
    split,
    static_text,
    take_apart,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Container

    from synmod.tree import Term

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


def says_the_same(value: Any, term: Term) -> bool:
    """Tell whether an argument, with references in it, is what a term of the graph says."""
    pending: list[tuple[Any, Term]] = [(value, term)]
    while pending:
        x, term = pending.pop()
        if isinstance(term, Reference):
            if x != term:
                return False
        elif isinstance(term, ContainerDef):
            kind = _kind(x)
            if class_of(x) is not term.type or kind not in _CONTAINERS:
                return False
            pairs, rest = take_apart(x) if kind == TREE else (_pairs(x, kind), getattr(x, "default_factory", None))
            if tuple([step for step, _ in pairs]) != term.steps or not _are_the_same(rest, term.aux):
                return False
            pending += zip([part for _, part in pairs], term.children, strict=True)
        else:
            static: Any = term.value
            if type(static) is Static:
                static = cast("Any", static).value
            if not _are_the_same(x, static):
                return False
    return True


def _are_the_same(one: Any, other: Any) -> bool:
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
        elif kind in (NODE, VARIABLE) or not _is_written_alike(a, b):
            return False
    return True


def mean_the_same(mine: Any, other: Any, known: Container[int]) -> bool:
    """Tell whether a value from a file stands for one that is here.

    Statics are compared by what is written of them, so that a schema stands for its class; nodes and Variables that are
    `known` by identity, and those that no path leads to by graph and state.
    """
    pending: list[tuple[Any, Any]] = [(mine, other)]
    while pending:
        a, b = pending.pop()
        if a is b:
            continue
        kind = _kind(a)
        if kind != _kind(b):
            return False
        if kind not in _CONTAINERS:
            if kind not in (NODE, VARIABLE):
                alike = _is_written_alike(a, b)
            else:
                alike = id(b) not in known and split(a) == split(b)
            if not alike:
                return False
            continue
        parts = _paired(a, b, kind) if class_of(a) is class_of(b) else None
        if parts is None:
            return False
        pending += parts
    return True


def _is_written_alike(a: Any, b: Any) -> bool:
    """Tell whether two leaves are the same text, number or other static."""
    if class_of(a) is class_of(b) and class_of(a) in _COMPARED:
        return a == b
    text = static_text(a)
    return text is not None and text == static_text(b)


def _paired(a: Any, b: Any, kind: int) -> list[tuple[Any, Any]] | None:
    """The parts of two containers of one class side by side; None where they have different steps."""
    if kind == SEQUENCE:
        return list(zip(a, b, strict=True)) if len(a) == len(b) else None
    if kind == DICT:
        return list(zip(a.values(), b.values(), strict=True)) if list(a) == list(b) else None
    (ours, our_rest), (theirs, their_rest) = take_apart(a), take_apart(b)
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
