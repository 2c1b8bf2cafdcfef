"""merge and unflatten: a program from structure and State."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from synmod.errors import ArgumentError, GraphError, StateError
from synmod.leaves.names import path_str
from synmod.tree.functional.build import build
from synmod.tree.graphs.defs import VariableDef
from synmod.tree.graphs.graphdef import GraphDef
from synmod.tree.states.faults import Fault, raise_faults
from synmod.tree.states.gather import Gathered, gather
from synmod.tree.states.layout import Layout
from synmod.tree.states.state import State

if TYPE_CHECKING:
    from collections.abc import Mapping, MutableMapping

    from synmod.leaves.frozen import FrozenDict, Json
    from synmod.tree.states.layout import StateLike

M = TypeVar("M")


def merge(
    graphdef: GraphDef[M], state: StateLike, *states: StateLike, overwrite: bool = False, metadata: bool = False
) -> M:
    """Rebuild the program that `split` took apart.

    New objects, made without running `__init__` or `build`: shared children are shared again, cycles are closed again,
    and what was built is built. By-reference nodes (language models) and statics are the same objects.

    Args:
        graphdef: Shape, as returned by `split`.
        state: A State, or its JSON nested by key or by path text; alias paths are accepted.
        *states: More parts, in any order.
        overwrite: Let a later State win where two give one path different values.
        metadata: Take the metadata of the States instead of that of the graph.

    Returns:
        A program equal to the one split; `is` differs.

    Schemas:
        states: {path: JSON that satisfies the Variable's schema}

    Raises:
        StateError: A Variable is in no State ('Expected key'), or a State does not fit. Names every path.
        StateSchemaError: Values miss their schemas.
        ArgumentError: Something is no graph, or no State.

    Example:
        >>> from synmod.tree import Param, split
        >>> graphdef, state = split({"a": Param("x")})
        >>> merge(graphdef, state)["a"].value
        'x'

    Source: Flax NNX `merge`; differs: values are validated, conflicts refused.
    """
    if not isinstance(graphdef, GraphDef):  # pyright: ignore[reportUnnecessaryIsInstance]  (not all callers are typed)
        raise ArgumentError(f"merge takes the GraphDef that split gave, and States; got {graphdef!r:.200}.")
    return unflatten_into(graphdef, (state, *states), {}, {}, "merge", overwrite=overwrite, metadata=metadata)


def unflatten(
    graphdef: GraphDef[M],
    state: StateLike,
    *states: StateLike,
    index_ref: MutableMapping[int, Any] | None = None,
    index_ref_cache: Mapping[int, Any] | None = None,
) -> M:
    """Merge with an index space in hand.

    Atomic: every check comes before the first write, and where a node refuses what it is given, all are as before.

    Args:
        graphdef: Shape.
        state: A State or its JSON.
        *states: More parts, in any order.
        index_ref: Objects by index, made by earlier calls; this call's are added.
        index_ref_cache: Objects by index that are rewritten in place and keep their identity.

    Returns:
        What stands at the root.

    Raises:
        GraphError: An index of the graph is in `index_ref` ('already used'), or the cache holds another type for it.
        StateError: As `merge`.

    Example:
        >>> from synmod.tree import Param, flatten, split
        >>> live = {"a": Param("x")}
        >>> graphdef, state = split({"a": Param("y")})
        >>> unflatten(graphdef, state, index_ref_cache={0: live["a"]})["a"] is live["a"], live["a"].value
        (True, 'y')

    Source: Flax NNX `unflatten`.
    """
    objects: dict[int, Any] = dict(index_ref or {})
    cache = index_ref_cache or {}
    for index, definition in graphdef.definitions.items():
        if index in objects:
            raise GraphError(f"Index {index} ({definition.type.__name__}) is already used: each is defined once.")
        check_type(index, definition.type, cache)
    root = unflatten_into(graphdef, (state, *states), objects, cache, "unflatten")
    if index_ref is not None:
        index_ref.update(objects)
    return root


def check_type(index: int, cls: type[Any], cache: Mapping[int, Any]) -> None:
    """Refuse to make one thing another in place.

    Raises:
        GraphError: The cache holds an object of another type.
    """
    known = cache.get(index)
    if known is not None and type(known) is not cls:
        raise GraphError(f"Index {index} is a {cls.__name__} in the graph, but {type(known).__name__} in the cache.")


def unflatten_into(
    graphdef: GraphDef[M],
    states: tuple[StateLike, ...],
    objects: dict[int, Any],
    existing: Mapping[int, Any],
    what: str,
    *,
    overwrite: bool = False,
    metadata: bool = False,
    editable: bool = False,
) -> M:
    """Check every leaf, then build.

    Args:
        graphdef: Shape.
        states: What gives the values.
        objects: Objects by index that are used as they are; new ones are added.
        existing: Objects by index that become in place what the graph says; of by-reference nodes the very objects.
        what: The name of the function, for errors.
        overwrite: Whether a later State wins.
        metadata: Whether the metadata of the States counts.
        editable: Whether new modules are open for editing until they are handed back.
    """
    _check_references(graphdef, objects)
    values = _own_values(graphdef, states, metadata=metadata)
    if values is None:
        values = checked_values(graphdef, states, what, overwrite=overwrite, metadata=metadata)
    for index, kept in graphdef.kept.items():
        objects.setdefault(index, existing.get(index, kept))
    return build(graphdef, values, objects, existing, editable=editable)


def _check_references(graphdef: GraphDef[Any], objects: Mapping[int, Any]) -> None:
    """Refuse references that lead to another split."""
    lost = [(path, index) for index, path in graphdef.foreign.items() if index not in objects]
    if lost:
        names = ", ".join(f"{path_str(path)!r} (index {index})" for path, index in lost)
        raise StateError(
            f"merge: references into another split at {names}: merge what was split together in one merge_context()."
        )


def _own_values(
    graphdef: GraphDef[Any], states: tuple[StateLike, ...], *, metadata: bool
) -> dict[int, tuple[Json, FrozenDict]] | None:
    """Take what needs no further look: leaves at canonical paths, each once, of the very schemas of the graph.

    Returns:
        The value and metadata of every Variable; None where anything is not as simple as that.
    """
    paths, definitions = graphdef.leaf_paths, graphdef.definitions
    values: dict[int, tuple[Json, FrozenDict]] = {}
    for state in states:
        if type(state) is not State:
            return None
        for path, leaf in state.items():
            index = paths.get(path)
            if index is None or index in values:
                return None
            definition: Any = definitions[index]
            if leaf.schema is not definition.schema or leaf.type is not definition.type:
                return None
            values[index] = leaf.value, leaf.metadata if metadata else definition.metadata
    if len(values) < len(paths) and any(index not in values and index not in graphdef.kept for index in paths.values()):
        return None
    return values


def checked_values(
    graphdef: GraphDef[Any], states: tuple[StateLike, ...], what: str, *, overwrite: bool, metadata: bool
) -> dict[int, tuple[Json, FrozenDict]]:
    """Find the value and metadata of every Variable of a graph.

    Raises:
        StateError: Leaves are missing, unknown, or do not fit.
        StateSchemaError: Values miss their schemas.
    """
    definitions: Any = graphdef.definitions
    layout = Layout(lambda: (graphdef.root, definitions), graphdef.leaf_paths)
    found = gather(layout, states, lambda index: definitions[index].schema, what, overwrite=overwrite)
    faults = [*found.faults, *_missing(graphdef, found), *found.misfit_faults("Got state for static field")]
    values: dict[int, tuple[Json, FrozenDict]] = {}
    for index, leaf in found.leaves.items():
        definition: VariableDef = definitions[index]
        if leaf.type is not None and leaf.type is not definition.type:
            text = f"{path_str(leaf.path)!r}: expected a {definition.type.__name__}, got a {leaf.type.__name__}"
            faults.append(Fault(index, text))
        says = leaf.metadata if metadata and leaf.metadata is not None else definition.metadata
        values[index] = leaf.value, says
    raise_faults(what, faults)
    return values


def _missing(graphdef: GraphDef[Any], found: Gathered) -> list[Fault]:
    """Say which Variables got no value; kept ones have theirs."""
    faulty = {fault.order for fault in found.faults}
    return [
        Fault(index, f"Expected key {path_str(path)!r} ({graphdef.definitions[index].type.__name__}): no value given")
        for path, index in graphdef.leaf_paths.items()
        if index not in found.leaves and index not in graphdef.kept and index not in faulty
    ]
