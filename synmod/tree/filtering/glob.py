"""Globs over paths: `*` within one step, `**` for any number of steps. Linear memory, no backtracking blow-up."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from synmod.leaves.names import KeyPath, parse_path

T = TypeVar("T")
S = TypeVar("S")


def glob_matches(pattern: str, path: KeyPath) -> bool:
    """Tell whether the whole path matches; case counts.

    Example:
        >>> glob_matches("layers/*/prompt", ("layers", 0, "prompt")), glob_matches("**/x", ("x",))
        (True, True)
    """
    return _matches(parse_path(pattern), path, "**", _step_matches)


def _step_matches(pattern: str, step: str | int) -> bool:
    text = str(step)
    return pattern == text or ("*" in pattern and _matches(pattern, text, "*", str.__eq__))


def _matches(pattern: Sequence[T], items: Sequence[S], star: str, one: Callable[[T, S], bool]) -> bool:
    """Match greedily: on a misfit let the last star take one item more, which is all that can help."""
    at = place = 0
    last_star, starred = -1, 0
    while place < len(items):
        if at < len(pattern) and pattern[at] == star:
            last_star, starred = at, place
            at += 1
        elif at < len(pattern) and one(pattern[at], items[place]):
            at, place = at + 1, place + 1
        elif last_star >= 0:
            starred += 1
            at, place = last_star + 1, starred
        else:
            return False
    return all(rest == star for rest in pattern[at:])
