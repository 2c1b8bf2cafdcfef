"""The structure of a module: attributes set and deleted, Variables added, all of it sealed once the module is built."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from inspect import getattr_static
from typing import Any

from synmod.errors import ArgumentError, ConfigError, GraphError, SealedError, SkipNameError
from synmod.leaves.names import did_you_mean, path_str, snake_case, unused
from synmod.tree import (
    KNOWN,
    NODE,
    STATIC,
    Static,
    Variable,
    class_of,
    get_node_impl,
    is_token,
    kind_of,
    outdate,
    variables,
)

from .builds import remember
from .record import ABSENT, LABELS, Module, attribute_of, held, structural_attributes, where

_NO_WORD = re.compile(r"\W+")

# -- attributes -------------------------------------------------------------------------------------------------------


def set_attribute(module: Module, name: str, value: Any) -> None:
    """Set one attribute.

    Raises:
        SealedError: The module is built, and the assignment would change its structure.
        GraphError: The attribute holds a Variable, and the value is not one.
        ConfigError: The name is one of `Module`, which the attribute would hide.
        AttributeError: The name is dunder.
    """
    if name.startswith("__") and name.endswith("__") and name != "__class__":
        raise AttributeError(f"{name!r} cannot be set on a module")  # such as what typing leaves on generic instances
    record = module._record
    if name in record.declaration.reserved:
        raise ConfigError(
            f"class {type(module).__name__}: the attribute {name!r} would hide what Module has by that name; take "
            f"another one, such as {record.declaration.default_name}_{name}."
        )
    in_build = (record.constructed or record.sealed) and remember(module)
    if isinstance(getattr(class_of(module), name, None), property):
        object.__setattr__(module, name, value)  # its setter does the rest
        if record.constructed and not in_build and name not in LABELS:
            record.reassigned[name] = None
        return
    if not isinstance(value, Variable) and isinstance(attribute_of(module, name), Variable):
        raise GraphError(
            f"{where(module)}: attribute {name!r} holds a Variable: set its value by `module.{name}.assign(json)`."
        )
    swaps = record.sealed and _check_assignment(module, name, value)
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
        note_edit(module)


def delete_attribute(module: Module, name: str) -> None:
    """Delete one attribute.

    Raises:
        SealedError: The module is built, and the attribute is or holds a node or a Variable.
        AttributeError: There is no such attribute.
    """
    record = module._record
    if record.sealed and name not in record.declaration.hidden and _holds_any(_in_graph(module, name)):
        raise SealedError(_text(module, name, f"attribute {name!r} was to be deleted"))
    in_build = remember(module)
    object.__delattr__(module, name)
    record.statics.pop(name, None)
    if record.constructed and not in_build:
        record.removed[name] = None


# -- Variables --------------------------------------------------------------------------------------------------------


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
    refuse_if_sealed(module, name or "variable", "a Variable was to be added")
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
    slots = dict(module._record.declaration.slots)
    taken = {*module.__dict__, *dir(class_of(module))} - {
        slot for slot in slots if attribute_of(module, slot) is ABSENT
    }
    restored = module._record.restored or set[str]()
    attribute = unused(variable.name, taken - restored)
    if attribute in restored:  # an earlier build made it, and a load has it there
        restored.discard(attribute)
        return attribute_of(module, attribute)
    remember(module)
    object.__setattr__(module, attribute, variable)
    return variable


def _name_of(title: Any) -> str:
    """Return the snake case of a schema's title, as far as that makes a name."""
    words = _NO_WORD.sub("_", snake_case(title)).strip("_") if isinstance(title, str) else ""
    name = snake_case(words) if words else ""  # a keyword takes an underscore
    return name if name.isidentifier() else "variable"


def get_variable(module: Module, name: str | None, index: int | None) -> Variable:
    """Return one Variable by its name, or by its place in `variables`."""
    if (name is None) == (index is None):
        raise ArgumentError(f"{where(module)}: get_variable takes exactly one of name and index.")
    live = module.variables
    by_path = dict(zip(variables(module), live, strict=True))
    if index is not None:
        if isinstance(index, bool) or not isinstance(index, int):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ArgumentError(f"{where(module)}: get_variable got index={index!r}; an index is a whole number.")
        found = tuple(by_path.values())
        if not -len(found) <= index < len(found):
            raise GraphError(f"{where(module)}: no Variable at index {index!r}; there are {len(found)}.")
        return found[index]
    named = {path: variable for path, variable in by_path.items() if variable.name == name}
    if len(named) == 1:
        return next(iter(named.values()))
    if named:
        raise GraphError(
            f"{where(module)}: {len(named)} Variables are named {name!r}: {', '.join(named)}. Take one by its path."
        )
    names = [str(variable.name) for variable in by_path.values()]
    raise GraphError(
        f"{where(module)}: no Variable is named {name!r}.{did_you_mean(str(name), names)} "
        f"There are: {', '.join(names) or 'none'}."
    )


# -- sealing ----------------------------------------------------------------------------------------------------------


def seal(module: Module) -> None:
    """Close the structure of a module; if it is built it is ready, for everybody unless a build under way made it."""
    record = module._record
    if not record.sealed:
        record.layout = layout_of(structural_attributes(module))
        record.sealed = True
    record.ready = record.built and record.building is None


def layout_of(attributes: Iterable[tuple[str | int, Any]]) -> dict[str | int, Any]:
    """Return the nodes and Variables that attributes are or hold, each with its place and identity.

    Each is kept alive, so that nothing else comes to have its identity. A by-reference node stands for its kind, whose
    others may take its place. Hot: made for every module of a merge, and compared in every split.
    """
    layout: dict[str | int, Any] = {}
    for name, value in attributes:
        if KNOWN.get(type(value)) == STATIC:  # pyright: ignore[reportUnknownArgumentType]
            continue
        parts = [
            (at, 0, get_node_impl(part)) if _is_by_reference(part, kind) else (at, id(part), part)
            for at, part, kind in held(value)
        ]
        if parts:
            layout[name] = parts
    return layout


def check_layout(module: Module) -> None:
    """Raise SealedError where a sealed module was changed behind its back, in a container or in `__dict__`."""
    record = module._record
    if not record.sealed or record.layout is None:
        return
    before, now = record.layout, layout_of(structural_attributes(module))
    if now != before:
        name = next(name for name in (*before, *now) if before.get(name) != now.get(name))
        raise SealedError(_text(module, str(name), f"what attribute {name!r} holds was changed"))


def refuse_if_sealed(module: Module, attribute: str, change: str) -> None:
    """Raise SealedError if the structure of `module` is closed; `change` is what was to be done at the attribute."""
    if module._record.sealed:
        raise SealedError(_text(module, attribute, change))


def note_edit(module: Module) -> None:
    """Take what a sealed module holds now for its structure; tables of paths are made anew at the next entry call."""
    record = module._record
    record.layout = layout_of(structural_attributes(module))
    record.version += 1
    outdate(record)


def _check_assignment(module: Module, name: str, value: Any) -> bool:
    """Check that assigning to a sealed module changes no structure, but for a by-reference node swapped for its kind.

    Returns:
        Whether it is such a swap.

    Raises:
        SealedError: It would add, replace or remove a node or a Variable.
    """
    old = _in_graph(module, name)
    if value is old or name in module._record.declaration.hidden or not (_holds_any(value) or _holds_any(old)):
        return False
    # no state hangs on a by-reference node: it may take the place of one of its kind, or of None
    swapped = [x for x in (old, value) if x is not None]
    if not all(_is_by_reference(x, kind_of(x)) for x in swapped) or len({id(get_node_impl(x)) for x in swapped}) > 1:
        raise SealedError(_text(module, name, f"attribute {name!r} was to be assigned"))
    return True


def _in_graph(module: Module, name: str) -> Any:
    """Return what the graph sees of an attribute: nothing of a static one, the default of the class where unset."""
    if name in module._record.statics:
        return ABSENT
    value = attribute_of(module, name)
    return getattr_static(class_of(module), name, ABSENT) if value is ABSENT else value


def _holds_any(value: Any) -> bool:
    """Whether `value` is or holds a node or a Variable."""
    return next(held(value), None) is not None


def _is_by_reference(x: object, kind: int) -> bool:
    return kind == NODE and get_node_impl(x).by_reference


def _text(module: Module, attribute: str, fault: str) -> str:
    path = path_str((*filter(None, (module.path,)), attribute))
    return (
        f"{path} ({type(module).__name__}): {fault}, but the structure is sealed since the module was built. "
        "Make children and Variables in __init__, or in build where they depend on the schema."
    )


# -- Namespaces of skips ----------------------------------------------------------------------------------------------


def namespaced(module: Module, names: Iterable[str]) -> Iterator[tuple[Any, str]]:
    """Yield the `(namespace, name)` pairs of some names, by name."""
    return ((module._record.isolated.get(name), name) for name in sorted(names))


def isolate(module: Module, namespace: Any) -> None:
    """Put the declared skip names of a module into a Namespace.

    Raises:
        ArgumentError: It is not a Namespace.
        SkipNameError: The module declares no skips.
        SealedError: The module is built.
    """
    record = module._record
    if not is_token(namespace):
        raise ArgumentError(f"{where(module)}: isolate takes a synmod.skip.Namespace, got {namespace!r:.100}.")
    skips = record.declaration.skips
    if skips is None or not skips.names:
        raise SkipNameError(
            f"{where(module)}: it declares no skips, so there is nothing to isolate. Declare names with "
            "@skippable(stash=[...], pop=[...]) on the class."
        )
    if record.sealed:
        raise SealedError(
            f"{where(module)}: isolate, but the structure is sealed since the module was built. Isolate it in "
            "__init__, or before the first call."
        )
    remember(module)
    record.isolated = {**record.isolated, **dict.fromkeys(skips.names, namespace)}
    outdate(record)
