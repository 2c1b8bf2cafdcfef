"""RefMap: the one tool for 'have I seen this object'."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, MutableMapping
from typing import Any, Generic, TypeVar, cast

V = TypeVar("V")


class RefMap(MutableMapping[Any, V], Generic[V]):
    """A mapping by identity that keeps its keys alive.

    Unhashable keys are fine, and equal keys that are different objects are two keys.

    Args:
        pairs: First entries: a mapping, or `(key, value)` pairs.

    Example:
        >>> seen = RefMap([([], 1), ([], 2)])
        >>> len(seen)
        2

    Source: Flax NNX `RefMap`.
    """

    __slots__ = ("entries",)

    def __init__(self, pairs: Mapping[Any, V] | Iterable[tuple[Any, V]] = ()) -> None:
        given = cast("Iterable[tuple[Any, V]]", pairs.items() if isinstance(pairs, Mapping) else pairs)
        self.entries: dict[int, tuple[Any, V]] = {id(key): (key, value) for key, value in given}

    def __getitem__(self, key: Any) -> V:
        try:
            return self.entries[id(key)][1]
        except KeyError:
            raise KeyError(f"this object of type {type(key).__name__} is not in the map") from None

    def __setitem__(self, key: Any, value: V) -> None:
        self.entries[id(key)] = (key, value)

    def __delitem__(self, key: Any) -> None:
        self[key]
        del self.entries[id(key)]

    def __contains__(self, key: object) -> bool:
        return id(key) in self.entries

    def __iter__(self) -> Iterator[Any]:
        return (key for key, _ in list(self.entries.values()))

    def __len__(self) -> int:
        return len(self.entries)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, RefMap):
            return NotImplemented
        theirs: dict[int, tuple[Any, Any]] = cast("RefMap[Any]", other).entries
        return self.entries.keys() == theirs.keys() and all(e[1] == theirs[key][1] for key, e in self.entries.items())

    __hash__ = None  # pyright: ignore[reportAssignmentType]  (mutable)

    def __repr__(self) -> str:
        inside = ", ".join(f"<{type(key).__name__}>: {value!r}" for key, value in self.entries.values())
        return f"RefMap({{{inside}}})"
