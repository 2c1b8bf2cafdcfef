"""What a document takes in memory once it is parsed, told from its brackets before anything is made of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from synmod.saving.text.limits import USUAL_VALUES

if TYPE_CHECKING:
    from synmod.saving.text.limits import FileLimits
    from synmod.saving.text.scan import Measures

__all__ = ["footprint", "room", "values_for"]

_OBJECT: Final = 224  # with five entries
_ARRAY: Final = 104
_EMPTY: Final = 97
_KEY: Final = 40
_FURTHER_KEY: Final = 64  # of an object with more than five, where keys differ
_SCALAR: Final = 40
_COPIES: Final = 2  # the bytes, and the text

_FREE: Final = 64 * 2**20
_PER_BYTE: Final = 10


def footprint(measures: Measures, size: int) -> int:
    """Estimate the memory that a document takes, frozen, in bytes; rather too high.

    Most of it is what a container costs by itself, which for `{"":{}}` is forty times its text.
    """
    containers = _OBJECT * measures.objects + _ARRAY * measures.arrays + _EMPTY * measures.empties
    scalars = measures.values - measures.objects - measures.arrays - measures.empties
    keys = _KEY * measures.keys + _FURTHER_KEY * max(measures.keys - 5 * measures.objects, 0)
    return containers + keys + _SCALAR * scalars + _COPIES * size


def room(limits: FileLimits, size: int) -> int:
    """The memory that a document of a size may take: more only for a caller who raises `max_values`."""
    return (_FREE + _PER_BYTE * size) * max(limits.max_values, USUAL_VALUES) // USUAL_VALUES


def values_for(needed: int, size: int) -> int:
    """The `max_values` that makes room for a footprint."""
    return -(-needed * USUAL_VALUES // (_FREE + _PER_BYTE * size))
