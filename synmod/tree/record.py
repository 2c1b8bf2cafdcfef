"""Recording: one walk over live objects that writes their graph definition down."""

from __future__ import annotations

from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from synmod.errors import ArgumentError, GraphError
from synmod.tree.codec import CODEC
from synmod.tree.containers import class_of
from synmod.tree.defs import ContainerDef, NodeDef, NodeRef, StaticDef, VariableDef, VariableRef
from synmod.tree.graphdef import GraphDef
from synmod.tree.kinds import KNOWN, NODE, SET, STATIC, Kinds, holds_node
from synmod.tree.node_types import Impls
from synmod.tree.refmap import RefMap
from synmod.tree.variable import Variable
from synmod.tree.walk import walk

if TYPE_CHECKING:
    from synmod.leaves.paths import KeyPath
    from synmod.tree.defs import Definition, Term
    from synmod.tree.walk import Visit

M = TypeVar("M")


class Recording(Generic[M]):
    """A graph definition with the live objects it was made of.

    Attributes:
        graphdef: The structure.
        leaves: The first visit of each Variable, in definition order.
        objects: Live nodes and Variables by index.
    """

    __slots__ = ("graphdef", "leaves", "objects")

    def __init__(self, graphdef: GraphDef[M], leaves: list[Visit], objects: dict[int, Any]) -> None:
        self.graphdef = graphdef
        self.leaves = leaves
        self.objects = objects

    def variables(self) -> dict[KeyPath, Variable]:
        """Give the live Variables by canonical path, in definition order."""
        return {visit.path: visit.value for visit in self.leaves}


def check_root(root: object) -> None:
    """Refuse what holds no graph.

    Raises:
        ArgumentError: It is no node, Variable or container.
    """
    kinds = Kinds(KNOWN)
    kind = kinds[type(root)]
    if kind == STATIC or (kind == SET and not holds_node(root, kinds)):
        raise ArgumentError(
            f"An object of type {type(root).__name__} is no root of a graph: give a Module, a registered node, a "
            "Variable, or a list or dict of them."
        )


def record(root: M, seen: RefMap[int] | None = None) -> Recording[M]:
    """Walk below a root and write down what is there.

    Args:
        root: A node, a Variable or a container of them.
        seen: Numbers given before; what is in it becomes a reference only, what is new is added.

    Raises:
        ArgumentError: `root` holds no graph.
        GraphError: The walk cannot be made.
    """
    check_root(root)
    seen = RefMap() if seen is None else seen
    visits = list(walk(root, seen=seen))
    definitions: dict[int, Definition] = {}
    term: Term = StaticDef(root)
    for visit in reversed(visits):  # what is below comes later, so it is ready when its holder is written
        term = _term(visit, definitions)
        above = visit.above
        if above is not None and above.parts:
            above.parts[visit.step] = term
        elif above is not None:
            above.parts = {visit.step: term}
    objects = {v.index: v.value for v in visits if v.first and v.index is not None}
    _replace_references(definitions, seen, objects)
    definitions = dict(sorted(definitions.items()))
    leaves = [visit for visit in visits if visit.kind == "variable" and visit.first]
    foreign = {v.index: v.path for v in visits if not (v.index is None or v.first or v.index in definitions)}
    graphdef: GraphDef[M] = GraphDef(term, definitions, _kept(definitions, objects), foreign)
    return Recording(graphdef, leaves, objects)


def _term(visit: Visit, definitions: dict[int, Definition]) -> Term:
    """Write one visit down; what is below it is written already."""
    value, index, below = visit.value, visit.index, visit.parts
    cls = class_of(value)
    if visit.kind == "container":
        steps = tuple(step for step, _ in visit.children)
        children = tuple([below.get(step) or StaticDef(child) for step, child in visit.children])
        return ContainerDef(cls, steps, children, visit.aux)
    assert index is not None
    if visit.kind == "variable":
        if visit.first:
            definitions[index] = VariableDef(cls, index, value._schema, value._about, value._extra())
        return VariableRef(cls, index)
    if visit.first:
        attributes = tuple([(step, below.get(step) or StaticDef(child)) for step, child in visit.children])
        assert visit.impl is not None
        definitions[index] = NodeDef(cls, index, attributes, visit.impl.metadata_of(value))
    return NodeRef(cls, index)


def _replace_references(definitions: dict[int, Definition], numbers: RefMap[int], objects: dict[int, Any]) -> None:
    """Put references in the place of the graph's nodes and Variables in metadata; tokens are of the graph wherever."""
    kinds, impls = Kinds(KNOWN), Impls()

    def reference(x: Any) -> Any:
        entry = numbers.entries.get(id(x))
        if entry is None and kinds[class_of(x)] == NODE and impls[class_of(x)].is_token:
            index = len(numbers.entries)
            entry = numbers.entries[id(x)] = (x, index)
            objects[index] = x
            definitions[index] = NodeDef(class_of(x), index, (), impls[class_of(x)].metadata_of(x))
        if entry is None or entry[0] is not x:
            return x
        return (VariableRef if isinstance(x, Variable) else NodeRef)(class_of(x), entry[1])

    for index, definition in list(definitions.items()):
        if isinstance(definition, NodeDef):
            map_refs = impls[definition.type].map_refs
            metadata = definition.metadata if map_refs is None else map_refs(definition.metadata, reference)
            if metadata is not definition.metadata:
                definitions[index] = NodeDef(definition.type, index, definition.attributes, metadata)


def _kept(definitions: dict[int, Definition], objects: dict[int, Any]) -> dict[int, Any]:
    """Find the nodes that copies keep as they are, and everything that can be reached from those."""
    impls = Impls()
    pending = [
        index
        for index, definition in definitions.items()
        if isinstance(definition, NodeDef) and impls[definition.type].by_reference
    ]
    kept: dict[int, Any] = {}
    while pending:
        index = pending.pop()
        if index in kept or index not in definitions:
            continue
        kept[index] = objects[index]
        definition = definitions[index]
        if isinstance(definition, NodeDef):
            pending.extend(references_in([child for _, child in definition.attributes]))
    return kept


def references_in(terms: list[Term]) -> list[int]:
    """List the indices that terms refer to, through containers."""
    found: list[int] = []
    pending = list(terms)
    while pending:
        term = pending.pop()
        if isinstance(term, ContainerDef):
            pending.extend(term.children)
        elif not isinstance(term, StaticDef):
            found.append(term.index)
    return found


_WITHIN: ContextVar[tuple[int, ...]] = ContextVar("synmod_unreached_nodes", default=())
"""The nodes that are being described inside one another: two may be arguments of each other's parts."""


def _unreached_text(x: Any) -> str | None:
    """Describe a node or Variable that is no part of a graph by a graph of its own."""
    within = _WITHIN.get()
    if id(x) in within:
        return f"graph {len(within) - within.index(id(x))} above"
    token = _WITHIN.set((*within, id(x)))
    try:
        return f"graph {record(x).graphdef.fingerprint}"
    except GraphError:
        return None
    finally:
        _WITHIN.reset(token)


CODEC["unreached"] = _unreached_text
