"""Nests: containers of anything, taken apart and put together again.

Floor: 2. Containers are list, tuple, dict, OrderedDict, defaultdict, deque, named tuples, dataclasses, and the classes
that users register with optree in the namespace `synmod`; everything else is a leaf, frozen JSON and subclasses of list
and dict included. Registered classes are taken apart by optree, which their registration has imported.
State: none. Speed: a leaf costs one lookup of its class.
Must never know: data models, modules.
"""

import dataclasses
import sys
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property, partial
from inspect import getattr_static
from types import MemberDescriptorType
from typing import Any, Final, NamedTuple, cast

from synmod.errors import CallError

from .frozen import FrozenDict, FrozenList

NAMESPACE: Final = "synmod"
"""The namespace in which users register container classes with optree."""
MAX_DEPTH: Final = 100
"""How deep containers may nest."""
DICTS: Final = (dict, OrderedDict, defaultdict)

LEAF, SEQUENCE, MAPPING, OBJECT = 0, 1, 2, 3
_KINDS: Final[dict[type[Any], int]] = {
    **dict.fromkeys((type(None), str, int, float, bool, FrozenDict, FrozenList), LEAF),
    **dict.fromkeys((list, tuple, deque), SEQUENCE),
    **dict.fromkeys(DICTS, MAPPING),
}
_UNSET: Final = object()

Pairs = list[tuple[Any, Any]]
"""The `(step, child)` pairs of a container."""

NestPath = tuple[str | int, ...]
"""The place of a leaf: the keys, indices and field names that lead to it."""


class NestParts(NamedTuple):
    """One container taken apart: the steps to its children, the children, and a function that takes new children."""

    steps: Iterable[Any]
    children: Sequence[Any]
    rebuild: Callable[[list[Any]], Any]


def kind_of(x: Any) -> int:
    """Return LEAF (0), SEQUENCE, MAPPING, or OBJECT for a dataclass or an instance of a registered class."""
    cls = cast("type[Any]", type(x))
    kind = _KINDS.get(cls)
    if kind is not None:
        return kind
    if isinstance(x, tuple) and hasattr(cls, "_fields"):
        return SEQUENCE
    return OBJECT if dataclasses.is_dataclass(cls) or is_registered_container(cls) else LEAF


def is_leaf(x: Any) -> bool:
    """Whether `x` is a leaf, not a container."""
    return not kind_of(x)


def flatten_one_level(container: Any) -> NestParts:
    """Take one container apart, one level.

    Args:
        container: Anything that is not a leaf.

    Returns:
        Its steps (keys in insertion order, indices, field names), its children, and a function that makes a container
        with the same class, keys and settings from new children. No constructor of a dataclass or named tuple runs.

    Example:
        >>> parts = flatten_one_level({"b": 1, "a": 2})
        >>> list(parts.steps), parts.children, parts.rebuild([3, 4])
        (['b', 'a'], [1, 2], {'b': 3, 'a': 4})

    Source: optree `tree_flatten_one_level`.
    """
    cls = cast("type[Any]", type(container))
    if cls is list:
        return NestParts(range(len(container)), container, list)
    if issubclass(cls, tuple):
        return NestParts(range(len(container)), container, partial(cast("Any", tuple).__new__, cls))
    pairs, rest = parts_of(container)
    steps = [step for step, _ in pairs]
    return NestParts(steps, [child for _, child in pairs], partial(unflatten_one_level, cls, steps, rest))


def leaves(nest: Any) -> list[Any]:
    """List the leaves of a nest.

    Args:
        nest: Anything; a leaf is a nest of itself.

    Returns:
        The leaves, depth first, containers by index, field or insertion order.

    Raises:
        CallError: Containers nest more than 100 deep, or one holds itself.

    Example:
        >>> leaves({"b": 1, "a": [2, (3,)]})
        [1, 2, 3]

    Source: optree `tree_leaves`.
    """
    return [nest] if is_leaf(nest) else [leaf for _, leaf in _walk((), nest)]


def leaves_with_path(nest: Any) -> list[tuple[NestPath, Any]]:
    """List the leaves of a nest with the steps that lead to each; the path of a bare leaf is empty.

    Raises:
        CallError: Containers nest more than 100 deep, or one holds itself.

    Example:
        >>> leaves_with_path({"docs": [1, 2]})
        [(('docs', 0), 1), (('docs', 1), 2)]

    Source: optree `tree_flatten_with_path`.
    """
    return list(_walk((), nest))


def _walk(path: NestPath, nest: Any) -> Iterator[tuple[NestPath, Any]]:
    """Yield path and leaf."""
    if is_leaf(nest):
        yield path, nest
        return
    _check_depth(len(path))
    parts = flatten_one_level(nest)
    for step, child in zip(parts.steps, parts.children, strict=True):
        yield from _walk((*path, step), child)


def map_leaves(fn: Callable[[Any], Any], nest: Any) -> Any:
    """Apply `fn` to every leaf.

    Args:
        fn: Takes a leaf, returns its replacement.
        nest: Anything.

    Returns:
        The nest with the results in place of the leaves. A container below which every result *is* its leaf stays
        the same object.

    Raises:
        CallError: Containers nest more than 100 deep, or one holds itself.

    Example:
        >>> map_leaves(lambda x: x + 1, {"a": 1, "b": [2, (3,)]})
        {'a': 2, 'b': [3, (4,)]}

    Source: optree `tree_map`.
    """
    return fn(nest) if is_leaf(nest) else _map(fn, nest, 0, copy=False)


def copy_nest(nest: Any, fn: Callable[[Any], Any] = lambda leaf: leaf) -> Any:
    """Copy every sequence and mapping; keep every leaf, or what `fn` returns for it.

    A later change of the containers does not affect the copy. Dataclasses and registered containers are rebuilt only if
    a leaf in them changed: a dataclass may hold more than its fields.
    """
    return fn(nest) if is_leaf(nest) else _map(fn, nest, 0, copy=True)


def _map(fn: Callable[[Any], Any], nest: Any, depth: int, *, copy: bool) -> Any:
    """Rebuild containers from the bottom up: those that changed, and with `copy` every sequence and mapping."""
    _check_depth(depth)
    parts = flatten_one_level(nest)
    new = [fn(child) if is_leaf(child) else _map(fn, child, depth + 1, copy=copy) for child in parts.children]
    if (not copy or kind_of(nest) == OBJECT) and all(a is b for a, b in zip(parts.children, new, strict=True)):
        return nest
    return parts.rebuild(new)


def pack(structure: Any, values: Iterator[Any]) -> Any:
    """Return `structure` with `values` in place of its leaves, one for one, in order."""
    return map_leaves(lambda _: next(values), structure)


def align_nests(
    pattern: Any, nest: Any, path: NestPath = (), *, holes: bool = False
) -> list[tuple[NestPath, Any, Any]] | None:
    """Pair the leaves of two nests.

    Args:
        pattern: The nest that decides the order.
        nest: The other nest; a list and a tuple count as one, dicts may differ in the order of their keys.
        path: The path of both.
        holes: Whether None on either side stands for anything, and is left out.

    Returns:
        (path, leaf of `pattern`, leaf of `nest`) in the order of `pattern`; None where the structures differ.

    Raises:
        CallError: Containers nest more than 100 deep, or one holds itself.

    Example:
        >>> align_nests({"a": 1, "b": [2]}, {"b": (20,), "a": 10})
        [(('a',), 1, 10), (('b', 0), 2, 20)]

    Source: dm-tree `map_structure_up_to`.
    """
    if holes and (pattern is None or nest is None):
        return []
    kind = kind_of(pattern)
    if kind != kind_of(nest) or (kind == OBJECT and type(pattern) is not type(nest)):
        return None
    if kind == LEAF:
        return [(path, pattern, nest)]
    _check_depth(len(path))
    steps, children, _ = flatten_one_level(pattern)
    counterpart = flatten_one_level(nest)
    by_step = dict(zip(counterpart.steps, counterpart.children, strict=True))
    pairs: list[tuple[NestPath, Any, Any]] = []
    if len(by_step) != len(children):
        return None
    for step, child in zip(steps, children, strict=True):
        below = align_nests(child, by_step[step], (*path, step), holes=holes) if step in by_step else None
        if below is None:
            return None
        pairs += below
    return pairs


def _check_depth(depth: int) -> None:
    """Raise CallError for containers that nest too deep."""
    if depth >= MAX_DEPTH:
        raise CallError(
            f"containers nest more than {MAX_DEPTH} deep, or one holds itself: data is a finite nest of lists, tuples "
            "and dicts."
        )


# -- one level ---------------------------------------------------------------------------------------------------------


def is_registered_container(cls: type[Any]) -> bool:
    """Whether a class is a container because a user registered it with optree."""
    return _registry_entry(cls) is not None


def _registry_entry(cls: type[Any]) -> Any:
    """Return the entry of a class in optree's registry, None if the class has none; optree is not imported for that."""
    optree: Any = sys.modules.get("optree")
    entry = None if optree is None else optree.register_pytree_node.get(cls, namespace=NAMESPACE)
    return entry if entry is not None and entry.namespace == NAMESPACE else None


def is_namedtuple(cls: type[Any]) -> bool:
    """Whether a class is a tuple with named fields."""
    return isinstance(getattr(cls, "_fields", None), tuple) and issubclass(cls, tuple)


def parts_of(x: Any) -> tuple[Pairs, Any]:
    """Return the `(step, child)` pairs of a container, and its other settings; no property of a dataclass runs."""
    cls = cast("type[Any]", type(x))
    if cls is list or cls is tuple:  # hot
        return [*enumerate(x)], None
    if cls in DICTS:
        return list(x.items()), getattr(x, "default_factory", None)
    if cls is deque:
        return [*enumerate(x)], x.maxlen
    if is_registered_container(cls):
        import optree

        children, rest, steps, _ = cast("Any", optree).tree_flatten_one_level(x, none_is_leaf=True, namespace=NAMESPACE)
        return list(zip(steps, children, strict=True)), rest
    if is_namedtuple(cls):
        items = tuple[Any, ...].__iter__(x)  # even if its class overrides `__iter__`
        return list(zip(x._fields, items, strict=True)), None
    attributes: dict[str, Any] = getattr(x, "__dict__", {})
    names = [field.name for field in dataclasses.fields(x)]
    fields = ((name, attributes[name] if name in attributes else _slot(x, name)) for name in names)
    rest = {name: value for name, value in attributes.items() if name not in names and not _is_cached(cls, name)}
    return [(name, value) for name, value in fields if value is not _UNSET], rest or None


def unflatten_one_level(cls: Any, steps: Iterable[Any], rest: Any, children: Sequence[Any]) -> Any:
    """Make a container from the result of `parts_of`; no constructor of a dataclass or named tuple runs."""
    if cls is list:
        return list(children)
    if cls is deque:
        return deque(children, rest)
    if cls in DICTS:
        make: Any = partial(defaultdict[Any, Any], rest) if cls is defaultdict else cls
        return make(zip(steps, children, strict=True))
    entry = _registry_entry(cls)
    if entry is not None:
        return entry.unflatten_func(rest, children)
    if issubclass(cls, tuple):
        return cast("Any", tuple).__new__(cls, children)
    new: Any = object.__new__(cls)
    for name, value in (*cast("dict[str, Any]", rest or {}).items(), *zip(steps, children, strict=True)):
        object.__setattr__(new, name, value)
    return new


def _slot(x: Any, name: str) -> Any:
    """Return the value of a declared slot, `_UNSET` where it has none."""
    is_slot = isinstance(getattr_static(cast("Any", type(x)), name, None), MemberDescriptorType)
    return getattr(x, name, _UNSET) if is_slot else _UNSET


def _is_cached(cls: type[Any], name: str) -> bool:
    """Whether an attribute is the stored result of a `functools.cached_property`."""
    return isinstance(getattr_static(cls, name, None), cached_property)
