"""set_attributes: plain attributes of many nodes at once."""

from __future__ import annotations

from inspect import getattr_static
from typing import TYPE_CHECKING, Any

from synmod.errors import GraphError
from synmod.leaves.names import did_you_mean, path_str
from synmod.tree.filtering.decisions import Decisions
from synmod.tree.filtering.filters import Any as AnyOf
from synmod.tree.filtering.filters import Everything, FilterLike
from synmod.tree.graphs.record import check_root
from synmod.tree.walking.kinds import KNOWN, NODE, STATIC, VARIABLE, Kinds, holds_node
from synmod.tree.walking.walk import Visit, walk

if TYPE_CHECKING:
    pass

_ABSENT: Any = object()


def set_attributes(node: Any, *filters: FilterLike, raise_if_not_found: bool = True, **attrs: Any) -> None:
    """Set plain attributes on every matching node that has them.

    Every check comes before the first write.

    Args:
        node: A program.
        *filters: Which nodes; every one without a filter.
        raise_if_not_found: Whether an attribute that no matching node has is an error.
        **attrs: Attributes and their new values; neither may be or hold a node or Variable.

    Raises:
        GraphError: No matching node has an attribute (contains 'at least one instance'), or an attribute, or its new
            value, is or holds a node or Variable. Names every such place.
        ArgumentError: `node` holds no graph, or a filter is none.

    Example:
        >>> import synmod as sm
        >>> program = sm.Generator(schema={"type": "object"})
        >>> sm.set_attributes(program, sm.Generator, temperature=0.5)
        >>> program.temperature
        0.5

    Source: Flax NNX `Module.set_attributes`; differs: atomic, any filter, statics only.
    """
    check_root(node)
    wanted = Decisions(AnyOf(*filters) if filters else Everything())
    nodes = [visit for visit in walk(node) if visit.kind == "node" and visit.first and wanted.takes(visit)]
    found = {name: [visit for visit in nodes if _present(visit, name) is not _ABSENT] for name in attrs}
    _refuse_structure(found, attrs)
    missing = [name for name, visits in found.items() if not visits]
    if missing and raise_if_not_found:
        raise GraphError(_not_found(missing, nodes))
    for name, visits in found.items():
        for visit in visits:
            setattr(visit.value, name, attrs[name])


def _present(visit: Visit, name: str) -> Any:
    """Look an attribute of a node up, its own or that of its class, without running a property."""
    for key, child in visit.children:
        if key == name:
            return child
    return getattr_static(visit.value, name, _ABSENT)


def _refuse_structure(found: dict[str, list[Visit]], attrs: dict[str, Any]) -> None:
    """Refuse attributes and values that are or hold nodes or Variables."""
    kinds = Kinds(KNOWN)
    places = [
        path_str((*visit.path, name))
        for name, visits in found.items()
        for visit in visits
        if _is_structure(_present(visit, name), kinds)
    ]
    if places:
        raise GraphError(
            f"set_attributes: {', '.join(map(repr, places))} holds a node or Variable: only plain attributes are set. "
            "Assign it where it stands."
        )
    given = [name for name, value in attrs.items() if _is_structure(value, kinds)]
    if given:
        raise GraphError(
            f"set_attributes: the new value of {', '.join(map(repr, given))} is or holds a node or Variable: only "
            "plain attributes are set. Assign it where it stands."
        )


def _is_structure(value: Any, kinds: Kinds) -> bool:
    kind = kinds[type(value)]
    return kind in (NODE, VARIABLE) or (kind != STATIC and holds_node(value, kinds))


def _not_found(missing: list[str], nodes: list[Visit]) -> str:
    """Say which attributes no node has."""
    known = sorted({key for visit in nodes for key, _ in visit.children if isinstance(key, str)})
    names = ", ".join(map(repr, missing))
    return (
        f"set_attributes: could not find at least one instance with the attribute {names} among {len(nodes)} matching "
        f"nodes.{did_you_mean(missing[0], known)}"
    )
