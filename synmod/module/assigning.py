"""Setting and deleting attributes: statics, sealing and running builds are looked after."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from synmod.module.building import remember
from synmod.module.record import LABELS
from synmod.module.sealing import check_assignment, check_deletion, note_swap
from synmod.tree import Static

if TYPE_CHECKING:
    from synmod.module.module import Module


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
