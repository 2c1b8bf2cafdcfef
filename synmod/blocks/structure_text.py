"""The fingerprint of a module's structure, taken anew only where something has changed since it was asked last."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pydantic import BaseModel

from synmod.blocks.code_text import code_text
from synmod.cache import key_of
from synmod.data import schema_of
from synmod.flow import leaves
from synmod.tree import graphdef, walk

if TYPE_CHECKING:
    from collections.abc import Callable

    from synmod.module import Module

_Seen = list[tuple[Any, list[tuple[Any, Any]]]]

_SCALARS: Final = frozenset({str, int, float, bool})
_CHANGEABLE: Final = (set, BaseModel)
"""Statics whose content counts and may change in place."""


class StructureText:
    """The last fingerprint, and what it was taken of.

    A fingerprint takes ten times as long as a walk, and a memo asks for it at each call.
    """

    __slots__ = ("_last",)

    def __init__(self) -> None:
        self._last: tuple[_Seen, str] | None = None

    def of(self, module: Module, key: Callable[..., Any] | None) -> str:
        """Give the fingerprint of a module together with the function by which its inputs are told apart."""
        now: _Seen = [(key, []), *((visit.value, visit.children) for visit in walk(module))]
        last = self._last
        if last is None or not _same(now, last[0]):
            last = self._last = now, _text(module, key)
        return last[1]


def _text(module: Module, key: Callable[..., Any] | None) -> str:
    """Take the fingerprint; annotations are in no graph, but an output that a class declares anew is another one."""
    declared = [leaf and schema_of(leaf) for leaf in leaves(module.output_spec)]
    return key_of([graphdef(module).fingerprint_with(code_text), declared, code_text(key)])


def _same(now: _Seen, before: _Seen) -> bool:
    """Tell whether two walks met the same objects with the same content."""
    if len(now) != len(before):
        return False
    for (value, pairs), (old_value, old_pairs) in zip(now, before, strict=True):
        if value is not old_value or len(pairs) != len(old_pairs):
            return False
        for (key, child), (old_key, old_child) in zip(pairs, old_pairs, strict=True):
            if key != old_key or isinstance(child, _CHANGEABLE):
                return False
            if child is not old_child and not _equal(child, old_child):
                return False
    return True


def _equal(child: Any, old_child: Any) -> bool:
    """Tell whether two scalars are equal, and of one class."""
    return type(child) in _SCALARS and type(child) is type(old_child) and repr(child) == repr(old_child)
