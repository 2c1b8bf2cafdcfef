"""crossover: one State of two, leaf by leaf."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, TypeAlias

from synmod.errors import StateError
from synmod.leaves.names import KeyPath, path_str
from synmod.tree.filtering.filters import FilterLike, PathIn, to_filter
from synmod.tree.states.state import State

if TYPE_CHECKING:
    from synmod.tree.variable.variable_state import VariableState

Mask: TypeAlias = FilterLike | Collection[KeyPath | str]
"""A filter, or a set of paths."""


def crossover(a: State, b: State, mask: Mask) -> State:
    """Take the leaves of `a` where a mask holds, and those of `b` elsewhere.

    Args:
        a: A State.
        b: Another, with the same paths.
        mask: A filter, or a set (or frozenset, or dict) of paths as tuples or texts.

    Returns:
        A State in the order of `a`.

    Raises:
        StateError: A path is in one of them only; lists all of those. Or a path of the mask is in neither.
        ArgumentError: The mask is neither filter nor set.

    Example:
        >>> import synmod as sm
        >>> a, b = (sm.state({"x": sm.Param(k), "y": sm.Param(k)}) for k in ("a", "b"))
        >>> sm.crossover(a, b, {"y"}).to_json()
        {'x': 'b', 'y': 'a'}

    Source: Genetic algorithms; the masks of NNX filters.
    """
    mine, theirs = a.flat(), b.flat()
    others = [path for path in (*mine, *theirs) if path not in mine or path not in theirs]
    if others:
        names = ", ".join(repr(path_str(path)) for path in others)
        raise StateError(f"crossover: the States must have the same paths; in one of them only: {names}.")
    if isinstance(mask, set | frozenset | dict):
        known = {path_str(path) for path in mine}
        paths: list[KeyPath | str] = list(mask)  # pyright: ignore[reportUnknownArgumentType]  (a filter may be anything)
        texts = [path if isinstance(path, str) else path_str(path) for path in paths]
        lost = [text for text in texts if text not in known]
        if lost:
            raise StateError(f"crossover: the mask has paths that no State has: {', '.join(map(repr, lost))}.")
        mask = PathIn(*texts)
    wanted = to_filter(mask)
    leaves: dict[KeyPath, VariableState] = {
        path: leaf if wanted.matches(path, leaf, False) else theirs[path] for path, leaf in mine.items()
    }
    return State._of(leaves)
