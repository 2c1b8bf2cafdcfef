"""Change a live program: permanently (`update`, `set_metadata`, `set_attributes`, `pop`), or in a block (`using`).

Every check comes before the first write. `capture` is the block that collects the values that modules sow.
"""

import threading
from collections.abc import Iterable, Mapping
from inspect import getattr_static
from typing import Any, Final, NamedTuple, Self, cast

from synmod import data, errors, scope
from synmod.leaves import DICTS, FrozenDict, Json, KeyPath, checks_keywords, did_you_mean, frozen, path_str

from .filters import FilterLike, select
from .graphdef import record
from .paths import PathTable, path_table
from .states import Leaf, LeafFault, State, StateLike, check_leaf, fit, leaves_of, raise_faults
from .variable import MISSING, Layer, Variable, VariableState, Write, class_of, snapshot, validate_metadata
from .walk import NODE, Visit, get_node_impl, holds_node, kind_of, walk


@checks_keywords
def update(node: Any, *states: StateLike, allow_extra: bool = False, metadata: bool = False) -> tuple[KeyPath, ...]:
    """Write values into the live Variables of a program.

    Every check comes before the first write. Variables without a given value are left alone; equal values are not
    assigned. Inside an overlay of the program the values go to the overlay.

    Args:
        node: A program.
        *states: States or values by path text; alias paths are accepted.
        allow_extra: Skip unknown paths.
        metadata: Take the metadata of the States too.

    Returns:
        The changed paths, in definition order.

    Raises:
        StateError: A path is unknown, leads to a static or a subgraph, or has two values.
        StateSchemaError: Values do not satisfy the live schemas.
        ArgumentError: `node` cannot be the root of a graph, or something is not a State.

    Example:
        >>> from synmod.tree import Param
        >>> program = {"a": Param("x"), "b": Param("y")}
        >>> update(program, {"a": "z"})
        (('a',),)

    Source: Flax NNX `update`; differs: atomic, validated.
    """
    table = path_table(node, sealed=True)
    values = None if metadata else values_by_path(table, states, "update")
    labels: dict[int, FrozenDict | None] = {}
    if values is None:
        static = "Trying to update a non-Variable:"
        leaves = fit_graph(node, states, "update", static, allow_unknown=allow_extra)
        values = {key: leaf.value for key, leaf in leaves.items()}
        labels = {key: leaf.metadata for key, leaf in leaves.items()} if metadata else {}
    writes: list[tuple[KeyPath, Write]] = []
    faults: list[LeafFault] = []
    for path, variable in table.variables.items():
        key = id(variable)
        if key not in values:
            continue
        try:
            write = Write(variable, values[key], labels.get(key))
        except errors.SchemaError as error:  # raised by the `on_assign` of the class
            where = path_str(path)
            missed = error.errors or (errors.Problem("", "a value that its class accepts", str(error)),)
            problems = tuple(problem._replace(pointer=f"{where}#{problem.pointer}") for problem in missed)
            faults.append(LeafFault(len(faults), f"{where!r}: {error}", problems))
        else:
            if write.is_change:
                writes.append((path, write))
    raise_faults("update", faults)
    write_all([write for _, write in writes])
    return tuple(path for path, _ in writes)


def values_by_path(table: PathTable, states: Iterable[StateLike], what: str) -> dict[int, Json] | None:
    """Return the values of States by the identity of their Variables.

    Returns:
        None if only the graph can tell: a path is not canonical or occurs twice, or a value is invalid.

    Raises:
        ArgumentError: An argument is neither a State nor a dict by path.
    """
    values: dict[int, Json] = {}
    for state in states:
        for path, value in leaves_of(state, what):
            variable = table.texts.get(path) if isinstance(path, str) else table.variables.get(path)
            if variable is None or id(variable) in values:
                return None
            if isinstance(value, VariableState) and value.schema is variable.schema:  # hot: known to be valid
                values[id(variable)] = value.value
                continue
            leaf = check_leaf((), value, variable.schema, 0, [])
            if leaf is None:
                return None
            values[id(variable)] = leaf.value
    return values


def fit_graph(
    node: Any, states: Iterable[StateLike], what: str, static: str, *, allow_unknown: bool = False
) -> dict[int, Leaf]:
    """Return the checked leaves of States by the identity of their Variables, aliases followed; arguments as of `fit`.

    Raises:
        StateError, StateSchemaError: A leaf does not fit; lists all.
    """
    live = record(node)
    leaves, faults = fit(live.graphdef, states, what, static=static, allow_unknown=allow_unknown)
    raise_faults(what, faults)
    return {id(live.objects[index]): leaf for index, leaf in leaves.items()}


def write_all(writes: list[Write]) -> None:
    """Commit prepared writes, then send their events."""
    for write in writes:
        write.commit()
    for write in writes:
        write.notify()


def set_metadata(node: Any, *, only: FilterLike = ..., **metadata: Json) -> tuple[KeyPath, ...]:
    """Change metadata of Variables; values, types and schemas stay.

    Args:
        node: A program.
        only: Filter for the Variables; all by default.
        **metadata: `trainable`, `name`, `description` (None removes a name or description) and free JSON.

    Returns:
        The paths of the Variables that changed, in definition order.

    Raises:
        ArgumentError: `node` cannot be the root of a graph, the filter is invalid, or a label has a wrong value.
        BadNameError: `name` is not an identifier.
        DataError: A value is not JSON. Nothing is changed in any of these cases.

    Example:
        >>> import synmod as sm
        >>> program = {"a": sm.Param("x"), "b": sm.Param("y")}
        >>> sm.set_metadata(program, only=sm.PathContains("b"), trainable=False)
        (('b',),)

    Source: Flax NNX `set_metadata`.
    """
    changes: list[tuple[KeyPath, Variable]] = []
    for visit in select(node, only, "variable"):
        before = visit.value.full_metadata
        if visit.first and validate_metadata({**before, **metadata}) != before:
            changes.append((visit.path, visit.value))
    for _, variable in changes:
        variable.set_metadata(metadata)
    return tuple(path for path, _ in changes)


def set_attributes(node: Any, filter: FilterLike = ..., *, raise_if_not_found: bool = True, **attrs: Any) -> None:  # noqa: A002  (the public name)
    """Set plain attributes on every matching node that has them.

    Every check comes before the first write.

    Args:
        node: A program.
        filter: Selects the nodes; all by default.
        raise_if_not_found: Whether an attribute that no matching node has is an error.
        **attrs: Attributes and their new values. Neither the old nor the new value may be or hold a node or Variable,
            except that one by-reference node (a language model) may replace another.

    Raises:
        GraphError: No matching node has an attribute (contains 'at least one instance'), or an attribute, or its new
            value, is or holds a node or Variable. Names every such place.
        ArgumentError: `node` cannot be the root of a graph, or the filter is invalid.

    Example:
        >>> import synmod as sm
        >>> program = sm.Generator(schema={"type": "object"})
        >>> sm.set_attributes(program, sm.Generator, temperature=0.5)
        >>> program.temperature
        0.5

    Source: Flax NNX `Module.set_attributes`; differs: any filter, statics only.
    """
    nodes = [visit for visit in select(node, filter, "node") if visit.first]
    visits_by_name = {name: [visit for visit in nodes if _present(visit, name) is not MISSING] for name in attrs}
    places = [
        repr(path_str((*visit.path, name)))
        for name, visits in visits_by_name.items()
        for visit in visits
        if _is_structure(_present(visit, name))
    ]
    places += [f"the new value of {name!r}" for name, value in attrs.items() if _is_structure(value)]
    if places:
        raise errors.GraphError(
            f"set_attributes: {', '.join(places)} holds a node or Variable: only plain attributes can be set. Assign "
            "it on the object that holds it."
        )
    missing = [name for name, visits in visits_by_name.items() if not visits]
    if missing and raise_if_not_found:
        names = sorted({key for visit in nodes for key, _ in visit.children if isinstance(key, str)})
        raise errors.GraphError(
            "set_attributes: could not find at least one instance with the attribute "
            f"{', '.join(map(repr, missing))} among {len(nodes)} matching nodes.{did_you_mean(missing[0], names)}"
        )
    for name, visits in visits_by_name.items():
        for visit in visits:
            setattr(visit.value, name, attrs[name])


def _present(visit: Visit, name: str) -> Any:
    """Return an attribute of a node or of its class, without running a property; MISSING if neither has it."""
    for key, child in visit.children:
        if key == name:
            return child
    return getattr_static(visit.value, name, MISSING)


def _is_structure(value: Any) -> bool:
    """Whether a value is or holds a Variable or a node; a by-reference node does not count."""
    return not get_node_impl(value).by_reference if kind_of(value) == NODE else holds_node(value)


def pop(node: Any, filter: FilterLike) -> State:  # noqa: A002  (the public name)
    """Remove the matching Variables from a program, at all their paths.

    Attributes and dict entries can be removed; a sealed module is sealed again.

    Args:
        node: A program.
        filter: Selects the Variables to remove.

    Returns:
        A State by canonical path; empty if nothing matched.

    Raises:
        GraphError: A Variable is in a list, tuple or another fixed container (contains 'Cannot pop key'); names every
            such path.
        ArgumentError: `node` cannot be the root of a graph, or the filter is invalid.

    Example:
        >>> import synmod as sm
        >>> program = {"a": sm.Param("x"), "trace": sm.Intermediate([])}
        >>> sm.pop(program, sm.Intermediate).to_json(), list(program)
        ({'trace': []}, ['a'])

    Source: Flax NNX `pop`; differs: atomic, from every path.
    """
    visits = select(node, filter, "variable")
    stuck = [repr(path_str(visit.path)) for visit in visits if not _is_removable(visit)]
    if stuck:
        raise errors.GraphError(
            f"pop: Cannot pop key {', '.join(stuck)}: a Variable cannot be removed from a list, tuple or another fixed "
            "container. Hold it in an attribute or a dict."
        )
    popped = State.of_leaves({visit.path: visit.value.to_state() for visit in visits if visit.first})
    for visit in visits:
        assert visit.parent is not None
        if visit.parent.kind == "node":
            get_node_impl(visit.parent.value).pop_key(visit.parent.value, visit.step)
        else:
            visit.parent.value.pop(visit.step, None)  # a dict at two paths is visited twice
            _reassign_attribute(visit.parent)
    return popped


def share_variables(node: Any, variables: Mapping[KeyPath, Variable]) -> None:
    """Replace the Variables of a program, at all their paths; the caller has checked the new ones.

    Args:
        node: A program.
        variables: The new Variables, by canonical path.
    """
    visits = [visit for visit in walk(node) if visit.kind == "variable"]
    new = {id(visit.value): variables[visit.path] for visit in visits if visit.first}
    for visit in visits:
        assert visit.parent is not None
        if visit.parent.kind == "node":
            get_node_impl(visit.parent.value).set_key(visit.parent.value, visit.step, new[id(visit.value)])
        else:
            visit.parent.value[visit.step] = new[id(visit.value)]
            _reassign_attribute(visit.parent)


def _is_removable(visit: Visit) -> bool:
    parent = visit.parent
    return parent is not None and (parent.kind == "node" or type(parent.value) in DICTS)


def _reassign_attribute(container: Visit) -> None:
    """Assign the attribute that holds a container again, so that its node notices the change."""
    attribute = container
    while attribute.parent is not None and attribute.parent.kind != "node":
        attribute = attribute.parent
    if attribute.parent is not None:
        owner = attribute.parent.value
        get_node_impl(owner).set_key(owner, attribute.step, attribute.value)


def rewrite_in_place(node: Any, metadata: Any, pairs: list[tuple[Any, Any]]) -> None:
    """Change a node in place to match metadata and pairs.

    Raises:
        GraphError: The metadata of a user's node changes, and the node has no `__dict__` to update.
    """
    impl = get_node_impl(node)
    if impl.rewrite is not None:
        impl.rewrite(node, metadata, pairs)
        return
    before = impl.metadata_of(node)
    if impl.clear is not None:
        impl.clear(node)
    else:
        for key, _ in reversed(impl.pairs(node)):  # last first, so that the remaining indices stay valid
            impl.pop_key(node, key)
    if metadata is not before and metadata != before:
        fresh: Any = impl.make(metadata)
        attributes: dict[str, Any] | None = getattr(node, "__dict__", None)
        if attributes is None:
            raise errors.GraphError(
                f"The metadata of a {class_of(node).__name__} changed, and it cannot be updated in place because the "
                "class has no __dict__: merge into a new object."
            )
        attributes.clear()
        attributes.update(fresh.__dict__)
    impl.fill(node, pairs)


# -- overlays ----------------------------------------------------------------------------------------------------------


class using:  # noqa: N801  # read as a word: `with sm.using(program, state):`
    """Read a program's Variables from a State, in this task and the tasks started inside.

    Nothing is copied or rebuilt, and live values do not change: writes in the block go to the overlay, where sibling
    tasks of the same block see them. Blocks nest: reads fall through to the outer overlay, then to the live value.
    Variables outside the program, and those made inside the block, are live.

    `as overlay` is the overlay: `overlay.state` holds the given values with the writes applied, `overlay.changes` only
    the writes; both can be read after the block too.

    Args:
        node: A program.
        state: A State or values by path text, of all or some Variables; alias paths are accepted. With None no value
            is overlaid, but writes still stay in the block.

    Raises:
        StateError: (on entry) A path is unknown, or does not lead to a Variable.
        StateSchemaError: (on entry) Values do not satisfy their schemas.
        ArgumentError: (on entry) `node` cannot be the root of a graph, or `state` is not a State.
        GraphError: (on entry) The overlay is already entered: each block needs its own.

    Example:
        >>> from synmod.tree import Param
        >>> program = {"a": Param("x")}
        >>> with using(program, {"a": "candidate"}) as overlay:
        ...     program["a"].value
        'candidate'
        >>> program["a"].value
        'x'

    Source: Keras' stateless scope; differs: concurrent, validated.
    """

    __slots__ = ("_is_open", "_layer", "_node", "_state", "_variables")

    @checks_keywords
    def __init__(self, node: Any, state: StateLike = None) -> None:
        self._node = node
        self._state = state
        self._layer = Layer((), {})
        self._is_open = False
        self._variables: Mapping[KeyPath, Variable] = {}

    def __enter__(self) -> Self:
        if self._is_open:
            raise errors.GraphError("This overlay is already entered: make a using(...) for each block.")
        table = path_table(self._node, sealed=True)
        self._variables, members = table.freeze_variables()
        states = () if self._state is None else (self._state,)
        values = values_by_path(table, states, "using")
        if values is None:
            leaves = fit_graph(self._node, states, "using", "Trying to overlay a non-Variable:")
            values = {key: leaf.value for key, leaf in leaves.items()}
        self._layer = Layer(members, values)
        self._layer.__enter__()
        self._is_open = True
        return self

    def __exit__(self, *_: object) -> None:
        if self._is_open:
            self._is_open = False
            self._layer.__exit__()

    @property
    def state(self) -> State:
        """The values given, with the writes applied, in definition order."""
        return self._snapshot(dict(self._layer.values))

    @property
    def changes(self) -> State:
        """The values written in the block, in definition order."""
        return self._snapshot({key: self._layer.values[key] for key in list(self._layer.written)})

    def _snapshot(self, values: dict[int, Json]) -> State:
        """Return a State of the values, by the paths of their Variables."""
        return State.of_leaves(
            {
                path: snapshot(type(variable), values[id(variable)], variable.schema, variable.full_metadata)
                for path, variable in self._variables.items()
                if id(variable) in values
            }
        )


# -- sown values -------------------------------------------------------------------------------------------------------

_LISTS: Final = data.intern_schema({"type": "array"})


class Sown(NamedTuple):
    """One value that a module has sown.

    Attributes:
        started: When the entry call began.
        run: The id of the entry call.
        call: The number of the module call in that run.
        path: The path of the module, then the name.
        type: The Variable type.
        value: Frozen JSON.
    """

    started: float
    run: str
    call: int
    path: KeyPath
    type: type[Variable]
    value: Json


class capture(scope.Block):  # noqa: N801  # read as a word: `with sm.capture(Intermediate) as cap:`
    """Collect the values that modules sow in a block, in this task and the tasks started inside.

    Args:
        *types: Variable types to collect, subclasses included; all if none is given.

    Attributes:
        state: A State of lists by module path and name, in the order in which the module calls began. A leaf has the
            type of its first value.
        by_call: A State like this for each entry call, by its id, in the order in which the entry calls began.

    Raises:
        ArgumentError: An argument is not a Variable type.

    Example:
        >>> with capture(Variable) as cap:
        ...     pass
        >>> cap.state.to_json(), dict(cap.by_call)
        ({}, {})

    Source: Flax NNX `sow` and `pop`; differs: grouped by call, never stored in a module, in the order of the calls.
    """

    def __init__(self, *types: type[Variable]) -> None:
        for cls in types:
            if not isinstance(cls, type) or not issubclass(cls, Variable):  # pyright: ignore[reportUnnecessaryIsInstance]
                raise errors.ArgumentError(f"capture takes Variable types, such as sm.Intermediate, not {cls!r:.200}.")
        self._types = types or (Variable,)
        super().__init__()
        self._lock = threading.Lock()
        self._sown: list[Sown] = []

    def __enter__(self) -> Self:
        self.enter(captures=self)
        return self

    def takes(self, kind: Any) -> bool:
        """Whether values sown as this type are collected."""
        return isinstance(kind, type) and issubclass(kind, self._types)

    def add(self, sown: Sown) -> None:
        """Collect a value."""
        with self._lock:
            self._sown.append(sown)

    @property
    def state(self) -> State:
        """All values, in one State."""
        return _group_by_path(self._in_order())

    @property
    def by_call(self) -> Mapping[str, State]:
        """A State for each entry call in which a value was sown, by its id."""
        runs: dict[str, list[Sown]] = {}
        for sown in self._in_order():
            runs.setdefault(sown.run, []).append(sown)
        return {run: _group_by_path(sown) for run, sown in runs.items()}

    def _in_order(self) -> list[Sown]:
        with self._lock:
            return sorted(self._sown, key=lambda sown: sown[:3])


def open_captures(kind: Any) -> list[capture]:
    """Return the open captures around the running code that collect a type."""
    return [block for block in cast("tuple[capture, ...]", scope.ambient().captures) if block.takes(kind)]


def _group_by_path(values: Iterable[Sown]) -> State:
    """Return a State of the values by path, in order."""
    by_path: dict[KeyPath, list[Sown]] = {}
    for sown in values:
        by_path.setdefault(sown.path, []).append(sown)
    return State.of_leaves({path: _leaf(sown) for path, sown in by_path.items()})


def _leaf(sown: list[Sown]) -> VariableState:
    kind = sown[0].type
    value = frozen([entry.value for entry in sown])
    return snapshot(kind, value, _LISTS, validate_metadata({"trainable": kind.trainable_default}))
