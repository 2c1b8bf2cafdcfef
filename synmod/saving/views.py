"""One way to look at nodes and Variables, be they live or definitions of a graph."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from synmod.tree.containers import put_together
from synmod.tree.defs import ContainerDef, NodeDef, NodeRef, StaticDef, VariableDef
from synmod.tree.node_types import get_node_impl, own_impl

if TYPE_CHECKING:
    from collections.abc import Mapping

    from synmod.data.schema import Schema
    from synmod.leaves.frozen import FrozenDict, Json

__all__ = ["MISSING", "NodeView", "VariableView", "node_view", "plain", "variable_view"]

MISSING: Any = object()
"""The value of a Variable of which only the definition is known."""


class NodeView(NamedTuple):
    """A node as the writer sees it.

    Attributes:
        cls: Its class.
        pairs: Its children by key, in definition order; references stand for the nodes and Variables of a definition.
        metadata: What else makes it up.
        live: The node itself, or an empty one of a definition, filled with references.
    """

    cls: type
    pairs: list[tuple[str | int, Any]]
    metadata: Any
    live: Any


class VariableView(NamedTuple):
    """A Variable as the writer sees it."""

    cls: type
    schema: Schema
    about: FrozenDict
    value: Json


def node_view(node: Any, kept: Mapping[int, Any]) -> NodeView:
    """Look at a node, or at the definition of one."""
    if not isinstance(node, NodeDef):
        pairs, metadata = get_node_impl(node).flatten(node)
        return NodeView(type(node), list(pairs), metadata, node)
    pairs = [(key, plain(term, kept)) for key, term in node.attributes]
    impl = own_impl(node.type)
    assert impl is not None
    if not impl.is_module:
        return NodeView(node.type, pairs, node.metadata, None)
    shell = impl.create_empty(node.metadata)
    impl.fill(shell, pairs)
    return NodeView(node.type, pairs, node.metadata, shell)


def variable_view(variable: Any) -> VariableView:
    """Look at a Variable, in the overlay that is open, or at the definition of one."""
    if isinstance(variable, VariableDef):
        return VariableView(variable.type, variable.schema, variable.metadata, MISSING)
    return VariableView(type(variable), variable._schema, variable._about, variable.value)


def plain(term: Any, kept: Mapping[int, Any]) -> Any:
    """Turn the term of a definition into live containers, without recursion; what is live passes as it is."""
    if not isinstance(term, ContainerDef):
        return _leaf(term, kept)
    stack: list[tuple[ContainerDef, list[Any]]] = [(term, [])]
    while True:
        container, done = stack[-1]
        if len(done) < len(container.children):
            child = container.children[len(done)]
            if isinstance(child, ContainerDef):
                stack.append((child, []))
            else:
                done.append(_leaf(child, kept))
            continue
        stack.pop()
        made = put_together(container.type, container.steps, done, container.aux)
        if not stack:
            return made
        stack[-1][1].append(made)


def _leaf(term: Any, kept: Mapping[int, Any]) -> Any:
    """What a static holds, the very object of a node that copies keep, and a reference otherwise."""
    if isinstance(term, StaticDef):
        return term.value
    return kept.get(term.index, term) if isinstance(term, NodeRef) else term
