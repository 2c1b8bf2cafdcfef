"""What the walk takes an object for, by its type: node, Variable, container, or static."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Protocol

from synmod.errors import GraphError
from synmod.tree.variable.containers import DICTS, SEQUENCES, is_tree_type, numbered, take_apart
from synmod.tree.variable.variable import Variable
from synmod.tree.walking.node_types import is_node_type
from synmod.tree.walking.steps import bad_key, refuse_key, where

if TYPE_CHECKING:
    from synmod.leaves.names import KeyPath

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
        GraphError: A Node or Variable is in a set, or below a key that cannot be a step. Names the path.
    """
    if kind == SEQUENCE:
        return numbered(x), None
    if kind == SET:
        if holds_node(x, kinds):
            raise GraphError(
                f"{where(visit.path)}: a {type(x).__name__} holds a node or Variable, and a set has no order and no "
                "keys: use a list or a dict."
            )
        return None
    if kind == DICT:
        pairs, aux = list(x.items()), getattr(x, "default_factory", None)
    else:
        pairs, aux = take_apart(x)
    bad = bad_key(pairs, may_repeat=kind == TREE)
    if bad is not None:
        if holds_node(x, kinds):
            refuse_key(bad, visit.path)
        if not bad.is_step:
            return None
    return pairs, aux


def check_keys(pairs: list[Pair], kinds: Kinds, visit: Located) -> None:
    """Check the keys of a node of a user's own type, which may be anything.

    Raises:
        GraphError: A Node or Variable is among the children, and a key cannot be a step. Names the path.
    """
    bad = bad_key(pairs, may_repeat=True)
    if bad is not None and holds_node([child for _, child in pairs], kinds):
        refuse_key(bad, visit.path)


def holds_node(x: Any, kinds: Kinds, wanted: tuple[int, ...] = (NODE, VARIABLE)) -> bool:
    """Tell whether a Node or Variable, or what else is wanted, is in a container, at any depth of containers."""
    pending, seen = [x], {id(x): x}  # which are held: a tree type may make its parts when it is taken apart
    while pending:
        container = pending.pop()
        for part in _parts(container, kinds[type(container)]):
            kind = kinds[type(part)]
            if kind in wanted:
                return True
            if kind not in (STATIC, NODE, VARIABLE) and id(part) not in seen:
                seen[id(part)] = part
                pending.append(part)
    return False


def _parts(container: Any, kind: int) -> list[Any]:
    if kind == DICT:
        return [*container.keys(), *container.values()]
    return [part for _, part in take_apart(container)[0]] if kind == TREE else list(container)
