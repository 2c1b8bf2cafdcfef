"""Record the structure of live objects as a `GraphDef`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, NamedTuple, TypeVar

from pydantic import BaseModel

from synmod import errors
from synmod.leaves import KeyPath, frozen

from .graphdef import ContainerDef, Definition, GraphDef, NodeDef, NodeRef, StaticDef, Term, VariableDef, VariableRef
from .variable import Variable, class_of
from .walk import RefMap, Visit, check_root, own_impl, walk

M = TypeVar("M")


class Recording(NamedTuple, Generic[M]):
    """A graph definition with the live objects it was made from.

    Attributes:
        graphdef: The structure.
        leaves: The first visit of each Variable, in definition order; their paths are `graphdef.leaf_paths`.
        objects: Live nodes and Variables by index.
    """

    graphdef: GraphDef[M]
    leaves: list[Visit]
    objects: dict[int, Any]


def record(root: M, numbers: RefMap[int] | None = None) -> Recording[M]:
    """Walk a graph and record its structure and live objects.

    Args:
        root: A node, a Variable or a container of them.
        numbers: Numbers given before; objects in it become references, new objects are added.

    Raises:
        ArgumentError: `root` cannot be the root of a graph.
        GraphError: The graph cannot be walked.
    """
    check_root(root)
    numbers = RefMap() if numbers is None else numbers
    visits = list(walk(root, indices=numbers))
    objects = {v.index: v.value for v in visits if v.first and v.index is not None}
    term, definitions, by_reference = _make_definitions(visits, root, numbers, objects)
    leaves = [visit for visit in visits if visit.kind == "variable" and visit.first]
    paths: dict[KeyPath, Any] = dict(zip(paths_to(leaves), (visit.index for visit in leaves), strict=True))
    foreign = {v.index: v.path for v in visits if not (v.first or v.index is None or v.index in definitions)}
    graphdef: GraphDef[M] = GraphDef(term, definitions, paths, by_reference, foreign)
    return Recording(graphdef, leaves, objects)


def paths_to(visits: list[Visit]) -> list[KeyPath]:
    """Return the paths of visits; siblings in a row share the computation of their parent's path."""
    paths: list[KeyPath] = []
    above, lead = None, ()
    for visit in visits:
        if visit.parent is None:
            paths.append(())
            continue
        if visit.parent is not above:
            above = visit.parent
            lead = above.path
        paths.append((*lead, visit.step))
    return paths


def _make_definitions(
    visits: list[Visit], root: Any, numbers: RefMap[int], objects: dict[int, Any]
) -> tuple[Term, dict[int, Definition], dict[int, Any]]:
    """Turn visits into records, from last to first, so that children are ready before their parent.

    Returns:
        The root, the definitions in definition order, and the by-reference nodes.
    """
    definitions: list[tuple[int, Definition]] = []
    by_reference: dict[int, Any] = {}
    reference = _reference_to(numbers, definitions, objects)
    term: Term = StaticDef(root)
    for visit in reversed(visits):
        value, index, kind = visit.value, visit.index or 0, visit.kind
        cls = class_of(value)
        if kind == "variable":
            term = VariableRef(cls, index)
            if visit.first:
                definitions.append((index, VariableDef(cls, index, value.schema, value.full_metadata)))
        elif kind == "container":
            term = ContainerDef(cls, tuple([step for step, _ in visit.children]), _children(visit), visit.aux)
        else:
            term = NodeRef(cls, index)
            impl = visit.impl
            if impl is not None:
                node_metadata = impl.metadata_of(value)
                metadata = node_metadata if impl.map_refs is None else impl.map_refs(node_metadata, reference)
                attributes = tuple(zip([step for step, _ in visit.children], _children(visit), strict=True))
                definitions.append((index, NodeDef(cls, index, attributes, metadata, metadata is not node_metadata)))
                if impl.by_reference:
                    by_reference[index] = value
        parent = visit.parent
        if parent is not None:
            if parent.parts is None:
                parent.parts = {}
            parent.parts[visit.step] = term
    definitions.sort(key=lambda pair: pair[0])
    return term, dict(definitions), by_reference


def _children(visit: Visit) -> tuple[Term, ...]:
    """Return the terms of the children of a visit; children that were not visited are statics."""
    parts: dict[Any, Term] = visit.parts or {}
    return tuple([parts.get(step) or _static(child) for step, child in visit.children])


def _static(child: Any) -> StaticDef:
    """Record a static; a data model with its present JSON, since it may be changed in place."""
    if isinstance(child, BaseModel):
        try:
            return StaticDef(child, frozen(child))
        except errors.DataError:  # a model that cannot be frozen is compared by identity
            return StaticDef(child)
    return StaticDef(child)


def _reference_to(
    numbers: RefMap[int], definitions: list[tuple[int, Definition]], objects: dict[int, Any]
) -> Callable[[Any], Any]:
    """Return a function that replaces the graph's nodes and Variables by references, and defines tokens it meets."""
    entries = numbers.entries

    def reference(x: Any) -> Any:
        entry = entries.get(id(x))
        if entry is None and (impl := own_impl(class_of(x))) is not None and impl.is_token:
            index = len(entries)
            entry = entries[id(x)] = (x, index)
            objects[index] = x
            definitions.append((index, NodeDef(class_of(x), index, (), impl.metadata_of(x))))
        if entry is None or entry[0] is not x:
            return x
        return (VariableRef if isinstance(x, Variable) else NodeRef)(class_of(x), entry[1])

    return reference
