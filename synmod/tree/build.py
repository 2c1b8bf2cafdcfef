"""Building: new objects from a graph definition. The way back of recording."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from synmod.errors import GraphError
from synmod.tree.containers import put_together
from synmod.tree.defs import ContainerDef, NodeDef, NodeRef, StaticDef, VariableDef, VariableRef
from synmod.tree.node_types import NodeImpl, own_impl

if TYPE_CHECKING:
    from collections.abc import Mapping

    from synmod.leaves.frozen import FrozenDict, Json
    from synmod.tree.defs import Term
    from synmod.tree.graphdef import GraphDef


def build(
    graphdef: GraphDef[Any],
    values: Mapping[int, tuple[Json, FrozenDict]],
    objects: dict[int, Any],
    existing: Mapping[int, Any] | None = None,
) -> Any:
    """Make the objects of a graph, without running any `__init__`.

    Args:
        graphdef: The structure.
        values: Value and metadata of each Variable by index.
        objects: What is there already, by index, and is used as it is; new objects are added. Whatever the graph refers
            to and does not define must be here.
        existing: Objects that are emptied and filled anew instead of made.

    Returns:
        What stands at the root.

    Raises:
        GraphError: Constructor arguments need one another, or a node type is not registered here.
    """
    existing = existing or {}
    own = [each for each in graphdef.definitions.values() if each.index not in objects]
    for each in own:
        if isinstance(each, VariableDef):
            value, metadata = values[each.index]
            known = existing.get(each.index)
            if known is None:
                objects[each.index] = each.type._made(value, each.schema, metadata, each.extra)
            else:
                known._rewrite(value, each.schema, metadata)
                objects[each.index] = known
    nodes = [each for each in own if isinstance(each, NodeDef)]
    _make_empty(nodes, objects, existing)
    for node in reversed(nodes):  # what is below comes later: a node is filled with nodes that are full
        pairs = [(step, realised(term, objects)) for step, term in node.attributes]
        _impl(node).fill(objects[node.index], pairs)
    return realised(graphdef.root, objects)


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


def _make_empty(nodes: list[NodeDef], objects: dict[int, Any], existing: Mapping[int, Any]) -> None:
    """Make every node without its children; what its metadata refers to comes first."""
    waiting = {node.index: node for node in nodes}
    begun: set[int] = set()
    stack = [node.index for node in nodes]  # the last first: arguments mostly lead to what is below
    while stack:
        index = stack.pop()
        node = waiting.get(index)
        if node is None:
            continue
        needed = [each for each in _needs(node) if each in waiting]
        if needed and index in begun:
            raise GraphError(
                f"The constructor arguments of {node.type.__name__} #{index} and of what they hold need one another."
            )
        if needed:
            begun.add(index)
            stack += [index, *needed]
            continue
        objects[index] = _empty(node, objects, existing.get(index))
        del waiting[index]


def _needs(node: NodeDef) -> list[int]:
    """List the indices that a node's metadata refers to."""
    needed: list[int] = []

    def note(x: Any) -> Any:
        if isinstance(x, NodeRef | VariableRef):
            needed.append(x.index)
        return x

    impl = _impl(node)
    if impl.map_refs is not None:
        impl.map_refs(node.metadata, note)
    return needed


def _empty(node: NodeDef, objects: Mapping[int, Any], known: Any) -> Any:
    """Make one node, or empty the one that is there."""
    impl = _impl(node)
    if known is not None:
        if impl.clear is not None:
            impl.clear(known)
        else:
            for step, _ in impl.pairs(known):
                impl.pop_key(known, step)
        return known

    def resolved(x: Any) -> Any:
        return objects[x.index] if isinstance(x, NodeRef | VariableRef) else x

    metadata = node.metadata if impl.map_refs is None else impl.map_refs(node.metadata, resolved)
    return impl.make(metadata)


def _impl(node: NodeDef) -> NodeImpl:
    impl = own_impl(node.type)
    if impl is None:
        raise GraphError(f"Unknown node type {node.type.__module__}.{node.type.__qualname__}: register it first.")
    return impl
