"""What copies keep as it is: by-reference nodes, and everything that can be reached from them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from synmod.tree.graphs.defs import ContainerDef, NodeDef, StaticDef, VariableDef
from synmod.tree.graphs.graphdef import GraphDef
from synmod.tree.walking.node_types import own_impl

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from synmod.tree.graphs.defs import Definition, Term

M = TypeVar("M")


def kept_below(
    by_reference: Iterable[int], definitions: Mapping[int, Definition], objects: Mapping[int, Any]
) -> dict[int, Any]:
    """Find the objects that can be reached from by-reference nodes, these included."""
    kept: dict[int, Any] = {}
    pending = list(by_reference)
    while pending:
        index = pending.pop()
        if index in kept or index not in definitions:
            continue
        kept[index] = objects[index]
        pending.extend(_references(definitions[index]))
    return kept


def without_stateful(graphdef: GraphDef[M]) -> GraphDef[M]:
    """Give a graph that was read from JSON without the kept nodes that hold Variables, at any depth.

    The Variables of what was read have no values of their own, so every merge makes those nodes anew, with the values
    that it is given. The other by-reference nodes, such as language models, are kept.
    """
    holders: dict[int, list[int]] = {}
    for index in graphdef.kept:
        for below in _references(graphdef.definitions[index]):
            holders.setdefault(below, []).append(index)
    stateful: set[int] = set()
    pending = [index for index in graphdef.kept if isinstance(graphdef.definitions[index], VariableDef)]
    if not pending:
        return graphdef
    while pending:
        index = pending.pop()
        if index not in stateful:
            stateful.add(index)
            pending.extend(holders.get(index, ()))
    left = [index for index in graphdef.kept if index not in stateful and _is_by_reference(graphdef.definitions[index])]
    kept = kept_below(left, graphdef.definitions, graphdef.kept)
    return GraphDef(graphdef.root, graphdef.definitions, kept, graphdef.foreign, graphdef.mark)


def _is_by_reference(definition: Definition) -> bool:
    impl = own_impl(definition.type)
    return impl is not None and impl.by_reference


def _references(definition: Definition) -> list[int]:
    """List the indices that a definition refers to, through containers."""
    if not isinstance(definition, NodeDef):
        return []
    found: list[int] = []
    pending: list[Term] = [child for _, child in definition.attributes]
    while pending:
        term = pending.pop()
        if isinstance(term, ContainerDef):
            pending.extend(term.children)
        elif not isinstance(term, StaticDef):
            found.append(term.index)
    return found
