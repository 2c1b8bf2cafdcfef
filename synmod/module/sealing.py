"""Sealing: after build the structure stays as it is, so that state made by accident is found at its line."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, cast

from synmod.errors import SealedError
from synmod.leaves.paths import KeyPath, path_str
from synmod.module.paths import note_edit
from synmod.tree.containers import take_apart
from synmod.tree.kinds import DICT, NODE, SEQUENCE, TREE, VARIABLE, kind_of_type
from synmod.tree.node_types import get_node_impl

if TYPE_CHECKING:
    from synmod.module.module import Module


def seal(module: Module) -> None:
    """Close the structure of a built module; ready for everybody unless a build that is not over yet made it."""
    record = module._record
    if not record.sealed:
        record.layout = layout_of(module)
        record.provisional = {}
        record.sealed = True
    record.ready = record.building is None


def layout_of(module: Module) -> dict[str, Any]:
    """What the module's containers hold of nodes and Variables, by attribute."""
    layout: dict[str, Any] = {}
    value: object
    for name, value in vars(module).items():
        if kind_of_type(type(value)) in _CONTAINERS:
            found = [(path, id(x)) for path, x in held(value)]
            if found:
                layout[name] = found
    return layout


def held(value: Any) -> Iterator[tuple[KeyPath, Any]]:
    """Yield the nodes and Variables that `value` is or holds, with their paths below it; nodes are not entered."""
    todo: list[tuple[KeyPath, object]] = [((), value)]
    seen: set[int] = set()
    while todo:
        at, x = todo.pop()
        kind = kind_of_type(type(x))
        if kind in (NODE, VARIABLE):
            yield at, x
        elif kind in _CONTAINERS and id(x) not in seen:
            seen.add(id(x))
            todo.extend(((*at, key), item) for key, item in reversed(_items(x, kind)))


_ABSENT = object()
_CONTAINERS = frozenset({SEQUENCE, DICT, TREE})


def _items(container: Any, kind: int) -> list[tuple[Any, Any]]:
    if kind == DICT:
        return list(container.items())
    return list(enumerate(cast("list[Any]", container))) if kind == SEQUENCE else take_apart(container)[0]


def holds_structure(value: Any) -> bool:
    """Tell whether `value` is or holds a node or a Variable."""
    return next(held(value), None) is not None


def check_layout(module: Module) -> None:
    """Raise SealedError where a plain container was changed behind the back of a sealed module."""
    record = module._record
    if not record.sealed or record.layout is None:
        return
    now = layout_of(module)
    if now == record.layout:
        return
    for name in (*record.layout, *now):
        if record.layout.get(name) != now.get(name):
            raise SealedError(_text(module, name, f"the container in attribute {name!r} was changed"))


def refuse_if_sealed(module: Module, attribute: str, what: str) -> None:
    """Raise SealedError if the structure of `module` is closed."""
    if module._record.sealed:
        raise SealedError(_text(module, attribute, f"{what} was to be added as {attribute!r}"))


def check_assignment(module: Module, name: str, value: Any) -> None:
    """Let an assignment to a sealed module pass if it changes no structure, or swaps a by-reference node for its kind.

    Raises:
        SealedError: It would add, replace or remove a node or a Variable.
    """
    old = vars(module).get(name, _ABSENT)
    if value is old or not (holds_structure(value) or holds_structure(old)):
        return
    if _is_swap(old, value):
        note_edit(module)
        return
    raise SealedError(_text(module, name, f"attribute {name!r} was to be assigned"))


def check_deletion(module: Module, name: str) -> None:
    """Raise SealedError if deleting the attribute would take a node or a Variable out of a sealed module."""
    if holds_structure(vars(module).get(name)):
        raise SealedError(_text(module, name, f"attribute {name!r} was to be deleted"))


def _is_swap(old: object, new: object) -> bool:
    """Tell whether a by-reference node takes the place of one of its kind, or of None: no state hangs on those."""
    if old is None or new is None:
        return _is_by_reference(new if old is None else old)
    if kind_of_type(type(old)) != NODE or kind_of_type(type(new)) != NODE:
        return False
    return _is_by_reference(old) and get_node_impl(old) is get_node_impl(new)


def _is_by_reference(x: object) -> bool:
    return kind_of_type(type(x)) == NODE and get_node_impl(x).by_reference


def _text(module: Module, attribute: str, fault: str) -> str:
    path = path_str((*filter(None, (module.path,)), attribute))
    return (
        f"{path} ({type(module).__name__}): {fault}, but the structure is sealed since the module was built. "
        "Make children and Variables in __init__, or in build where they depend on the schema."
    )
