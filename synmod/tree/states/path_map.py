"""A frozen, ordered mapping by path, with sub-maps: what State and the live `variables` have in common."""

from __future__ import annotations

from collections.abc import Callable, ItemsView, Iterable, Iterator, KeysView, Mapping, ValuesView
from typing import Any, Generic, Self, TypeVar

from synmod.errors import FieldError, StateError
from synmod.leaves.names import KeyPath, did_you_mean, parse_path, path_str

T = TypeVar("T")


def check_apart(paths: Iterable[KeyPath]) -> None:
    """Refuse leaves that no program can have at once.

    Raises:
        StateError: Paths are written alike, or lie below the path of another leaf; lists all of them.
    """
    faults: list[str] = []
    above: KeyPath | None = None
    above_texts: tuple[str, ...] = ()
    for path in sorted(paths, key=_texts):
        texts = _texts(path)
        if above is None or texts[: len(above_texts)] != above_texts:
            above, above_texts = path, texts
        elif texts == above_texts:
            faults.append(f"{above!r} and {path!r} are both written {path_str(path)!r}")
        else:
            faults.append(f"{path_str(path)!r} lies below the leaf {path_str(above)!r}")
    if faults:
        raise StateError(f"{'; '.join(faults)}.")


def _texts(path: KeyPath) -> tuple[str, ...]:
    return tuple(map(str, path))


class PathMap(Generic[T]):
    """Leaves by path, in definition order."""

    __slots__ = ("__weakref__", "_by_text", "_leaves")

    _leaves: Mapping[KeyPath, T]
    _by_text: dict[str, T] | None

    @classmethod
    def _of(cls, leaves: Mapping[KeyPath, T]) -> Self:
        """Make one of leaves that are known to fit."""
        new = cls.__new__(cls)
        object.__setattr__(new, "_leaves", leaves)
        object.__setattr__(new, "_by_text", None)
        return new

    def flat(self) -> dict[KeyPath, T]:
        """Give `{path: leaf}` as a plain dict."""
        return dict(self._leaves)

    def keys(self) -> KeysView[KeyPath]:
        """Give the paths, in definition order."""
        return self._leaves.keys()

    def values(self) -> ValuesView[T]:
        """Give the leaves, in definition order."""
        return self._leaves.values()

    def items(self) -> ItemsView[KeyPath, T]:
        """Give `(path, leaf)` pairs, in definition order."""
        return self._leaves.items()

    def __iter__(self) -> Iterator[KeyPath]:
        return iter(self._leaves)

    def __len__(self) -> int:
        return len(self._leaves)

    def __getitem__(self, path: KeyPath | str | int) -> Any:
        found = self._find(path)
        if found is None:
            known = [path_str(each) for each in self._leaves]
            text = path_str(path) if isinstance(path, tuple) else str(path)
            raise FieldError(f"There is nothing at {path!r:.200}.{did_you_mean(text, known)}")
        return found

    def __contains__(self, path: object) -> bool:
        return isinstance(path, tuple | str | int) and self._find(path) is not None  # pyright: ignore[reportUnknownArgumentType]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name in PathMap.__slots__:
            raise AttributeError(name)
        found = self._find((name,))
        if found is None:
            raise FieldError(f"{type(self).__name__} has no leaf and no method {name!r}.")
        return found

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{type(self).__name__} is frozen: {name!r} cannot be set. Make a new one with replace().")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"{type(self).__name__} is frozen: {name!r} cannot be deleted.")

    def __repr__(self) -> str:
        inside = ", ".join(f"{path_str(path)!r}: {leaf!r}" for path, leaf in list(self._leaves.items())[:20])
        more = f", ... {len(self) - 20} more" if len(self) > 20 else ""
        return f"{type(self).__name__}({{{inside}{more}}})"

    def _find(self, path: KeyPath | str | int) -> Any:
        """Give the leaf or the sub-map at a path, None where there is neither."""
        if isinstance(path, str):
            found = self._at_text(path, parse_path(path))
            return self._at_text(path_str((path,)), (path,)) if found is None else found  # one raw key
        steps = path if isinstance(path, tuple) else (path,)
        if any(type(step) not in (str, int) for step in steps):
            return None
        leaf = self._leaves.get(steps)
        return leaf if leaf is not None else self._below(len(steps), lambda path: path == steps)

    def _at_text(self, text: str, steps: tuple[str, ...]) -> Any:
        """Look up a path text."""
        if self._by_text is None:
            object.__setattr__(self, "_by_text", {path_str(path): leaf for path, leaf in self._leaves.items()})
        assert self._by_text is not None
        leaf = self._by_text.get(text)
        return leaf if leaf is not None else self._below(len(steps), lambda path: _texts(path) == steps)

    def _below(self, depth: int, fits: Callable[[KeyPath], bool]) -> Self | None:
        """Give the leaves whose first steps fit, with the rest of their paths."""
        if not depth:
            return self
        below = {path[depth:]: leaf for path, leaf in self._leaves.items() if len(path) > depth and fits(path[:depth])}
        return type(self)._of(below) if below else None
