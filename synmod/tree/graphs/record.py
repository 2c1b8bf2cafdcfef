"""Recording: one walk over live objects that writes their graph definition down."""

from __future__ import annotations

from contextvars import ContextVar
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from pydantic import BaseModel

from synmod.errors import ArgumentError, DataError, GraphError
from synmod.leaves.frozen import frozen
from synmod.tree.graphs.codec import CODEC
from synmod.tree.graphs.defs import ContainerDef, DataDef, NodeDef, NodeRef, StaticDef, VariableDef, VariableRef
from synmod.tree.graphs.graphdef import GraphDef
from synmod.tree.graphs.kept import kept_below
from synmod.tree.variable.containers import class_of
from synmod.tree.variable.variable import Variable
from synmod.tree.walking.kinds import KNOWN, NODE, SET, STATIC, Kinds, holds_node
from synmod.tree.walking.node_types import Impls
from synmod.tree.walking.refmap import RefMap
from synmod.tree.walking.walk import walk

if TYPE_CHECKING:
    from collections.abc import Callable

    from synmod.leaves.names import KeyPath
    from synmod.tree.graphs.defs import Definition, Term
    from synmod.tree.walking.walk import Visit

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
    objects = {v.index: v.value for v in visits if v.first and v.index is not None}
    definitions, term, pending = _written(visits, root, seen, objects)
    leaves = [visit for visit in visits if visit.kind == "variable" and visit.first]
    foreign = {v.index: v.path for v in visits if not (v.first or v.index is None or v.index in definitions)}
    graphdef: GraphDef[M] = GraphDef(term, definitions, kept_below(pending, definitions, objects), foreign)
    return Recording(graphdef, leaves, objects)


def _written(
    visits: list[Visit], root: Any, seen: RefMap[int], objects: dict[int, Any]
) -> tuple[dict[int, Definition], Term, list[int]]:
    """Write visits down, from the last to the first: what is below comes later, so it is ready when its holder is.

    Returns:
        The definitions in definition order, what stands at the root, and the indices of by-reference nodes.
    """
    written: list[tuple[int, Definition]] = []
    by_reference: list[int] = []
    reference = _reference_to(seen, written, objects)
    statics = _StaticDefs()
    term: Term = StaticDef(root)
    for visit in reversed(visits):
        value, index, kind = visit.value, visit.index, visit.kind
        cls = class_of(value)
        if kind == "container":
            term = _container(cls, visit, statics)
        elif kind == "variable":
            term = VariableRef(cls, index or 0)
            if visit.first:
                extra = value._extra() if cls._keeps_extra else None
                parts = cls, index, value._schema, value._about, extra
                written.append((index or 0, _new_tuple(VariableDef, parts)))
        else:
            term = NodeRef(cls, index or 0)
            impl = visit.impl
            if impl is not None:
                metadata = impl.metadata_of(value)
                if impl.map_refs is not None:
                    metadata = impl.map_refs(metadata, reference)
                below, pairs = visit.parts, visit.children
                children = tuple([(step, below.get(step) or statics[type(child)](child)) for step, child in pairs])
                written.append((index or 0, NodeDef(cls, index or 0, children, metadata)))
                if impl.by_reference:
                    by_reference.append(index or 0)
        above = visit.above
        if above is not None:
            if above.parts:
                above.parts[visit.step] = term
            else:
                above.parts = {visit.step: term}
    written.sort(key=_index_of)
    return dict(written), term, by_reference


_new_tuple: Any = tuple.__dict__["__new__"]
_index_of: Any = itemgetter(0)


class _StaticDefs(dict[type[Any], "Callable[[Any], StaticDef]"]):
    """What writes statics down, by type: data models with what they are now, as they may be changed in place."""

    __slots__ = ()

    def __missing__(self, cls: type[Any]) -> Callable[[Any], StaticDef]:
        write = self[cls] = _data_def if issubclass(cls, BaseModel) else StaticDef
        return write


def _data_def(value: Any) -> StaticDef:
    try:
        return DataDef(value, frozen(value))
    except DataError:  # it has no text either, then
        return StaticDef(value)


def _container(cls: type[Any], visit: Visit, statics: _StaticDefs) -> ContainerDef:
    """Write a container down."""
    below, pairs = visit.parts, visit.children
    steps = tuple([step for step, _ in pairs])
    children = tuple([below.get(step) or statics[type(child)](child) for step, child in pairs])
    return ContainerDef(cls, steps, children, visit.aux)


def _reference_to(
    numbers: RefMap[int], written: list[tuple[int, Definition]], objects: dict[int, Any]
) -> Callable[[Any], Any]:
    """Give what puts references in the place of the graph's nodes and Variables; tokens are of the graph wherever."""
    entries, kinds, impls = numbers.entries, Kinds(KNOWN), Impls()

    def reference(x: Any) -> Any:
        entry = entries.get(id(x))
        if entry is None and kinds[class_of(x)] == NODE and impls[class_of(x)].is_token:
            index = len(entries)
            entry = entries[id(x)] = (x, index)
            objects[index] = x
            written.append((index, NodeDef(class_of(x), index, (), impls[class_of(x)].metadata_of(x))))
        if entry is None or entry[0] is not x:
            return x
        return (VariableRef if isinstance(x, Variable) else NodeRef)(class_of(x), entry[1])

    return reference


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
