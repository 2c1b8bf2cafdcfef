"""Giving leaves to filters: the first that matches takes a leaf."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from synmod.errors import StateError
from synmod.leaves.names import KeyPath, path_str
from synmod.tree.filtering.filters import Everything, Filter

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

T = TypeVar("T")
S = TypeVar("S")


def partition(
    leaves: Iterable[tuple[KeyPath, T, bool]], filters: Sequence[Filter], *, exhaustive: bool
) -> list[list[tuple[KeyPath, T]]]:
    """Give each leaf to the first filter that takes it.

    Args:
        leaves: Path, leaf, and whether a frozen module is above it.
        filters: None of them: everything is one part.
        exhaustive: Whether a leaf that no filter takes is an error.

    Returns:
        A list of `(path, leaf)` for each filter, order kept.

    Raises:
        StateError: `...` stands before the last place, or leaves are left over where they may not.
    """
    for index, each in enumerate(filters[:-1]):
        if isinstance(each, Everything):
            raise StateError(f"Filter {index}: `...` (or True) can only be used as the last of {len(filters)} filters.")
    if not filters:
        return [[(path, leaf) for path, leaf, _ in leaves]]
    parts: list[list[tuple[KeyPath, T]]] = [[] for _ in filters]
    remainder: list[KeyPath] = []
    for path, leaf, masked in leaves:
        for part, each in zip(parts, filters, strict=True):
            if each.matches(path, leaf, masked):
                part.append((path, leaf))
                break
        else:
            remainder.append(path)
    if exhaustive and remainder:
        names = ", ".join(repr(path_str(path)) for path in remainder)
        raise StateError(f"Non-exhaustive filters: no filter takes {names}. Add `...` as the last one.")
    return parts


def single_or_all(parts: Sequence[S]) -> S | tuple[S, ...]:
    """Give the one part there is, or all of them as a tuple."""
    return parts[0] if len(parts) == 1 else tuple(parts)
