"""Building: new objects from a graph definition. The way back of recording."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from synmod.errors import GraphError
from synmod.tree.containers import put_together
from synmod.tree.defs import ContainerDef, NodeDef, NodeRef, StaticDef, VariableDef, VariableRef
from synmod.tree.node_types import Impls, NodeImpl, own_impl
from synmod.tree.rewrite import NodeRewrite, VariableRewrite, rewrite_all

if TYPE_CHECKING:
    from collections.abc import Mapping

    from synmod.leaves.frozen import FrozenDict, Json
    from synmod.tree.defs import Definition, Term
    from synmod.tree.graphdef import GraphDef


def build(
    graphdef: GraphDef[Any],
    values: Mapping[int, tuple[Json, FrozenDict]],
    objects: dict[int, Any],
    existing: Mapping[int, Any] | None = None,
    *,
    editable: bool = False,
    own_handles: bool = False,
) -> Any:
    """Make the objects of a graph, without running any `__init__`.

    Args:
        graphdef: The structure.
        values: Value and metadata of each Variable by index.
        objects: What is there already, by index, and is used as it is; new objects are added. Whatever the graph refers
            to and does not define must be here.
        existing: Objects that become in place what the graph says, instead of being made; all of them or none.
        editable: Whether new nodes are open for editing, whatever the graph says of them.
        own_handles: Whether existing objects keep what they pass on by reference.

    Returns:
        What stands at the root.

    Raises:
        GraphError: Constructor arguments need one another, or a node type is not registered here.
    """
    own = [each for each in graphdef.definitions.values() if each.index not in objects]
    existing = {each.index: existing[each.index] for each in own if each.index in existing} if existing else {}
    objects.update(existing)
    new = [each for each in own if each.index not in existing] if existing else own
    for each in new:
        if isinstance(each, VariableDef):
            value, metadata = values[each.index]
            objects[each.index] = each.type._made(value, each.schema, metadata, each.extra)
    nodes = [each for each in new if isinstance(each, NodeDef)]
    impls = _impls(own)
    _make_empty(nodes, objects, impls)
    for node in reversed(nodes):  # what is below comes later: a node is filled with nodes that are full
        pairs = [(step, realised(term, objects)) for step, term in node.attributes]
        impl = impls[node.type]
        impl.fill(objects[node.index], pairs)
        if editable and impl.unseal is not None:
            impl.unseal(objects[node.index])
    root = realised(graphdef.root, objects)
    if existing:
        _rewrite([each for each in own if each.index in existing], values, objects, impls, own_handles=own_handles)
    return root


def _rewrite(
    definitions: list[Definition],
    values: Mapping[int, tuple[Json, FrozenDict]],
    objects: Mapping[int, Any],
    impls: Impls,
    *,
    own_handles: bool,
) -> None:
    """Let live objects become what their definitions say: everything that can fail first."""
    variables = [
        VariableRewrite(objects[each.index], *values[each.index], each)
        for each in definitions
        if isinstance(each, VariableDef)
    ]
    nodes: list[NodeRewrite] = []
    for each in reversed(definitions):
        if isinstance(each, NodeDef):
            pairs = [(step, realised(term, objects)) for step, term in each.attributes]
            node, impl = objects[each.index], impls[each.type]
            metadata, _ = _resolved(each.metadata, impl, objects)
            if own_handles and impl.own_handles is not None:
                metadata, pairs = impl.own_handles(node, metadata, pairs)
            nodes.append(NodeRewrite(node, impl, metadata, pairs))
    rewrite_all(nodes, variables)


def realised(term: Term, objects: Mapping[int, Any]) -> Any:
    """Give the object a term stands for; containers are put together anew, iteratively."""
    if isinstance(term, StaticDef):
        return term.value
    if isinstance(term, NodeRef | VariableRef):
        return objects[term.index]
    opened: list[tuple[ContainerDef, list[Any]]] = [(term, [])]
    while True:
        container, parts = opened[-1]
        if len(parts) < len(container.children):
            child = container.children[len(parts)]
            if isinstance(child, ContainerDef):
                opened.append((child, []))
            else:
                parts.append(realised(child, objects))
            continue
        opened.pop()
        done = put_together(container.type, container.steps, parts, container.aux)
        if not opened:
            return done
        opened[-1][1].append(done)


def _make_empty(nodes: list[NodeDef], objects: dict[int, Any], impls: Impls) -> None:
    """Make every node without its children; what its metadata refers to comes first."""
    waiting = {node.index: node for node in nodes}
    begun: set[int] = set()
    stack = [node.index for node in nodes]  # the last first: arguments mostly lead to what is below
    while stack:
        index = stack.pop()
        node = waiting.get(index)
        if node is None:
            continue
        impl = impls[node.type]
        metadata, lacking = _resolved(node.metadata, impl, objects)
        if lacking and index in begun:
            raise GraphError(
                f"The constructor arguments of {node.type.__name__} #{index} and of what they hold need one another."
            )
        if lacking:
            begun.add(index)
            stack += [index, *lacking]
            continue
        objects[index] = impl.make(metadata)
        del waiting[index]


def _resolved(metadata: Any, impl: NodeImpl, objects: Mapping[int, Any]) -> tuple[Any, list[int]]:
    """Put objects in the place of references, and list the references whose objects are still to be made."""
    lacking: list[int] = []
    if impl.map_refs is None:
        return metadata, lacking

    def resolve(x: Any) -> Any:
        if not isinstance(x, NodeRef | VariableRef):
            return x
        if x.index not in objects:
            lacking.append(x.index)
            return x
        return objects[x.index]

    return impl.map_refs(metadata, resolve), lacking


def _impls(definitions: list[Definition]) -> Impls:
    """Look up the rules of all types; a definition from elsewhere may name a type that is not registered here."""
    for each in definitions:
        if isinstance(each, NodeDef) and own_impl(each.type) is None:
            raise GraphError(f"Unknown node type {each.type.__module__}.{each.type.__qualname__}: register it first.")
    return Impls()
