"""A program as a pair: split into structure and State, merged again, cloned, called."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any, Final, Generic, Literal, TypeAlias, TypeVar, cast, overload

from synmod.errors import ArgumentError, GraphError, StateError
from synmod.leaves.frozen import FrozenDict, Json
from synmod.leaves.names import KeyPath, path_str

from .filters import Everything, Filter, FilterLike, to_filter
from .fitting import Fault, Finder, StateLike, fit, raise_faults
from .graphdef import (
    ContainerDef,
    Definition,
    GraphDef,
    NodeDef,
    NodeRef,
    Recording,
    StaticDef,
    VariableDef,
    VariableRef,
    paths_to,
    record,
)
from .looking import find_duplicates
from .nodes import Impls, own_impl, put_together
from .states import State, partition
from .variable import Variable, VariableState
from .walk import check_root, walk

M = TypeVar("M")

Shared: TypeAlias = Literal["allow", "error"]
Values: TypeAlias = "Mapping[int, tuple[Json, FrozenDict]]"
"""Value and metadata of Variables by index."""


# -- apart -------------------------------------------------------------------------------------------------------------


@overload
def split(node: M, *, shared: Shared = "allow") -> tuple[GraphDef[M], State]: ...
@overload
def split(node: M, only: FilterLike, /, *, shared: Shared = "allow") -> tuple[GraphDef[M], State]: ...
@overload
def split(node: M, *filters: FilterLike, shared: Shared = "allow") -> tuple[GraphDef[M], *tuple[State, ...]]: ...
def split(node: M, *filters: FilterLike, shared: Shared = "allow") -> tuple[GraphDef[M], *tuple[State, ...]]:
    """Take a program apart into structure and State.

    Args:
        node: A Module, a registered node, a Variable, or a list or dict of them.
        *filters: A State is made for each; the first that matches takes a leaf. `...` takes the rest and comes last.
        shared: `"error"` refuses objects with two paths.

    Returns:
        `(graphdef, state)`, or `(graphdef, state1, state2, ...)` for several filters.

    Raises:
        ArgumentError: `node` holds no graph, or a filter is not one.
        StateError: The filters leave something over, or `shared="error"` finds a Duplicate.
        GraphError: The walk cannot be made.

    Example:
        >>> from synmod.tree import Memory, Param
        >>> graphdef, params, rest = split({"a": Param("x"), "b": Memory([])}, Param, ...)
        >>> params.to_json(), rest.to_json()
        ({'a': 'x'}, {'b': []})

    Source: Flax NNX `split`.
    """
    parts_for = [to_filter(each) for each in filters]
    if shared not in ("allow", "error"):
        raise ArgumentError(f"shared must be 'allow' or 'error', not {shared!r}.")
    if shared == "error":
        twice = find_duplicates(node)
        if twice:
            lines = "; ".join(" and ".join(repr(path_str(path)) for path in paths) for paths in twice)
            raise StateError(f"Duplicate: the same object at {lines}. Use shared='allow', or clone one of them.")
    taken = record(node)
    return taken.graphdef, *states_of(taken, parts_for)


def states_of(taken: Recording[Any], filters: Sequence[Filter] = ()) -> list[State]:
    """Snapshot the Variables of a recording, a State for each filter.

    Raises:
        StateError: The filters leave something over, or `...` is not the last.
    """
    leaves = zip(taken.graphdef.leaf_paths, taken.leaves, strict=True)
    if not filters:
        return [State.of_leaves({path: visit.value.to_state() for path, visit in leaves})]
    parts = partition([(path, visit.value, visit.masked) for path, visit in leaves], filters)
    return [State.of_leaves({path: variable.to_state() for path, variable in part}) for part in parts]


def state(node: Any, filter: FilterLike = ...) -> State:  # noqa: A002  (the word of the contract)
    """Take a snapshot of the values.

    Args:
        node: A program.
        filter: What to take; everything by default.

    Returns:
        A State.

    Raises:
        ArgumentError: `node` holds no graph, or the filter is not one.

    Example:
        >>> from synmod.tree import Param
        >>> state({"a": Param("x")})["a"].value
        'x'

    Source: Flax NNX `state`.
    """
    return State.of_leaves({path: variable.to_state() for path, variable in _taken(node, filter)})


def variables(node: Any, filter: FilterLike = ...) -> dict[str, Variable]:  # noqa: A002  (likewise)
    """Return the live Variables by path text, as `state` takes snapshots.

    Args:
        node: A program.
        filter: What to take; everything by default.

    Raises:
        ArgumentError: As `state`.

    Example:
        >>> from synmod.tree import Param
        >>> program = {"a": Param("x")}
        >>> variables(program, Param)["a"] is program["a"]
        True

    Source: Flax NNX `variables`.
    """
    return {path_str(path): variable for path, variable in _taken(node, filter)}


def _taken(node: Any, filter: FilterLike) -> list[tuple[KeyPath, Variable]]:  # noqa: A002  (likewise)
    check_root(node)
    wanted = to_filter(None if filter is None else filter)
    visits = [visit for visit in walk(node) if visit.kind == "variable" and visit.first]
    return [
        (path, visit.value)
        for path, visit in zip(paths_to(visits), visits, strict=True)
        if isinstance(wanted, Everything) or wanted.matches(path, visit.value, visit.masked)
    ]


def graphdef(node: M) -> GraphDef[M]:
    """Return the structure alone.

    Raises:
        ArgumentError: `node` holds no graph.

    Example:
        >>> from synmod.tree import Param
        >>> len(graphdef([Param("x"), Param("y")]).variables)
        2

    Source: Flax NNX `graphdef`.
    """
    return record(node).graphdef


# -- together ----------------------------------------------------------------------------------------------------------


def merge(
    graphdef: GraphDef[M], state: StateLike, *states: StateLike, overwrite: bool = False, metadata: bool = False
) -> M:
    """Rebuild the program that `split` took apart.

    New objects, made without running `__init__` or `build`: shared children are shared again, cycles are closed again,
    and what was built is built. By-reference nodes (language models) and statics are the same objects.

    Args:
        graphdef: Shape, as returned by `split`.
        state: A State, or values by path text; alias paths are accepted.
        *states: More parts, in any order.
        overwrite: Let a later State win where two have different values for one path.
        metadata: Take the metadata of the States instead of that of the graph.

    Returns:
        A program equal to the one split; `is` differs.

    Schemas:
        states: {path: JSON that satisfies the Variable's schema}

    Raises:
        StateError: A Variable is in no State ('Expected key'), or a State does not fit. Names every path.
        StateSchemaError: Values do not satisfy their schemas.
        ArgumentError: Something is not a GraphDef, or not a State.

    Example:
        >>> from synmod.tree import Param, split
        >>> graphdef, state = split({"a": Param("x")})
        >>> merge(graphdef, state)["a"].value
        'x'

    Source: Flax NNX `merge`; differs: values are validated, conflicts refused.
    """
    if not isinstance(graphdef, GraphDef):  # pyright: ignore[reportUnnecessaryIsInstance]  (not all callers are typed)
        raise ArgumentError(f"merge takes the GraphDef that split returned, and States; got {graphdef!r:.200}.")
    check_references(graphdef, {})
    values = checked_values(graphdef, (state, *states), "merge", overwrite=overwrite, metadata=metadata)
    return build_graph(graphdef, values, dict(graphdef.kept))


def check_references(graphdef: GraphDef[Any], objects: Mapping[int, Any]) -> None:
    """Raise StateError where a graph refers to another split whose objects are not here."""
    lost = [f"{path_str(path)!r} (index {index})" for index, path in graphdef.foreign.items() if index not in objects]
    if lost:
        raise StateError(
            f"merge: references into another split at {', '.join(lost)}: merge what was split together in one "
            "merge_context()."
        )


def checked_values(
    graphdef: GraphDef[Any], states: Sequence[StateLike], what: str, *, overwrite: bool = False, metadata: bool = False
) -> Values:
    """Find the value and metadata of every Variable of a graph.

    Raises:
        StateError: Leaves are missing, unknown, or do not fit.
        StateSchemaError: Values do not satisfy their schemas.
    """
    definitions: Any = graphdef.definitions
    if len(states) == 1 and type(states[0]) is State and not metadata:
        own = _values_of_own_state(graphdef, states[0].flat())
        if own is not None:
            return own
    fitted = fit(Finder(graphdef), states, lambda index: definitions[index].schema, what, overwrite=overwrite)
    faults = fitted.all_faults("Got state for static field")
    faulty = {fault.order for fault in faults}
    values: dict[int, tuple[Json, FrozenDict]] = {}
    for path, index in graphdef.leaf_paths.items():
        definition: VariableDef = definitions[index]
        leaf = fitted.leaves.get(index)
        if leaf is None:
            if index not in faulty:
                text = f"Expected key {path_str(path)!r} ({definition.type.__name__}): no value given"
                faults.append(Fault(index, text))
            continue
        if leaf.type is not None and leaf.type is not definition.type:
            text = f"{path_str(leaf.path)!r}: expected a {definition.type.__name__}, got a {leaf.type.__name__}"
            faults.append(Fault(index, text))
        labels = leaf.metadata if metadata and leaf.metadata is not None else definition.metadata
        values[index] = leaf.value, labels
    raise_faults(what, faults)
    return values


def _values_of_own_state(graphdef: GraphDef[Any], leaves: Mapping[KeyPath, VariableState]) -> Values | None:
    """The values, where each leaf is exactly what the graph has at its path, as in what `split` returned; else None."""
    if leaves.keys() != graphdef.leaf_paths.keys():
        return None
    values: dict[int, tuple[Json, FrozenDict]] = {}
    for path, index in graphdef.leaf_paths.items():
        leaf = leaves[path]
        definition: Any = graphdef.definitions[index]
        if leaf.schema is not definition.schema or leaf.type is not definition.type:
            return None
        values[index] = leaf.value, definition.metadata
    return values


_REFERENCES: Final = frozenset({NodeRef, VariableRef})


def build_graph(graphdef: GraphDef[M], values: Values, objects: dict[int, Any], *, unsealed: bool = False) -> M:
    """Make the objects of a graph, without running any `__init__`.

    Args:
        graphdef: The structure.
        values: Value and metadata of each new Variable by index.
        objects: What is there already, by index, and is used as it is; new objects are added. Whatever the graph refers
            to and does not define must be here.
        unsealed: Whether the structure of new modules is open for editing, whatever the graph has of them.

    Returns:
        What stands at the root.

    Raises:
        GraphError: A node type is not registered here.
    """
    new: list[Definition] = [each for each in graphdef.definitions.values() if each.index not in objects]
    for cls in {each.type for each in new if type(each) is NodeDef}:
        if own_impl(cls) is None:
            raise GraphError(f"Unknown node type {cls.__module__}.{cls.__qualname__}: register it first.")
    impls = Impls()
    nodes: list[NodeDef] = []
    for each in new:
        if isinstance(each, VariableDef):
            value, metadata = values[each.index]
            objects[each.index] = each.type.of_parts(value, each.schema, metadata)
        else:
            nodes.append(each)
            objects[each.index] = impls[each.type].make(each.metadata)
    for node in reversed(nodes):  # what is below comes later: a node is filled with nodes that are full
        impl, made = impls[node.type], objects[node.index]
        if impl.map_refs is not None and impl.adopt is not None:
            metadata = resolved(node.metadata, impl.map_refs, objects)
            if metadata is not node.metadata:
                impl.adopt(made, metadata)
        impl.fill(made, pairs_of(node, objects))
        if unsealed and impl.unseal is not None:
            impl.unseal(made)
    return realised(graphdef.root, objects)


def resolved(metadata: Any, map_refs: Callable[[Any, Callable[[Any], Any]], Any], objects: Mapping[int, Any]) -> Any:
    """Metadata with objects in the place of its references."""
    return map_refs(metadata, lambda x: objects[x.index] if type(x) in _REFERENCES else x)


def pairs_of(node: NodeDef, objects: Mapping[int, Any]) -> list[tuple[Any, Any]]:
    """The children of a node with their keys. Hot, so what is most common is written out."""
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


def realised(term: Any, objects: Mapping[int, Any]) -> Any:
    """The object that a term stands for; containers are put together anew."""
    if type(term) in _REFERENCES:
        return objects[term.index]
    if isinstance(term, ContainerDef):
        terms: tuple[Any, ...] = term.children
        children = [objects[each.index] if type(each) in _REFERENCES else realised(each, objects) for each in terms]
        return put_together(term.type, term.steps, children, term.aux)
    return term.value


# -- copies ------------------------------------------------------------------------------------------------------------


def clone(node: M, share: FilterLike = None) -> M:
    """Copy a program.

    What is shared inside stays shared inside the copy, cycles are closed again. Statics and by-reference nodes
    (language models) are the same objects; counters of modules start at zero, and the copy has no hooks.

    Args:
        node: A program.
        share: Filter for Variables that both have in common.

    Returns:
        A copy of the same type.

    Raises:
        ArgumentError: `node` holds no graph, or the filter is not one.
        GraphError: The walk cannot be made.

    Example:
        >>> from synmod.tree import Param
        >>> twin = clone({"a": Param("x")})
        >>> twin["a"].value
        'x'

    Source: Flax NNX `clone`.
    """
    wanted = to_filter(share)
    taken = record(node)
    objects = dict(taken.graphdef.kept)
    for path, visit in zip(taken.graphdef.leaf_paths, taken.leaves, strict=True):
        if visit.index is not None and wanted.matches(path, visit.value, visit.masked):
            objects[visit.index] = visit.value
    return _copied(taken, objects)


def deepcopy_node(node: M, memo: dict[int, Any]) -> M:
    """What `copy.deepcopy` does with a node: a clone that refers to what was copied beside it."""
    taken = record(node)
    objects = dict(taken.graphdef.kept)
    objects.update({index: memo[id(old)] for index, old in taken.objects.items() if id(old) in memo})
    copy = _copied(taken, objects)
    for index, old in taken.objects.items():
        memo[id(old)] = objects[index]
    memo.setdefault(id(memo), []).append(taken.objects)  # deepcopy's way to keep the originals alive
    return copy


def _copied(taken: Recording[M], objects: dict[int, Any]) -> M:
    values = {
        each.index: (taken.objects[each.index].value, each.metadata)
        for each in taken.graphdef.definitions.values()
        if isinstance(each, VariableDef) and each.index not in objects
    }
    return build_graph(taken.graphdef, values, objects)


# -- methods on a private copy -----------------------------------------------------------------------------------------


def call(parts: tuple[GraphDef[M], *tuple[StateLike, ...]]) -> PureCall[M]:
    """Call methods of a program that came apart: `out, (graphdef, state) = await sm.call((graphdef, state)).encode(x)`.

    Attributes and items walk down; a call runs the method on a private merge. A plain method returns its result at
    once. The original is untouched, and calls with other States at the same time are independent.

    Args:
        parts: What `split` returned: the graph and one or more States.

    Returns:
        A proxy. A call returns `(out, (graphdef, state))`; the same graph where the structure is unchanged.

    Raises:
        ArgumentError: `parts` is something else.
        StateError: (of a call) The States do not fit.

    Example:
        >>> import synmod as sm
        >>> class Counter(sm.Module):
        ...     def __init__(self):
        ...         self.count = sm.Stat(0)
        ...     def add(self, n):
        ...         self.count.assign(self.count.value + n)
        ...         return self.count.value
        >>> out, (graphdef, state) = sm.call(sm.split(Counter())).add(2)
        >>> out, state["count"].value
        (2, 2)

    Source: Flax NNX `call`, Sonnet `transform`; differs: async methods, any of them.
    """
    if not isinstance(parts, tuple) or len(parts) < 2 or not isinstance(parts[0], GraphDef):  # pyright: ignore[reportUnnecessaryIsInstance, reportUnnecessaryComparison]  (not all callers are typed)
        raise ArgumentError(f"call takes the pair that split returned, (graphdef, state); got {parts!r:.200}.")
    return PureCall(parts[0], parts[1:], ())


class PureCall(Generic[M]):
    """A place in a program that came apart; what `call` returns."""

    __slots__ = ("__graphdef", "__states", "__steps")  # names that hide no attribute of a program

    def __init__(
        self, graphdef: GraphDef[M], states: tuple[StateLike, ...], steps: tuple[Callable[[Any], Any], ...]
    ) -> None:
        self.__graphdef = graphdef
        self.__states = states
        self.__steps = steps

    def __getattr__(self, name: str) -> PureCall[M]:
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        return PureCall(self.__graphdef, self.__states, (*self.__steps, lambda x: getattr(x, name)))

    def __getitem__(self, key: Any) -> PureCall[M]:
        return PureCall(self.__graphdef, self.__states, (*self.__steps, lambda x: x[key]))

    __iter__ = None  # without it Python would iterate by way of __getitem__

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        """Run what stands here on a private merge."""
        first = self.__graphdef
        target: Any = (root := merge(first, *self.__states))
        for step in self.__steps:
            target = step(target)
        out = target(*args, **kwargs)

        def parts() -> tuple[GraphDef[Any], State]:
            graphdef, state = split(root)
            return (first if graphdef == first else graphdef), state

        async def waited() -> Any:
            return await cast("Coroutine[Any, Any, Any]", out), parts()

        return waited() if inspect.iscoroutine(out) else (out, parts())
