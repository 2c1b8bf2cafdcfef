"""Filter: tells whether a value at a path is meant. What all filters have in common."""

from __future__ import annotations

from typing import Any as Anything

from synmod.errors import ArgumentError
from synmod.leaves.frozen import FrozenDict, FrozenList, json_equal
from synmod.leaves.names import KeyPath


class Filter:
    """Tells whether a value at a path is meant; equal, hashed and printed by content."""

    __slots__ = ("_content",)

    looks_at_path: bool = True
    """Whether `matches` must be given the path; where not, a walk need not make it."""

    def __init__(self, *content: Anything) -> None:
        self._content = content

    def matches(self, path: KeyPath, value: Anything, masked: bool) -> bool:
        """Decide; `masked` tells whether a frozen module lies above the value."""
        raise NotImplementedError

    def __call__(self, path: KeyPath, value: Anything) -> bool:
        return self.matches(path, value, False)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Filter) or type(self) is not type(other) or len(self._content) != len(other._content):
            return False
        return all(map(_is_same, self._content, other._content))

    def __hash__(self) -> int:
        return hash((type(self), self._content))

    def __repr__(self) -> str:
        inside = ", ".join(part.__qualname__ if isinstance(part, type) else repr(part) for part in self._content)
        return f"{type(self).__name__}({inside})"


def _is_same(a: Anything, b: Anything) -> bool:
    """Compare what filters are made of as they compare it: a step or tag `1` is not `True`."""
    if type(a) is not type(b):
        return False
    return json_equal(a, b) if isinstance(a, FrozenDict | FrozenList) else bool(a == b)


def invalid(x: Anything, wanted: str) -> ArgumentError:
    """Make the error for what is no filter."""
    return ArgumentError(f"Invalid filter {x!r:.200}: {wanted}.")
