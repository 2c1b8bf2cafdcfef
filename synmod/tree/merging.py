"""Split a program into structure and State, merge them again; clone and call programs by the same means."""

import inspect
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any, Generic, Literal, TypeAlias, TypeVar, cast, overload

from synmod.errors import ArgumentError, StateError
from synmod.leaves import FrozenDict, Json, check_choice, checks_keywords, path_str, unflatten_one_level

from . import inspecting
from .filters import FilterLike, select, to_filter
from .graphdef import REFERENCES, ContainerDef, GraphDef, NodeDef, Recording, StaticDef, VariableDef, record
from .states import LeafFault, State, StateLike, fit, partition, raise_faults
from .variable import Variable
from .walk import Impls

M = TypeVar("M")
F = TypeVar("F", bound=Callable[..., Any])

Shared: TypeAlias = Literal["allow", "error"]
Values: TypeAlias = "Mapping[int, tuple[Json, FrozenDict]]"
"""Value and metadata of Variables by index."""


# -- split -------------------------------------------------------------------------------------------------------------


@overload
def split(node: M, only: FilterLike = ..., /, *, shared: Shared = "allow") -> tuple[GraphDef[M], State]: ...
@overload
def split(node: M, *filters: FilterLike, shared: Shared = "allow") -> tuple[GraphDef[M], *tuple[State, ...]]: ...
@checks_keywords
def split(node: M, *filters: FilterLike, shared: Shared = "allow") -> tuple[GraphDef[M], *tuple[State, ...]]:
    """Split a program into structure and State.

    Args:
        node: A Module, a registered node, a Variable, or a list or dict of them.
        *filters: One State per filter; a leaf goes to the first filter that matches. `...`, in the last place, takes
            the rest.
        shared: `"error"` refuses objects with two paths.

    Returns:
        `(graphdef, state)`, or `(graphdef, state1, state2, ...)` for several filters.

    Raises:
        ArgumentError: `node` cannot be the root of a graph, or a filter is invalid.
        StateError: A Variable matches no filter, or `shared="error"` finds a Duplicate.
        GraphError: The graph cannot be walked.

    Example:
        >>> from synmod.tree import Memory, Param
        >>> graphdef, params, rest = split({"a": Param("x"), "b": Memory([])}, Param, ...)
        >>> params.to_json(), rest.to_json()
        ({'a': 'x'}, {'b': []})

    Source: Flax NNX `split`.
    """
    check_choice("split: shared", shared, ("allow", "error"))
    if shared == "error":
        twice = inspecting.find_duplicates(node)
        if twice:
            lines = "; ".join(" and ".join(repr(path_str(path)) for path in paths) for paths in twice)
            raise StateError(f"Duplicate: the same object at {lines}. Use shared='allow', or clone one of them.")
    recorded = record(node)
    return recorded.graphdef, *states_of(recorded, filters)


def states_of(recorded: Recording[Any], filters: Sequence[FilterLike] = ()) -> list[State]:
    """Return snapshots of the Variables of a recording, one State per filter.

    Raises:
        ArgumentError: A filter is invalid.
        StateError: A Variable matches no filter, or `...` is not the last filter.
    """
    leaves = zip(recorded.graphdef.leaf_paths, recorded.leaves, strict=True)
    if not filters:
        return [State.of_leaves({path: visit.value.to_state() for path, visit in leaves})]
    parts = partition([(path, visit.value, visit.masked) for path, visit in leaves], list(map(to_filter, filters)))
    return [State.of_leaves({path: variable.to_state() for path, variable in part}) for part in parts]


def state(node: Any, filter: FilterLike = ...) -> State:  # noqa: A002  (the public name)
    """Return a snapshot of the Variables.

    Args:
        node: A program.
        filter: Selects the Variables; all by default.

    Returns:
        A State.

    Raises:
        ArgumentError: `node` cannot be the root of a graph, or the filter is invalid.

    Example:
        >>> from synmod.tree import Param
        >>> state({"a": Param("x")})["a"].value
        'x'

    Source: Flax NNX `state`.
    """
    visits = select(node, filter, "variable")
    return State.of_leaves({visit.path: visit.value.to_state() for visit in visits if visit.first})


def variables(node: Any, filter: FilterLike = ...) -> dict[str, Variable]:  # noqa: A002  (likewise)
    """Return the live Variables by path text, where `state` returns snapshots.

    Args:
        node: A program.
        filter: Selects the Variables; all by default.

    Raises:
        ArgumentError: As for `state`.

    Example:
        >>> from synmod.tree import Param
        >>> program = {"a": Param("x")}
        >>> variables(program, Param)["a"] is program["a"]
        True

    Source: Flax NNX `variables`.
    """
    return {path_str(visit.path): visit.value for visit in select(node, filter, "variable") if visit.first}


def graphdef(node: M) -> GraphDef[M]:
    """Return the structure without the values.

    Raises:
        ArgumentError: `node` cannot be the root of a graph.

    Example:
        >>> from synmod.tree import Param
        >>> len(graphdef([Param("x"), Param("y")]).variables)
        2

    Source: Flax NNX `graphdef`.
    """
    return record(node).graphdef


# -- merge -------------------------------------------------------------------------------------------------------------


@checks_keywords
def merge(
    graphdef: GraphDef[M], state: StateLike, *states: StateLike, overwrite: bool = False, metadata: bool = False
) -> M:
    """Rebuild a program from the parts that `split` returned.

    The objects are new, made without running `__init__` or `build`: shared children are shared again, cycles are closed
    again, and built modules are built. By-reference nodes (language models) and statics are the same objects.

    Args:
        graphdef: Structure, as returned by `split`.
        state: A State, or values by path text; alias paths are accepted.
        *states: More parts, in any order.
        overwrite: Let the later State win if two have different values for one path.
        metadata: Take the metadata from the States instead of the graph.

    Returns:
        A program equal to the one split, but not the same object.

    Schemas:
        states: {path: JSON that satisfies the Variable's schema}

    Raises:
        StateError: A Variable is in no State ('Expected key'), or a State does not fit. Names every path.
        StateSchemaError: Values do not satisfy their schemas.
        ArgumentError: `graphdef` is not a GraphDef, or an argument is not a State.

    Example:
        >>> from synmod.tree import Param, split
        >>> graphdef, state = split({"a": Param("x")})
        >>> merge(graphdef, state)["a"].value
        'x'

    Source: Flax NNX `merge`; differs: values are validated, conflicts refused.
    """
    graphdef = whole_graphdef(graphdef)
    check_references(graphdef, {})
    values = fit_values(graphdef, (state, *states), "merge", overwrite=overwrite, metadata=metadata)
    return build_graph(graphdef, values, dict(graphdef.by_reference))


def whole_graphdef(graphdef: Any) -> GraphDef[Any]:
    """Return a GraphDef; of a reference, the graph that is nothing else (ArgumentError for anything else)."""
    if type(graphdef) in REFERENCES:
        return GraphDef(graphdef, {}, {}, foreign={graphdef.index: ()})
    if not isinstance(graphdef, GraphDef):
        raise ArgumentError(f"merge takes the GraphDef that split returned, and States; got {graphdef!r:.200}.")
    return graphdef  # pyright: ignore[reportUnknownVariableType]  # of any root


def check_references(graphdef: GraphDef[Any], objects: Mapping[int, Any]) -> None:
    """Raise StateError if a graph refers to objects of another split that are not in `objects`."""
    lost = [f"{path_str(path)!r} (index {index})" for index, path in graphdef.foreign.items() if index not in objects]
    if lost:
        raise StateError(
            f"merge: references into another split at {', '.join(lost)}: merge the parts of one split_context() in one "
            "merge_context()."
        )


def fit_values(
    graphdef: GraphDef[Any], states: Sequence[StateLike], what: str, *, overwrite: bool = False, metadata: bool = False
) -> Values:
    """Return the value and metadata of every Variable of a graph.

    Raises:
        StateError: Leaves are missing, unknown, or do not fit.
        StateSchemaError: Values do not satisfy their schemas.
    """
    definitions: Any = graphdef.definitions
    leaves = states[0].flat() if len(states) == 1 and type(states[0]) is State and not metadata else {}
    if leaves and leaves.keys() == graphdef.leaf_paths.keys():
        own = [(index, leaves[path], definitions[index]) for path, index in graphdef.leaf_paths.items()]
        if all(leaf.schema is variable.schema and leaf.type is variable.type for _, leaf, variable in own):
            return {index: (leaf.value, variable.metadata) for index, leaf, variable in own}
    fitted, faults = fit(graphdef, states, what, overwrite=overwrite)
    faulty = {fault.order for fault in faults}
    values: dict[int, tuple[Json, FrozenDict]] = {}
    for path, index in graphdef.leaf_paths.items():
        definition: VariableDef = definitions[index]
        leaf = fitted.get(index)
        if leaf is None:
            if index not in faulty:
                text = f"Expected key {path_str(path)!r} ({definition.type.__name__}): no value given"
                faults.append(LeafFault(index, text))
            continue
        if leaf.type is not None and leaf.type is not definition.type:
            text = f"{path_str(leaf.path)!r}: expected a {definition.type.__name__}, got a {leaf.type.__name__}"
            faults.append(LeafFault(index, text))
        labels = leaf.metadata if metadata and leaf.metadata is not None else definition.metadata
        values[index] = leaf.value, labels
    raise_faults(what, faults)
    return values


def build_graph(graphdef: GraphDef[M], values: Values, objects: dict[int, Any], *, unsealed: bool = False) -> M:
    """Make the objects of a graph, without running any `__init__`.

    Args:
        graphdef: The structure.
        values: Value and metadata of each new Variable by index.
        objects: Existing objects by index, used as they are; new objects are added. Must contain every object that the
            graph refers to without defining it.
        unsealed: Whether to leave the structure of new modules open for editing, even if the graph has it sealed.

    Returns:
        The root.

    Raises:
        GraphError: A node type is not registered in this process.
    """
    new = [definition for definition in graphdef.definitions.values() if definition.index not in objects]
    impls = Impls()
    nodes: list[NodeDef] = []
    for definition in new:
        if isinstance(definition, VariableDef):
            value, metadata = values[definition.index]
            objects[definition.index] = definition.type.of_parts(value, definition.schema, metadata)
        else:
            nodes.append(definition)
            objects[definition.index] = impls[definition.type].make(definition.metadata)
    for node in reversed(nodes):  # children first: a node is filled with complete nodes
        impl, instance = impls[node.type], objects[node.index]
        if node.refers:
            metadata = resolve_references(node.metadata, impl.map_refs, objects)
            if metadata is not node.metadata:
                impl.adopt(instance, metadata)
        impl.fill(instance, pairs_of(node, objects))
        if unsealed:
            impl.unseal(instance)
    return _realise(graphdef.root, objects)


def resolve_references(
    metadata: Any, map_refs: Callable[[Any, Callable[[Any], Any]], Any], objects: Mapping[int, Any]
) -> Any:
    """Return metadata with its references replaced by objects."""
    return map_refs(metadata, lambda x: objects[x.index] if type(x) in REFERENCES else x)


def pairs_of(node: NodeDef, objects: Mapping[int, Any]) -> list[tuple[Any, Any]]:
    """Return the children of a node with their keys. Hot, so the common cases are written out."""
    pairs: list[tuple[Any, Any]] = []
    step: Any
    term: Any
    for step, term in node.attributes:
        kind = type(term)  # pyright: ignore[reportUnknownVariableType]  (hot: no `class_of`)
        if kind in REFERENCES:
            pairs.append((step, objects[term.index]))
        elif kind is StaticDef:
            pairs.append((step, term.value))
        else:
            pairs.append((step, _realise(term, objects)))
    return pairs


def _realise(term: Any, objects: Mapping[int, Any]) -> Any:
    """Return the object of a term; containers are new."""
    if type(term) in REFERENCES:
        return objects[term.index]
    if isinstance(term, ContainerDef):
        terms: tuple[Any, ...] = term.children
        children = [objects[part.index] if type(part) in REFERENCES else _realise(part, objects) for part in terms]
        return unflatten_one_level(term.type, term.steps, term.aux, children)
    return term.value


# -- copies ------------------------------------------------------------------------------------------------------------


def clone(node: M, share: FilterLike = None) -> M:
    """Copy a program.

    Objects shared inside the program are shared inside the copy; cycles are closed again. Statics and by-reference
    nodes (language models) are the same objects; counters of modules start at zero, and the copy has no hooks.

    Args:
        node: A program.
        share: Selects Variables that the program and its copy share; none by default.

    Returns:
        A copy of the same type.

    Raises:
        ArgumentError: `node` cannot be the root of a graph, or the filter is invalid.
        GraphError: The graph cannot be walked.

    Example:
        >>> from synmod.tree import Param
        >>> twin = clone({"a": Param("x")})
        >>> twin["a"].value
        'x'

    Source: Flax NNX `clone`.
    """
    shared = to_filter(share)
    recorded = record(node)
    objects = dict(recorded.graphdef.by_reference)
    for path, visit in zip(recorded.graphdef.leaf_paths, recorded.leaves, strict=True):
        if visit.index is not None and shared.matches(path, visit.value, visit.masked):
            objects[visit.index] = visit.value
    return _copy(recorded, objects)


def deepcopy_node(node: M, memo: dict[int, Any]) -> M:
    """Copy a node for `copy.deepcopy`: a clone that refers to the objects already copied in `memo`."""
    recorded = record(node)
    objects = dict(recorded.graphdef.by_reference)
    objects.update({index: memo[id(old)] for index, old in recorded.objects.items() if id(old) in memo})
    copy = _copy(recorded, objects)
    for index, old in recorded.objects.items():
        memo[id(old)] = objects[index]
    memo.setdefault(id(memo), []).append(recorded.objects)  # deepcopy's way to keep the originals alive
    return copy


def _copy(recorded: Recording[M], objects: dict[int, Any]) -> M:
    values = {
        definition.index: (recorded.objects[definition.index].value, definition.metadata)
        for definition in recorded.graphdef.definitions.values()
        if isinstance(definition, VariableDef) and definition.index not in objects
    }
    return build_graph(recorded.graphdef, values, objects)


# -- methods on a private copy -----------------------------------------------------------------------------------------


def call(parts: tuple[GraphDef[M], *tuple[StateLike, ...]]) -> "PureCall[M]":
    """Call methods of a split program: `out, (graphdef, state) = await sm.call((graphdef, state)).encode(x)`.

    Attributes and items of the proxy select a part of the program; a call runs it on a private copy made by `merge`. A
    plain method is not awaited. The original is untouched, and concurrent calls with other States are independent.

    Args:
        parts: The result of `split`: the graph and one or more States.

    Returns:
        A proxy. A call returns `(out, (graphdef, state))`; the graph is the same object if the structure is unchanged.

    Raises:
        ArgumentError: `parts` is not the result of `split`.
        StateError: (when called) The States do not fit.

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

    Source: Flax NNX `call`, Sonnet `transform`; differs: any method, also async.
    """
    if not isinstance(parts, tuple) or len(parts) < 2 or not isinstance(parts[0], GraphDef):  # pyright: ignore[reportUnnecessaryIsInstance, reportUnnecessaryComparison]  (not all callers are typed)
        raise ArgumentError(f"call takes the pair that split returned, (graphdef, state); got {parts!r:.200}.")
    return PureCall(parts[0], parts[1:], ())


class PureCall(Generic[M]):
    """A part of a split program to call; returned by `call`."""

    __slots__ = ("__graphdef", "__states", "__steps")  # mangled names hide no attribute of a program

    def __init__(
        self, graphdef: GraphDef[M], states: tuple[StateLike, ...], steps: tuple[Callable[[Any], Any], ...]
    ) -> None:
        self.__graphdef = graphdef
        self.__states = states
        self.__steps = steps

    def __getattr__(self, name: str) -> "PureCall[M]":
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        return PureCall(self.__graphdef, self.__states, (*self.__steps, lambda x: getattr(x, name)))

    def __getitem__(self, key: Any) -> "PureCall[M]":
        return PureCall(self.__graphdef, self.__states, (*self.__steps, lambda x: x[key]))

    __iter__ = None  # without it Python would iterate by way of __getitem__

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        """Call this part of the program on a private copy made by `merge`."""
        first = self.__graphdef
        target: Any = (root := merge(first, *self.__states))
        for step in self.__steps:
            target = step(target)
        out = target(*args, **kwargs)

        def parts() -> tuple[GraphDef[Any], State]:
            graphdef, state = split(root)
            return (first if graphdef == first else graphdef), state

        async def await_output() -> Any:
            return await cast("Coroutine[Any, Any, Any]", out), parts()

        return await_output() if inspect.iscoroutine(out) else (out, parts())
