"""One way to look at nodes and Variables, be they live or definitions of a graph."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from synmod.errors import GraphError
from synmod.lm import LanguageModel
from synmod.tree import (
    ContainerDef,
    NodeDef,
    NodeRef,
    StaticDef,
    VariableDef,
    VariableRef,
    get_node_impl,
    own_impl,
    put_together,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from synmod.data import Schema
    from synmod.leaves.frozen import FrozenDict, Json
    from synmod.tree import GraphDef, Variable

__all__ = ["MISSING", "Definitions", "NodeView", "VariableView", "variable_view"]

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


class Definitions:
    """The definitions of a graph, seen as objects.

    A Variable is seen as an empty one of its class, so that code of classes finds what it expects at its attributes.

    Args:
        graphdef: The graph; None where everything is live.
    """

    def __init__(self, graphdef: GraphDef[Any] | None) -> None:
        self._definitions: Mapping[int, Any] = {} if graphdef is None else graphdef.definitions
        self._kept: Mapping[int, Any] = {} if graphdef is None else graphdef.kept
        self._variables: dict[int, Variable] = {}
        self._behind: dict[int, VariableDef] = {}

    def entity(self, x: Any) -> Any:
        """The definition that a reference leads to, or that an empty Variable stands for; what is live itself.

        Raises:
            GraphError: It is defined in another split.
        """
        if isinstance(x, NodeRef | VariableRef):
            found = self._definitions.get(x.index)
            if found is None:
                raise GraphError(
                    f"A reference to index {x.index} ({x.type.__name__}) of another split: what was split together in "
                    "one split_context() has no JSON of its own parts; write one graph definition of it all."
                )
            return found
        return self._behind.get(id(x), x)

    def kept(self, x: Any) -> Any:
        """The very object of a node that copies keep; what is live itself, None for the rest."""
        return self._kept.get(x.index) if isinstance(x, NodeDef | NodeRef) else x

    def node_view(self, node: Any) -> NodeView:
        """Look at a node, or at the definition of one."""
        if not isinstance(node, NodeDef):
            pairs, metadata = get_node_impl(node).flatten(node)
            return NodeView(type(node), list(pairs), metadata, node)
        pairs = [(key, self.plain(term)) for key, term in node.attributes]
        impl = own_impl(node.type)
        assert impl is not None
        if not impl.is_module:
            return NodeView(node.type, pairs, node.metadata, None)
        metadata = node.metadata if impl.map_refs is None else impl.map_refs(node.metadata, self._leaf)
        shell = impl.create_empty(metadata)
        impl.fill(shell, pairs)
        return NodeView(node.type, pairs, metadata, shell)

    def plain(self, term: Any) -> Any:
        """Turn a term into live containers, without recursion; what is live passes as it is."""
        if not isinstance(term, ContainerDef):
            return self._leaf(term)
        stack: list[tuple[ContainerDef, list[Any]]] = [(term, [])]
        while True:
            container, done = stack[-1]
            if len(done) < len(container.children):
                child = container.children[len(done)]
                if isinstance(child, ContainerDef):
                    stack.append((child, []))
                else:
                    done.append(self._leaf(child))
                continue
            stack.pop()
            made = put_together(container.type, container.steps, done, container.aux)
            if not stack:
                return made
            stack[-1][1].append(made)

    def _leaf(self, term: Any) -> Any:
        """What a static holds, the very object of a kept node, an empty Variable, or the reference to a node."""
        if isinstance(term, StaticDef):
            return term.value
        if isinstance(term, VariableRef):
            return self._empty_variable(term)
        kept = self._kept.get(term.index) if isinstance(term, NodeRef) else None
        return kept if isinstance(kept, LanguageModel) else term

    def _empty_variable(self, reference: VariableRef) -> Any:
        """The Variable that stands for a definition, one for each."""
        definition = self._definitions.get(reference.index)
        if definition is None:
            return reference
        variable = self._variables.get(reference.index)
        if variable is None:
            variable = self._variables[reference.index] = definition.type._made(
                None, definition.schema, definition.metadata
            )
            self._behind[id(variable)] = definition
        return variable


def variable_view(variable: Any) -> VariableView:
    """Look at a Variable, in the overlay that is open, or at the definition of one."""
    if isinstance(variable, VariableDef):
        return VariableView(variable.type, variable.schema, variable.metadata, MISSING)
    return VariableView(type(variable), variable._schema, variable._about, variable.value)
