"""The structure of a module: attributes set and deleted, Variables added, sealed once it is built."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from inspect import getattr_static
from typing import TYPE_CHECKING, Any

from synmod.errors import ArgumentError, GraphError, SealedError, SkipNameError
from synmod.leaves.names import did_you_mean, path_str, snake_case, unused
from synmod.tree import (
    EDITS,
    KNOWN,
    NODE,
    STATIC,
    Impls,
    Static,
    Variable,
    get_node_impl,
    is_token,
    kind_of,
)

from .builds import remember
from .record import ABSENT, LABELS, attribute_of, held, structural_attributes, where

if TYPE_CHECKING:
    from .module import Module


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


def set_attribute(module: Module, name: str, value: Any) -> None:
    """Set one attribute.

    Raises:
        SealedError: The module is built, and the assignment would change its structure.
        AttributeError: The name is a read-only name of `Module`, or dunder.
    """
    if name.startswith("__") and name.endswith("__") and name != "__class__":
        raise AttributeError(f"{name!r} cannot be set on a module")  # such as what typing leaves on generic instances
    record = module._record
    in_build = (record.constructed or record.sealed) and remember(module)
    if isinstance(getattr(type(module), name, None), property):
        object.__setattr__(module, name, value)  # its setter looks after itself
        if record.constructed and not in_build and name not in LABELS:
            record.reassigned[name] = None
        return
    swaps = record.sealed and check_assignment(module, name, value)
    if record.constructed and not in_build:
        record.reassigned[name] = None
    if isinstance(value, Static):
        record.statics[name] = None
        value = value.value  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    else:
        record.statics.pop(name, None)
    object.__setattr__(module, name, value)
    record.removed.pop(name, None)
    if swaps:
        note_swap(module)


def delete_attribute(module: Module, name: str) -> None:
    """Delete one attribute.

    Raises:
        SealedError: The module is built, and the attribute is or holds a node or a Variable.
        AttributeError: There is no such attribute.
    """
    record = module._record
    if record.sealed:
        check_deletion(module, name)
    in_build = remember(module)
    object.__delattr__(module, name)
    record.forget(name)
    if record.constructed and not in_build:
        record.removed[name] = None


_NO_WORD = re.compile(r"\W+")


def add_variable(
    module: Module,
    initializer: Any,
    data_model: Any,
    schema: Any,
    trainable: bool | None,
    name: str | None,
    description: str | None,
    kind: type[Variable],
) -> Variable:
    """Make a Variable and hold it under its name, or `name_1`, ... where that is taken."""
    refuse_if_sealed(module, name or "variable", "a Variable")
    if not isinstance(kind, type) or not issubclass(kind, Variable):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ArgumentError(f"{where(module)}: type={kind!r} is not a Variable type; use sm.Param, sm.Memory, ...")
    variable = kind(
        initializer=initializer,
        data_model=data_model,
        schema=schema,
        trainable=trainable,
        name=name,
        description=description,
    )
    if variable.name is None:
        variable.name = _name_of(variable.schema.get("title"))
    attribute = unused(variable.name, _Taken(module))
    remember(module)
    object.__setattr__(module, attribute, variable)
    return variable


def _name_of(title: Any) -> str:
    """The snake case of a schema's title, as far as that makes a name."""
    words = _NO_WORD.sub("_", snake_case(title)).strip("_") if isinstance(title, str) else ""
    name = snake_case(words) if words else ""  # a keyword takes an underscore
    return name if name.isidentifier() else "variable"


class _Taken:
    """The names that an attribute cannot have: those of other attributes, and of the class."""

    def __init__(self, module: Module) -> None:
        self.module = module

    def __contains__(self, name: object) -> bool:
        module, attribute = self.module, str(name)
        if attribute_of(module, attribute) is not ABSENT:
            return True
        return hasattr(type(module), attribute) and attribute not in dict(module._record.declaration.slots)


def get_variable(module: Module, name: str | None, index: int | None) -> Variable:
    """Find one Variable by its name, or by its place in `variables`."""
    if (name is None) == (index is None):
        raise ArgumentError(f"{where(module)}: get_variable takes exactly one of name and index.")
    by_path = module.variables_by_path()
    if index is not None:
        if isinstance(index, bool) or not isinstance(index, int):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ArgumentError(f"{where(module)}: get_variable got index={index!r}; an index is a whole number.")
        found = tuple(by_path.values())
        if not -len(found) <= index < len(found):
            raise GraphError(f"{where(module)}: no Variable at index {index!r}; there are {len(found)}.")
        return found[index]
    named = [(path, variable) for path, variable in by_path.items() if variable.name == name]
    if len(named) == 1:
        return named[0][1]
    if named:
        paths = ", ".join(path for path, _ in named)
        raise GraphError(f"{where(module)}: {len(named)} Variables are named {name!r}: {paths}. Take one by its path.")
    names = [str(variable.name) for variable in by_path.values()]
    raise GraphError(
        f"{where(module)}: no Variable is named {name!r}.{did_you_mean(str(name), names)} "
        f"There are: {', '.join(names) or 'none'}."
    )


def stashable(module: Module) -> Iterator[tuple[Any, str]]:
    """The `(namespace, name)` pairs that a module stashes, by name."""
    return (namespaced(module, name) for name in sorted(module.stashable_names))


def poppable(module: Module) -> Iterator[tuple[Any, str]]:
    """The pairs that it pops, by name."""
    return (namespaced(module, name) for name in sorted(module.poppable_names))


def namespaced(module: Module, name: str) -> tuple[Any, str]:
    """One pair."""
    return module._record.isolated.get(name), name


def isolate(module: Module, namespace: Any, only: Iterable[str] | None) -> None:
    """Put names of a module into a Namespace.

    Raises:
        ArgumentError: It is no Namespace.
        SkipNameError: The module declares no skips, or not these.
        SealedError: The module is built.
    """
    record = module._record
    if not is_token(namespace):
        raise ArgumentError(f"{where(module)}: isolate takes a synmod.skip.Namespace, got {namespace!r:.100}.")
    skips = record.declaration.skips
    declared = [] if skips is None else skips.names
    wanted = declared if only is None else [only] if isinstance(only, str) else list(only)
    unknown = sorted({repr(name) for name in wanted if name not in declared})
    if unknown or not declared:
        shown = ", ".join(map(repr, declared)) or "nothing"
        what = f"{', '.join(unknown)} cannot be isolated" if unknown else "there is nothing to isolate"
        raise SkipNameError(
            f"{where(module)}: {what}: it declares {shown}. Declare names with "
            "@skippable(stash=[...], pop=[...]) on the class."
        )
    if record.sealed:
        raise SealedError(
            f"{where(module)}: isolate, but the structure is sealed since the module was built. Isolate it in "
            "__init__, or before the first call."
        )
    remember(module)
    record.isolated = {**record.isolated, **dict.fromkeys(wanted, namespace)}
    EDITS.bump()
