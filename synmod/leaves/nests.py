"""Nests: containers of anything, taken apart and put together again.

Floor: 2. Containers are list, tuple, dict, OrderedDict, defaultdict, deque, named tuples, dataclasses, and the classes
that users register with optree in the namespace `synmod`; everything else is a leaf, frozen JSON and subclasses of list
and dict included. The common ones are read here, the others by optree, which is imported when the first one is met.
State: none. Speed: a leaf costs one look at its class.
Must never know: data models, modules.
"""

from __future__ import annotations

import dataclasses
import operator
import sys
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property, partial
from typing import Any, Final, NamedTuple, cast

from synmod.errors import CallError
from synmod.leaves.frozen import FrozenDict, FrozenList

NAMESPACE: Final = "synmod"
"""Where optree keeps the container classes of users."""
MAX_DEPTH: Final = 100
"""How deep containers may stand inside one another."""

LEAF, SEQUENCE, MAPPING, OBJECT = 0, 1, 2, 3
_KINDS: Final[dict[type[Any], int]] = {
    **dict.fromkeys((type(None), str, int, float, bool, FrozenDict, FrozenList), LEAF),
    **dict.fromkeys((list, tuple, deque), SEQUENCE),
    **dict.fromkeys((dict, OrderedDict, defaultdict), MAPPING),
}

NestPath = tuple[str | int, ...]
"""Where a leaf stands: the keys, indices and field names that lead to it."""


class Parts(NamedTuple):
    """One container taken apart: what leads to its children, the children, and what makes one of its kind of others."""

    steps: Iterable[Any]
    children: Sequence[Any]
    rebuild: Callable[[list[Any]], Any]


def kind_of(x: Any) -> int:
    """Return LEAF (0), SEQUENCE, MAPPING, or OBJECT for a dataclass and for what a user has registered."""
    cls = cast("type[Any]", type(x))
    kind = _KINDS.get(cls)
    if kind is not None:
        return kind
    if isinstance(x, tuple) and hasattr(cls, "_fields"):
        return SEQUENCE
    if dataclasses.is_dataclass(cls):
        return OBJECT
    if "optree" not in sys.modules:  # so no class is registered
        return LEAF
    return LEAF if _optree().tree_is_leaf(x, none_is_leaf=True, namespace=NAMESPACE) else OBJECT


def is_leaf(x: Any) -> bool:
    """Whether `x` is not a container that a nest is made of."""
    return not kind_of(x)


def take_apart(container: Any) -> Parts:
    """Take one container apart, one level.

    Args:
        container: Anything that is not a leaf.

    Returns:
        Its steps (keys in insertion order, indices, field names), its children, and a function that makes a container
        of the same class, keys and settings of other children. No constructor of a dataclass or named tuple runs.

    Example:
        >>> parts = take_apart({"b": 1, "a": 2})
        >>> list(parts.steps), parts.children, parts.rebuild([3, 4])
        (['b', 'a'], [1, 2], {'b': 3, 'a': 4})

    Source: optree `tree_flatten_one_level`.
    """
    cls = cast("type[Any]", type(container))
    if cls is list or cls is tuple:
        return Parts(range(len(container)), container, cls)
    if cls is dict:
        return Parts(list(container), list(container.values()), partial(_rebuilt_dict, dict, list(container)))
    if cls is defaultdict:  # optree would sort the keys
        make = partial(defaultdict[Any, Any], container.default_factory)
        return Parts(list(container), list(container.values()), partial(_rebuilt_dict, make, list(container)))
    if dataclasses.is_dataclass(cls) and not _is_registered(cls):
        return _parts_of_dataclass(container, cls)
    children, metadata, steps, unflatten = _optree().tree_flatten_one_level(
        container, none_is_leaf=True, namespace=NAMESPACE
    )
    return Parts(steps, children, partial(unflatten, metadata))


def _rebuilt_dict(make: Callable[..., Any], keys: list[Any], children: list[Any]) -> Any:
    """Make a dict of its keys and other children."""
    return make(zip(keys, children, strict=True))


def leaves(nest: Any) -> list[Any]:
    """List the leaves of a nest.

    Args:
        nest: Anything; a leaf is a nest of itself.

    Returns:
        The leaves, depth first, containers by index, field or insertion order.

    Raises:
        CallError: Containers stand more than 100 deep, or one holds itself.

    Example:
        >>> leaves({"b": 1, "a": [2, (3,)]})
        [1, 2, 3]

    Source: optree `tree_leaves`.
    """
    return [nest] if is_leaf(nest) else [leaf for _, leaf in _walked((), nest)]


def leaves_with_path(nest: Any) -> list[tuple[NestPath, Any]]:
    """List the leaves of a nest with the steps that lead to each; the path of a bare leaf is empty.

    Raises:
        CallError: Containers stand more than 100 deep, or one holds itself.

    Example:
        >>> leaves_with_path({"docs": [1, 2]})
        [(('docs', 0), 1), (('docs', 1), 2)]

    Source: optree `tree_flatten_with_path`.
    """
    return list(_walked((), nest))


def _walked(path: NestPath, nest: Any) -> Iterator[tuple[NestPath, Any]]:
    """Yield path and leaf."""
    if is_leaf(nest):
        yield path, nest
        return
    _check_depth(len(path))
    parts = take_apart(nest)
    for step, child in zip(parts.steps, parts.children, strict=True):
        yield from _walked((*path, step), child)


def map_leaves(fn: Callable[[Any], Any], nest: Any) -> Any:
    """Apply `fn` to every leaf.

    Args:
        fn: Takes a leaf, returns what takes its place.
        nest: Anything.

    Returns:
        The nest with the results in place of the leaves. A container below which every result *is* its leaf stays
        the same object.

    Raises:
        CallError: Containers stand more than 100 deep, or one holds itself.

    Example:
        >>> map_leaves(lambda x: x + 1, {"a": 1, "b": [2, (3,)]})
        {'a': 2, 'b': [3, (4,)]}

    Source: optree `tree_map`.
    """
    return fn(nest) if is_leaf(nest) else _mapped(fn, nest, 0, anew=False)


def copied(nest: Any, fn: Callable[[Any], Any] = lambda leaf: leaf) -> Any:
    """Copy every sequence and mapping, and keep every other object (or what `fn` returns for a leaf).

    A later change of the containers does not reach the copy. Objects of users are made anew only where a leaf of them
    changed: a dataclass may hold more than its fields.
    """
    return fn(nest) if is_leaf(nest) else _mapped(fn, nest, 0, anew=True)


def _mapped(fn: Callable[[Any], Any], nest: Any, depth: int, *, anew: bool) -> Any:
    """Make a container anew from the bottom; only the changed ones unless `anew`."""
    _check_depth(depth)
    parts = take_apart(nest)
    new = [fn(child) if is_leaf(child) else _mapped(fn, child, depth + 1, anew=anew) for child in parts.children]
    if (not anew or kind_of(nest) == OBJECT) and all(map(operator.is_, parts.children, new)):
        return nest
    return parts.rebuild(new)


def pack(structure: Any, values: Iterator[Any]) -> Any:
    """Return `structure` with `values` in place of its leaves, one for one, in order."""
    return map_leaves(lambda _: next(values), structure)


def aligned(pattern: Any, nest: Any, path: NestPath = ()) -> list[tuple[NestPath, Any, Any]] | None:
    """Pair the leaves of two nests.

    Args:
        pattern: The nest whose order counts.
        nest: The other nest; a list and a tuple count as one, dicts may differ in the order of their keys.
        path: Where both stand.

    Returns:
        (path, leaf of `pattern`, what stands there in `nest`) in the order of `pattern`; None where the structures
        differ.

    Raises:
        CallError: Containers stand more than 100 deep, or one holds itself.

    Example:
        >>> aligned({"a": 1, "b": [2]}, {"b": (20,), "a": 10})
        [(('a',), 1, 10), (('b', 0), 2, 20)]

    Source: dm-tree `map_structure_up_to`.
    """
    kind = kind_of(pattern)
    if kind != kind_of(nest) or (kind == OBJECT and type(pattern) is not type(nest)):
        return None
    if kind == LEAF:
        return [(path, pattern, nest)]
    _check_depth(len(path))
    steps, children, _ = take_apart(pattern)
    others = take_apart(nest)
    there = dict(zip(others.steps, others.children, strict=True))
    pairs: list[tuple[NestPath, Any, Any]] = []
    if len(there) != len(children):
        return None
    for step, child in zip(steps, children, strict=True):
        below = aligned(child, there[step], (*path, step)) if step in there else None
        if below is None:
            return None
        pairs += below
    return pairs


def _check_depth(depth: int) -> None:
    """Raise CallError for containers that stand too deep."""
    if depth >= MAX_DEPTH:
        raise CallError(
            f"containers stand more than {MAX_DEPTH} deep, or one holds itself: data is a finite nest of lists, tuples "
            "and dicts."
        )


# -- optree ----------------------------------------------------------------------------------------------------------

_UNSET: Final = object()


def _optree() -> Any:
    """Import optree, whose stubs leave the registry half unknown."""
    import optree

    return optree


def _is_registered(cls: type[Any]) -> bool:
    """Whether a user has registered the class; a class can only be registered by who has imported optree."""
    return "optree" in sys.modules and _optree().register_pytree_node.get(cls, namespace=NAMESPACE) is not None


def _parts_of_dataclass(x: Any, cls: type[Any]) -> Parts:
    """Take a dataclass apart: the fields that are set; its other attributes go along."""
    names = [field.name for field in dataclasses.fields(cls)]
    found = {name: value for name in names if (value := getattr(x, name, _UNSET)) is not _UNSET}
    attributes = {key: value for key, value in getattr(x, "__dict__", {}).items() if key not in names}
    others = [(key, value) for key, value in attributes.items() if not _is_cached(cls, key)]

    def rebuilt(children: list[Any]) -> Any:
        new: Any = object.__new__(cls)
        for name, value in (*others, *zip(found, children, strict=True)):
            object.__setattr__(new, name, value)
        return new

    return Parts(list(found), list(found.values()), rebuilt)


def _is_cached(cls: type[Any], name: str) -> bool:
    """Whether an attribute is only what `functools.cached_property` left there."""
    return any(isinstance(vars(base).get(name), cached_property) for base in cls.__mro__)
