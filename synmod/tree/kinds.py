"""What the walk takes an object for, by its type: node, Variable, container, or static."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Protocol

from synmod.errors import GraphError
from synmod.leaves.paths import path_str
from synmod.tree.containers import DICTS, SEQUENCES, is_tree_type, numbered, take_apart
from synmod.tree.node_types import is_node_type
from synmod.tree.variable import Variable

if TYPE_CHECKING:
    from synmod.leaves.paths import KeyPath

STATIC: Final = 0
VARIABLE: Final = 1
NODE: Final = 2
SEQUENCE: Final = 3
DICT: Final = 4
TREE: Final = 5
SET: Final = 6

Pair = tuple[Any, Any]


class Located(Protocol):
    """Something that knows its path."""

    @property
    def path(self) -> KeyPath:
        """The steps from the root."""
        ...


class Kinds(dict[type[Any], int]):
    """Kinds by type, found out once for each type that one walk meets."""

    __slots__ = ()

    def __missing__(self, cls: type[Any]) -> int:
        kind = self[cls] = kind_of_type(cls)
        return kind


KNOWN: Final = {
    **dict.fromkeys((str, int, float, bool, type(None)), STATIC),
    **dict.fromkeys(SEQUENCES, SEQUENCE),
    **dict.fromkeys(DICTS, DICT),
}
"""Kinds that no registration can change."""


def kind_of_type(cls: type[Any]) -> int:
    """Tell the kind of the instances of a class."""
    known = KNOWN.get(cls)
    if known is not None:
        return known
    if issubclass(cls, Variable):
        return VARIABLE
    if is_node_type(cls):
        return NODE
    if issubclass(cls, set | frozenset):
        return SET
    return TREE if is_tree_type(cls) else STATIC


def kind_of(x: object) -> int:
    """Tell the kind of one object."""
    return kind_of_type(type(x))


def open_container(x: Any, kind: int, kinds: Kinds, visit: Located) -> tuple[list[Pair], Any] | None:
    """Take a container apart, one level.

    Returns:
        Its pairs and what else makes it up; None where it is a static after all: a set, or a dict with keys that are no
        steps, of plain values.

    Raises:
        GraphError: A Node or Variable is in a set, or below a dict key that cannot be a step. Names the path.
    """
    if kind == SEQUENCE:
        return numbered(x), None
    if kind == SET:
        if holds_node(x, kinds):
            raise GraphError(
                f"{_at(visit)}: a {type(x).__name__} holds a node or Variable, and a set has no order and no keys: "
                "use a list or a dict."
            )
        return None
    if kind == DICT:
        pairs, aux = list(x.items()), getattr(x, "default_factory", None)
    else:
        pairs, aux = take_apart(x)
    bad = _bad_key(pairs)
    if bad is not None:
        key, why, is_step = bad
        if holds_node(x, kinds):
            raise GraphError(
                f"{_at(visit)}: the key {key!r:.200} {why}, and a node or Variable is below: "
                "keys on the way to one must be str (not empty) or int, and differ as text."
            )
        if not is_step:
            return None
    return pairs, aux


def _bad_key(pairs: list[Pair]) -> tuple[Any, str, bool] | None:
    """Find a key that cannot be a step of a path; the last item tells whether plain values may stand there."""
    has_int = False
    doubtful: tuple[Any, str, bool] | None = None
    for key, _ in pairs:
        if type(key) is str:
            if not key:
                doubtful = key, "is empty", True
        elif type(key) is int:
            has_int = True
        else:
            return key, f"is of type {type(key).__name__}", False
    if has_int and doubtful is None:
        texts: set[str] = set()
        for key, _ in pairs:
            if str(key) in texts:
                return key, "looks like another key when written as text", True
            texts.add(str(key))
    return doubtful


def holds_node(x: Any, kinds: Kinds) -> bool:
    """Tell whether a Node or Variable is in a container, at any depth of containers."""
    pending, seen = [x], {id(x)}
    while pending:
        container = pending.pop()
        for part in _parts(container, kinds[type(container)]):
            kind = kinds[type(part)]
            if kind in (NODE, VARIABLE):
                return True
            if kind != STATIC and id(part) not in seen:
                seen.add(id(part))
                pending.append(part)
    return False


def _parts(container: Any, kind: int) -> list[Any]:
    if kind == DICT:
        return [*container.keys(), *container.values()]
    return [part for _, part in take_apart(container)[0]] if kind == TREE else list(container)


def _at(visit: Located) -> str:
    return f"At {path_str(visit.path)!r}" if visit.path else "At the root"
