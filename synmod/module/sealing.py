"""Sealing: after build the structure stays as it is, so that state made by accident is found at its line."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from inspect import getattr_static
from typing import TYPE_CHECKING, Any

from synmod.errors import SealedError
from synmod.leaves.names import KeyPath, path_str
from synmod.module.attributes import ABSENT, attribute_of, structural_attributes
from synmod.tree import (
    DICT,
    EDITS,
    KNOWN,
    NODE,
    STATIC,
    TREE,
    VARIABLE,
    Impls,
    Kinds,
    Variable,
    get_node_impl,
    kind_of,
    numbered,
    take_apart,
)

if TYPE_CHECKING:
    from synmod.module.module import Module

_LEAVES = frozenset({NODE, VARIABLE})


def seal(module: Module) -> None:
    """Close the structure of a module; if it is built it is ready, for everybody unless a build under way made it."""
    record = module._record
    if not record.sealed and not record.reopened:
        record.layout = layout_of(structural_attributes(module))
        record.sealed = True
    record.ready = record.built and record.building is None


def layout_of(attributes: Iterable[tuple[str | int, Any]]) -> list[object]:
    """Which nodes and Variables the attributes of a module are, or where they hold them: three items for each.

    Hot, since every split of what is sealed asks, and every merge makes one for each module: so it is flat, and small.
    Each part is told by its identity, and kept alive, so that nothing else comes to have that: name, identity and
    Variable, or name, 0 and contents.
    """
    layout: list[object] = []
    for name, value in attributes:
        cls = type(value)  # pyright: ignore[reportUnknownVariableType]  (hot: no `class_of`)
        kind = KNOWN.get(cls)  # pyright: ignore[reportUnknownArgumentType]
        if kind is None and isinstance(value, Variable):
            layout += (name, id(value), value)
        elif kind is None or (kind != STATIC and value):
            found = _contents(value)
            if found:
                layout += (name, 0, found)
    return layout


def _contents(value: Any) -> list[object]:
    """The nodes and Variables in a value, as flat: path below it, identity and part.

    A by-reference node stands for its kind, whose others may take its place.
    """
    impls = Impls()
    contents: list[object] = []
    for at, part, kind in held(value):
        if kind == NODE and impls[type(part)].by_reference:
            contents += (at, 0, impls[type(part)])
        else:
            contents += (at, id(part), part)
    return contents


def held(value: Any) -> Iterator[tuple[KeyPath, Any, int]]:
    """Yield the nodes and Variables that `value` is or holds, with their paths below it and kinds; nodes stay shut."""
    kinds = Kinds(KNOWN)
    kind = kinds[type(value)]
    if kind in _LEAVES:
        yield (), value, kind
        return
    todo: list[tuple[KeyPath, Any, int]] = [((), value, kind)]
    seen: set[int] = set()
    while todo:
        at, container, kind = todo.pop()
        if kind == STATIC or id(container) in seen:
            continue
        seen.add(id(container))
        for key, part in _items(container, kind):
            kind = kinds[type(part)]
            if kind in _LEAVES:
                yield (*at, key), part, kind
            elif kind != STATIC:
                todo.append(((*at, key), part, kind))


def _items(container: Any, kind: int) -> list[tuple[Any, Any]]:
    if kind == DICT:
        return list(container.items())
    return take_apart(container)[0] if kind == TREE else numbered(container)


def check_layout(module: Module) -> None:
    """Raise SealedError where a sealed module was changed behind its back, in a container or in `__dict__`."""
    record = module._record
    if not record.sealed or record.layout is None:
        return
    now = layout_of(structural_attributes(module))
    if now == record.layout:
        return
    old_parts, new_parts = _by_name(record.layout), _by_name(now)  # which may have come into another order
    for name in dict.fromkeys((*old_parts, *new_parts)):
        if old_parts.get(name) != new_parts.get(name):
            raise SealedError(_text(module, str(name), f"what attribute {name!r} holds was changed"))


def _by_name(layout: list[object]) -> dict[object, tuple[object, object]]:
    return dict(zip(layout[::3], zip(layout[1::3], layout[2::3], strict=True), strict=True))


def refuse_if_sealed(module: Module, attribute: str, what: str) -> None:
    """Raise SealedError if the structure of `module` is closed."""
    if module._record.sealed:
        raise SealedError(_text(module, attribute, f"{what} was to be added as {attribute!r}"))


def check_assignment(module: Module, name: str, value: Any) -> bool:
    """Let an assignment to a sealed module pass if it changes no structure, or swaps a by-reference node for its kind.

    Returns:
        Whether it is such a swap: the caller tells by `note_swap` when it is done.

    Raises:
        SealedError: It would add, replace or remove a node or a Variable.
    """
    old = _in_graph(module, name)
    if value is old or name in module._record.declaration.hidden or not (_holds_any(value) or _holds_any(old)):
        return False
    if not _is_swap(old, value):
        raise SealedError(_text(module, name, f"attribute {name!r} was to be assigned"))
    return True


def note_swap(module: Module) -> None:
    """Take what the module holds now for its structure."""
    module._record.layout = layout_of(structural_attributes(module))
    note_edit(module)


def note_edit(module: Module) -> None:
    """Count a structural edit of a sealed module: tables of paths are made anew at the next entry call."""
    module._record.version += 1
    EDITS.bump()


def check_deletion(module: Module, name: str) -> None:
    """Raise SealedError if deleting the attribute would take a node or a Variable out of a sealed module."""
    if name not in module._record.declaration.hidden and _holds_any(_in_graph(module, name)):
        raise SealedError(_text(module, name, f"attribute {name!r} was to be deleted"))


def _in_graph(module: Module, name: str) -> Any:
    """What the graph sees of an attribute: nothing of a static one; None where that is the default of the class."""
    if name in module._record.statics:
        return ABSENT
    value = attribute_of(module, name)
    return getattr_static(type(module), name, ABSENT) if value is ABSENT else value


def _holds_any(value: Any) -> bool:
    """Tell whether `value` is or holds a node or a Variable."""
    return next(held(value), None) is not None


def _is_swap(old: object, new: object) -> bool:
    """Tell whether a by-reference node takes the place of one of its kind, or of None: no state hangs on those."""
    if old is None or new is None:
        return _is_by_reference(new if old is None else old)
    return _is_by_reference(old) and _is_by_reference(new) and get_node_impl(old) is get_node_impl(new)


def _is_by_reference(x: object) -> bool:
    return kind_of(x) == NODE and get_node_impl(x).by_reference


def _text(module: Module, attribute: str, fault: str) -> str:
    path = path_str((*filter(None, (module.path,)), attribute))
    return (
        f"{path} ({type(module).__name__}): {fault}, but the structure is sealed since the module was built. "
        "Make children and Variables in __init__, or in build where they depend on the schema."
    )
