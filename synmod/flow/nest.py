"""Nests: lists, tuples, namedtuples and dicts of anything, to any depth, walked without recursion.

A leaf is whatever is not such a container. Frozen JSON is a leaf, because it is a value. Containers are rebuilt with
their own type, and only where something below them changed, so that untouched data passes as the same object.
"""

from __future__ import annotations

import copy
from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import Any, Final, cast

from synmod.data import JsonDataModel, SymbolicDataModel
from synmod.errors import CallError
from synmod.leaves.frozen import FrozenDict, FrozenList

NestPath = tuple[str | int, ...]
"""Where a leaf stands: the keys and indices that lead to it."""

LEAF, SEQUENCE, MAPPING = 0, 1, 2
_KINDS: Final[dict[type, int]] = {
    **dict.fromkeys(
        (JsonDataModel, SymbolicDataModel, FrozenDict, FrozenList, type(None), str, int, float, bool), LEAF
    ),
    **dict.fromkeys((list, tuple), SEQUENCE),
    **dict.fromkeys((dict, OrderedDict), MAPPING),
}
"""The kinds of the usual classes; others are judged each time, since a table would keep them alive."""


def kind_of(x: Any) -> int:
    """Tell LEAF, SEQUENCE or MAPPING; LEAF is 0."""
    cls = cast("type[Any]", type(x))
    kind = _KINDS.get(cls)
    return _kind_of_class(cls) if kind is None else kind


def is_leaf(x: Any) -> bool:
    """Tell whether `x` is a leaf, not a container that a nest is made of."""
    return not kind_of(x)


def leaves(nest: Any) -> list[Any]:
    """List the leaves of a nest.

    Args:
        nest: Anything; a leaf is a nest of itself.

    Returns:
        The leaves, depth first, containers by index or insertion order.

    Raises:
        CallError: A container holds itself.

    Example:
        >>> leaves({"a": 1, "b": [2, (3,)]})
        [1, 2, 3]

    Source: JAX `tree_leaves`.
    """
    if is_leaf(nest):
        return [nest]
    return [leaf for _, leaf in _walk(nest, with_path=False)]


def leaves_with_path(nest: Any) -> list[tuple[NestPath, Any]]:
    """List the leaves of a nest with the keys and indices that lead to each.

    Args:
        nest: Anything; the path of a bare leaf is empty.

    Returns:
        Pairs of path and leaf, in the order of `leaves`.

    Raises:
        CallError: A container holds itself.

    Example:
        >>> leaves_with_path({"docs": [1, 2]})
        [(('docs', 0), 1), (('docs', 1), 2)]

    Source: JAX `tree_flatten_with_path`.
    """
    if is_leaf(nest):
        return [((), nest)]
    return list(_walk(nest, with_path=True))


def map_leaves(fn: Callable[[Any], Any], nest: Any) -> Any:
    """Apply `fn` to every leaf.

    Args:
        fn: Takes a leaf, returns what takes its place.
        nest: Anything.

    Returns:
        The nest with the results in place of the leaves. A container below which every result *is* its leaf stays
        the same object.

    Raises:
        CallError: A container holds itself.

    Example:
        >>> map_leaves(lambda x: x + 1, {"a": 1, "b": [2, (3,)]})
        {'a': 2, 'b': [3, (4,)]}

    Source: JAX `tree_map`.
    """
    return fn(nest) if is_leaf(nest) else _mapped(fn, nest, anew=False)


def copied(nest: Any, fn: Callable[[Any], Any] | None = None) -> Any:
    """Copy every container and keep every leaf (or what `fn` gives for it): later changes of the containers pass by."""
    fn = fn or _same
    return fn(nest) if is_leaf(nest) else _mapped(fn, nest, anew=True)


def _mapped(fn: Callable[[Any], Any], nest: Any, *, anew: bool) -> Any:
    """Rebuild a container from the bottom; all containers if `anew`, else the changed ones."""
    frames = [_Frame(nest)]
    open_ids = {id(nest)}
    while True:
        frame = frames[-1]
        for child in frame.rest:
            if is_leaf(child):
                frame.done.append(fn(child))
                continue
            _enter(child, open_ids)
            frames.append(_Frame(child))
            break
        else:
            frames.pop()
            open_ids.discard(id(frame.container))
            built = frame.rebuilt(anew=anew)
            if not frames:
                return built
            frames[-1].done.append(built)


def pack(structure: Any, values: Iterator[Any]) -> Any:
    """Put `values` in place of the leaves of `structure`, one for one, in order."""
    return map_leaves(lambda _: next(values), structure)


def same_structure(a: Any, b: Any) -> bool:
    """Tell whether two nests have their leaves at the same places; a list and a tuple count as one."""
    return aligned(a, b) is not None


def aligned(pattern: Any, nest: Any) -> list[tuple[NestPath, Any, Any]] | None:
    """Pair the leaves of two nests.

    Args:
        pattern: The nest whose order counts.
        nest: The other nest; a list and a tuple count as one, dicts may differ in the order of their keys.

    Returns:
        (path, leaf of `pattern`, what stands there in `nest`) in the order of `pattern`; None where the structures
        differ.

    Raises:
        CallError: A container holds itself.

    Example:
        >>> aligned({"a": 1, "b": [2]}, {"b": (20,), "a": 10})
        [(('a',), 1, 10), (('b', 0), 2, 20)]

    Source: dm-tree `map_structure_up_to`.
    """
    if is_leaf(pattern):
        return [((), pattern, nest)] if is_leaf(nest) else None
    pairs: list[tuple[NestPath, Any, Any]] = []
    todo: list[tuple[NestPath, Any, Any]] = [((), pattern, nest)]
    leaves(pattern)  # finds a container that holds itself, before the loop below would run for ever
    while todo:
        path, left, right = todo.pop()
        if is_leaf(left):
            if not is_leaf(right):
                return None
            pairs.append((path, left, right))
            continue
        kind = kind_of(left)
        if kind != kind_of(right) or len(left) != len(right):
            return None
        keys = list(left) if kind == MAPPING else range(len(left))
        if kind == MAPPING and any(key not in right for key in keys):
            return None
        todo.extend(((*path, key), left[key], right[key]) for key in reversed(keys))
    return pairs


def _kind_of_class(cls: type[Any]) -> int:
    """Judge a class that is none of the usual ones; one that writes in a way of its own is a value, a leaf."""
    if issubclass(cls, tuple):
        return SEQUENCE if hasattr(cast("Any", cls), "_fields") else LEAF
    if issubclass(cls, list):
        return SEQUENCE if _writes_like(cls, list) else LEAF
    if issubclass(cls, dict):
        return MAPPING if _writes_like(cls, dict) or _writes_like(cls, OrderedDict) else LEAF
    return LEAF


def _writes_like(cls: Any, base: Any) -> bool:
    """Tell whether a class takes items as its base does, and so can be rebuilt."""
    return cls.__setitem__ is base.__setitem__


class _Frame:
    """One open container of an iterative walk: what is left to visit, what has been made."""

    __slots__ = ("container", "done", "rest")

    def __init__(self, container: Any) -> None:
        self.container = container
        self.rest: Iterator[Any] = iter(container.values() if kind_of(container) == MAPPING else container)
        self.done: list[Any] = []

    def rebuilt(self, *, anew: bool) -> Any:
        """Give the container itself if nothing changed (and nobody wants it anew), else one of its type."""
        old, new = self.container, self.done
        cls = cast("Any", type(old))
        if kind_of(old) == MAPPING:
            if not anew and all(map(_is, old.values(), new)):
                return old
            if cls is dict:
                return dict(zip(old, new, strict=True))
            changed = copy.copy(old)
            changed.update(zip(old, new, strict=True))
            return changed
        if not anew and all(map(_is, old, new)):
            return old
        if cls is list:
            return new
        if issubclass(cls, tuple):
            sequence: Any = tuple
            return sequence.__new__(cls, new)  # a namedtuple keeps its type, and its own `__new__` sees nothing twice
        changed = copy.copy(old)
        changed[:] = new
        return changed


def _same(x: Any) -> Any:
    """Identity, as a function."""
    return x


def _is(a: Any, b: Any) -> bool:
    """`is`, for `map`."""
    return a is b


def _enter(container: Any, open_ids: set[int]) -> None:
    """Note an open container; one that is open already holds itself."""
    if id(container) in open_ids:
        raise CallError(f"a {type(container).__name__} holds itself: data is a finite nest of lists, tuples and dicts.")
    open_ids.add(id(container))


def _walk(nest: Any, *, with_path: bool) -> Iterator[tuple[NestPath, Any]]:
    """Yield (path, leaf) of a container; paths are made only when asked for."""
    stack: list[tuple[NestPath, Any, Iterator[tuple[Any, Any]]]] = [((), nest, _items(nest))]
    open_ids = {id(nest)}
    while stack:
        path, container, rest = stack[-1]
        for key, child in rest:
            here = (*path, key) if with_path else ()
            if is_leaf(child):
                yield here, child
                continue
            _enter(child, open_ids)
            stack.append((here, child, _items(child)))
            break
        else:
            stack.pop()
            open_ids.discard(id(container))


def _items(container: Any) -> Iterator[tuple[Any, Any]]:
    """Give (key or index, child) of a container."""
    if kind_of(container) == MAPPING:
        return iter(container.items())
    return enumerate(cast("list[Any]", container))
