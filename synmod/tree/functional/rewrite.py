"""Merging in place: live objects become what a graph says and keep their identity; all of them or none."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from synmod.errors import GraphError
from synmod.leaves.frozen import json_equal
from synmod.scope import notify_assign
from synmod.tree.graphs.encoding import static_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from synmod.leaves.frozen import FrozenDict, Json
    from synmod.tree.graphs.defs import VariableDef
    from synmod.tree.variable.variable import Variable
    from synmod.tree.walking.node_types import Key, NodeImpl


class VariableRewrite:
    """One Variable to come: its class is asked when this is made, writing it cannot fail."""

    __slots__ = ("_about", "_definition", "_old", "_told", "_value", "_variable")

    def __init__(self, variable: Variable, value: Json, about: FrozenDict, definition: VariableDef) -> None:
        self._variable = variable
        self._old = variable.value
        self._value = self._old
        if not json_equal(self._old, value):
            self._value = variable._seen_by_class(self._old, value, definition.schema)
        self._about = about
        self._definition = definition
        self._told: int | None = None

    def write(self) -> None:
        """Become what the definition says; an equal value is not assigned."""
        variable = self._variable
        with variable._lock:
            variable._schema = self._definition.schema
            variable._about = self._about
            variable._take_extra(self._definition.extra)
            if self._value is not self._old:
                is_told, version = variable._put(self._value)
                self._told = version if is_told else None

    def tell(self) -> None:
        """Tell the hooks of a new value, when all is written."""
        if self._told is not None:
            notify_assign(self._variable, self._variable.name or "", self._old, self._value, self._told)


class NodeRewrite:
    """One node to come, and what it was."""

    __slots__ = ("_before", "_impl", "_metadata", "_node", "_pairs")

    def __init__(self, node: Any, impl: NodeImpl, metadata: Any, pairs: list[tuple[Key, Any]]) -> None:
        self._node = node
        self._impl = impl
        self._metadata = metadata
        self._pairs = pairs
        self._before = impl.metadata_of(node), impl.pairs(node)

    @property
    def cannot_fail(self) -> bool:
        """Whether its rules are ours; those that may fail are written first."""
        return self._impl.rewrite is not None

    def write(self) -> None:
        """Become what the definition says."""
        self._become(self._metadata, self._pairs, *self._before)

    def take_back(self) -> None:
        """Become again what it was."""
        self._become(*self._before, self._metadata, self._pairs)

    def _become(self, metadata: Any, pairs: list[tuple[Key, Any]], old: Any, old_pairs: list[tuple[Key, Any]]) -> None:
        node, impl = self._node, self._impl
        if impl.rewrite is not None:
            impl.rewrite(node, metadata, pairs)
            return
        empty_node(node, impl, [key for key, _ in old_pairs])
        if not _same(metadata, old):
            _take_over(node, impl.make(metadata))
        impl.fill(node, pairs)


def rewrite_all(nodes: Sequence[NodeRewrite], variables: Sequence[VariableRewrite]) -> None:
    """Write them all; where a node refuses what it is given, those before it become again what they were."""
    with ExitStack() as taking_back:  # goes on where one refuses even that
        for node in sorted(nodes, key=lambda node: node.cannot_fail):
            taking_back.callback(node.take_back)
            node.write()
        taking_back.pop_all()
    for variable in variables:
        variable.write()
    for variable in variables:
        variable.tell()


def empty_node(node: Any, impl: NodeImpl, keys: Sequence[Key]) -> None:
    """Take everything out of a node."""
    if impl.clear is not None:
        impl.clear(node)
        return
    left = {key for key, _ in impl.pairs(node)}
    for key in reversed(keys):  # the last first, so that the numbers of what is left stay
        if key in left:
            impl.pop_key(node, key)


def _same(metadata: Any, other: Any) -> bool:
    text = static_text(metadata)
    return metadata is other or (text is not None and text == static_text(other))


def _take_over(node: Any, fresh: Any) -> None:
    """Take over what a node of its class, made of other metadata, is."""
    mine: dict[str, Any] | None = getattr(node, "__dict__", None)
    theirs: dict[str, Any] | None = getattr(fresh, "__dict__", None)
    if mine is None or theirs is None:
        raise GraphError(
            f"The metadata of a {type(node).__name__} changed, and it has no __dict__ to take it over in place: merge "
            "into a new one."
        )
    mine.clear()
    mine.update(theirs)
