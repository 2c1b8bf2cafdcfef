"""What a module holds: declared slots first, then the instance's own attributes, in definition order."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from synmod.module.module import Module

ABSENT: Final[Any] = object()
"""Stands for: there is no such attribute."""


def attributes_of(module: Module) -> list[tuple[str, Any]]:
    """All attributes with their values, ignored ones included; from any thread, as of one moment."""
    slots = module._record.declaration.slots
    held = list(vars(module).items())
    return [*_filled(module, slots), *held] if slots else held


def _filled(module: Module, slots: tuple[tuple[str, Any], ...]) -> Iterator[tuple[str, Any]]:
    for name, slot in slots:
        try:
            yield name, slot.__get__(module)
        except AttributeError:
            continue


def structural_attributes(module: Module) -> list[tuple[str, Any]]:
    """The attributes that can be part of the graph: neither ignored, nor static, nor made by `cached_property`."""
    record = module._record
    hidden, statics = record.declaration.hidden, record.statics
    pairs = attributes_of(module)
    if not hidden and not statics:
        return pairs
    return [(name, value) for name, value in pairs if name not in hidden and name not in statics]


def attribute_of(module: Module, name: str | int) -> Any:
    """One attribute, read without running a property; ABSENT where there is none."""
    for slot_name, slot in module._record.declaration.slots:
        if slot_name == name:
            try:
                return slot.__get__(module)
            except AttributeError:
                return ABSENT
    held: dict[Any, Any] = vars(module)  # a Sequential has int names
    return held.get(name, ABSENT)


def put_attribute(module: Module, name: str | int, value: Any) -> None:
    """Set one attribute as it is, or take it out (ABSENT); nothing is checked, no property runs."""
    held: dict[Any, Any] = vars(module)
    slots = module._record.declaration.slots
    if slots and any(slot_name == name for slot_name, _ in slots):
        _put_in_slot(module, str(name), value)
    elif value is ABSENT:
        held.pop(name, None)
    else:
        held[name] = value


def _put_in_slot(module: Module, name: str, value: Any) -> None:
    if value is not ABSENT:
        object.__setattr__(module, name, value)
        return
    try:
        object.__delattr__(module, name)
    except AttributeError:
        pass
