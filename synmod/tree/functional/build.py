"""Building: new objects from a graph definition. The way back of recording."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from synmod.errors import GraphError
from synmod.tree.functional.rewrite import NodeRewrite, VariableRewrite, rewrite_all
from synmod.tree.graphs.defs import ContainerDef, NodeDef, NodeRef, Reference, StaticDef, VariableDef, VariableRef
from synmod.tree.variable.containers import put_together
from synmod.tree.walking.node_types import Impls, own_impl

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from synmod.leaves.frozen import FrozenDict, Json
    from synmod.tree.graphs.defs import Definition, Term
    from synmod.tree.graphs.graphdef import GraphDef


def build(
    graphdef: GraphDef[Any],
    values: Mapping[int, tuple[Json, FrozenDict]],
    objects: dict[int, Any],
    existing: Mapping[int, Any] | None = None,
    *,
    editable: bool = False,
) -> Any:
    """Make the objects of a graph, without running any `__init__`.

    Args:
        graphdef: The structure.
        values: Value and metadata of each Variable by index.
        objects: What is there already, by index, and is used as it is; new objects are added. Whatever the graph refers
            to and does not define must be here.
        existing: Objects that become in place what the graph says, instead of being made; all of them or none.
        editable: Whether new nodes are open for editing, whatever the graph says of them.

    Returns:
        What stands at the root.

    Raises:
        GraphError: Constructor arguments need one another, or a node type is not registered here.
    """
    definitions = graphdef.definitions.values()
    own = [each for each in definitions if each.index not in objects] if objects else list(definitions)
    existing = {each.index: existing[each.index] for each in own if each.index in existing} if existing else {}
    objects.update(existing)
    new = [each for each in own if each.index not in existing] if existing else own
    impls = _impls(own)
    nodes: list[NodeDef] = []
    for each in new:
        if isinstance(each, NodeDef):
            nodes.append(each)
        else:
            cls, index, schema, _, extra = each
            value, metadata = values[index]
            objects[index] = cls._made(value, schema, metadata, extra)
    _make_empty(nodes, objects, impls)
    for node in reversed(nodes):  # what is below comes later: a node is filled with nodes that are full
        pairs = _pairs(node, objects)
        impl = impls[node.type]
        impl.fill(objects[node.index], pairs)
        if editable and impl.unseal is not None:
            impl.unseal(objects[node.index])
    root = realised(graphdef.root, objects)
    if existing:
        _rewrite([each for each in own if each.index in existing], values, objects, impls)
    return root


def _rewrite(
    definitions: list[Definition],
    values: Mapping[int, tuple[Json, FrozenDict]],
    objects: Mapping[int, Any],
    impls: Impls,
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
            pairs = _pairs(each, objects)
            node, impl = objects[each.index], impls[each.type]
            metadata = _Resolver(objects).resolved(each.metadata, impl.map_refs)
            nodes.append(NodeRewrite(node, impl, metadata, pairs))
    rewrite_all(nodes, variables)


def _pairs(node: NodeDef, objects: Mapping[int, Any]) -> list[tuple[Any, Any]]:
    """Give the children of a node with their keys. Hot, so what is most common is written out."""
    pairs: list[tuple[Any, Any]] = []
    step: Any
    term: Any
    for step, term in node.attributes:
        kind = type(term)  # pyright: ignore[reportUnknownVariableType]  (hot: no `class_of`)
        if kind in _REFERENCES:
            pairs.append((step, objects[term.index]))
        elif kind is StaticDef:
            pairs.append((step, term.value))
        else:
            pairs.append((step, realised(term, objects)))
    return pairs


def realised(term: Term, objects: Mapping[int, Any]) -> Any:
    """Give the object a term stands for; containers are put together anew, iteratively."""
    if isinstance(term, StaticDef):
        return term.value
    if isinstance(term, Reference):
        return objects[term.index]
    if not term.children:
        return put_together(term.type, term.steps, [], term.aux)
    opened: list[tuple[ContainerDef, list[Any], Iterator[Any]]] = [(term, [], iter(term.children))]
    while True:
        container, parts, left = opened[-1]
        for child in left:
            if type(child) in _REFERENCES:
                parts.append(objects[child.index])
            elif isinstance(child, StaticDef):
                parts.append(child.value)
            else:
                opened.append((child, [], iter(child.children)))
                break
        else:
            opened.pop()
            done = put_together(container.type, container.steps, parts, container.aux)
            if not opened:
                return done
            opened[-1][1].append(done)


_REFERENCES: Final = frozenset({NodeRef, VariableRef})


def _make_empty(nodes: list[NodeDef], objects: dict[int, Any], impls: Impls) -> None:
    """Make every node without its children; what its metadata refers to comes first."""
    resolver = _Resolver(objects)
    waiting: dict[int, NodeDef] = {}
    for node in reversed(nodes):  # the last first: arguments mostly lead to what is below
        impl = impls[node.type]
        metadata = resolver.resolved(node.metadata, impl.map_refs)
        if resolver.lacking:
            waiting[node.index] = node
        else:
            objects[node.index] = impl.make(metadata)
    begun: set[int] = set()
    stack = list(waiting)
    while stack:
        node = waiting.get(stack.pop())
        if node is None or node.index in objects:
            continue
        impl = impls[node.type]
        metadata = resolver.resolved(node.metadata, impl.map_refs)
        if not resolver.lacking:
            objects[node.index] = impl.make(metadata)
            continue
        if node.index in begun:
            raise GraphError(
                f"The constructor arguments of {node.type.__name__} #{node.index} and of what they hold need one "
                "another."
            )
        begun.add(node.index)
        stack += [node.index, *resolver.lacking]


class _Resolver:
    """Puts objects in the place of references in metadata.

    Attributes:
        lacking: The references of the last metadata whose objects are still to be made.
    """

    __slots__ = ("_objects", "lacking")

    def __init__(self, objects: Mapping[int, Any]) -> None:
        self._objects = objects
        self.lacking: list[int] = []

    def resolved(self, metadata: Any, map_refs: Callable[[Any, Callable[[Any], Any]], Any] | None) -> Any:
        """Give metadata with objects in it."""
        if self.lacking:
            self.lacking = []
        return metadata if map_refs is None else map_refs(metadata, self._object)

    def _object(self, x: Any) -> Any:
        if type(x) not in _REFERENCES:
            return x
        if x.index not in self._objects:
            self.lacking.append(x.index)
            return x
        return self._objects[x.index]


def _impls(definitions: list[Definition]) -> Impls:
    """Look up the rules of all types; a definition from elsewhere may name a type that is not registered here."""
    for cls in {each.type for each in definitions if type(each) is NodeDef}:
        if own_impl(cls) is None:
            raise GraphError(f"Unknown node type {cls.__module__}.{cls.__qualname__}: register it first.")
    return Impls()
