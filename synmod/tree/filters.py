"""Filters: one way to say 'these Variables', from `split` to the Trainer.

Whatever a user writes (a type, a tag, a function, `...`) becomes one of the classes here, which compare, hash and print
by content.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import EllipsisType
from typing import TYPE_CHECKING, Any as Anything, TypeAlias

from synmod.data.contain import schema_contains
from synmod.data.declare import declare
from synmod.errors import ArgumentError
from synmod.leaves.frozen import Json, frozen, json_equal
from synmod.leaves.paths import KeyPath, parse_path, path_str
from synmod.tree.glob import glob_matches
from synmod.tree.variable import Variable
from synmod.tree.variable_state import VariableState

FilterLike: TypeAlias = Anything
"""A type, a str (tag), `...` or True, None or False, a callable, a tuple or list of filters, or a Filter."""


class Filter:
    """What every filter can do: tell whether a value at a path is meant."""

    __slots__ = ()

    def matches(self, path: KeyPath, value: Anything, masked: bool) -> bool:
        """Decide; `masked` tells whether a frozen module lies above the value."""
        raise NotImplementedError

    def __call__(self, path: KeyPath, value: Anything) -> bool:
        return self.matches(path, value, False)


@dataclass(frozen=True, slots=True)
class Everything(Filter):
    """Everything; also written `...` or True."""

    def matches(self, path: KeyPath, value: Anything, masked: bool) -> bool:
        """Say yes."""
        return True
