"""Writing into a live program: values, structure, attributes and metadata. Every check comes before the first write."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from inspect import getattr_static
from typing import Any

from synmod.errors import GraphError, Problem, SchemaError
from synmod.leaves.frozen import Json
from synmod.leaves.names import KeyPath, did_you_mean, path_str

from .filters import Decisions, FilterLike, to_filter
from .fitting import Fault, Finder, StateLike, fit, raise_faults
from .graphdef import record
from .nodes import DICTS, KNOWN, NODE, STATIC, VARIABLE, Kinds, class_of, get_node_impl, holds_node, own_impl
from .states import State
from .variable import MISSING, Variable, Write, checked_metadata
from .walk import Visit, check_root, walk


def update(node: Any, *states: StateLike, allow_extra: bool = False, metadata: bool = False) -> tuple[KeyPath, ...]:
    """Write values into the live Variables of a program.

    Every check comes before the first write. Missing paths leave theirs alone; equal values are not assigned. Inside
    an overlay of the program the values go to the overlay.

    Args:
        node: A program.
        *states: States or values by path text; alias paths are accepted.
        allow_extra: Skip unknown paths.
        metadata: Take the metadata of the States too.

    Returns:
        The changed paths, in definition order.

    Raises:
        StateError: A path is unknown, leads to a static or a subgraph, or got two values.
        StateSchemaError: Values do not satisfy the live schemas.
        ArgumentError: `node` holds no graph, or something is not a State.

    Example:
        >>> from synmod.tree import Param
        >>> program = {"a": Param("x"), "b": Param("y")}
        >>> update(program, {"a": "z"})
        (('a',),)

    Source: Flax NNX `update`; differs: atomic, validated.
    """
    live = record(node)
    fitted = fit(Finder(live.graphdef), states, lambda index: live.objects[index].schema, "update")
    raise_faults("update", fitted.all_faults("Trying to update a non-Variable:", allow_unknown=allow_extra))
    writes: list[tuple[KeyPath, Write]] = []
    faults: list[Fault] = []
    for path, index in live.graphdef.leaf_paths.items():
        leaf = fitted.leaves.get(index)
        if leaf is None:
            continue
        try:
            write = Write(live.objects[index], leaf.value, leaf.metadata if metadata else None)
        except SchemaError as error:  # what the class made of the value
            where = path_str(path)
            missed = error.errors or (Problem("", "a value that its class takes", str(error)),)
            problems = tuple(each._replace(pointer=f"{where}#{each.pointer}") for each in missed)
            faults.append(Fault(len(faults), f"{where!r}: {error}", problems))
        else:
            if write.is_change:
                writes.append((path, write))
    raise_faults("update", faults)
    write_all([write for _, write in writes])
    return tuple(path for path, _ in writes)


def write_all(writes: list[Write]) -> None:
    """Make prepared writes, then send their events."""
    for write in writes:
        write.commit()
    for write in writes:
        write.notify()


def set_metadata(node: Any, *, only: FilterLike = ..., **metadata: Json) -> tuple[KeyPath, ...]:
    """Change metadata of Variables; values, types and schemas stay.

    Args:
        node: A program.
        only: Filter for the Variables; all by default.
        **metadata: `trainable`, `name`, `description` (None takes a name or description away) and free JSON.

    Returns:
        The paths of the Variables that changed, in definition order.

    Raises:
        ArgumentError: `node` holds no graph, the filter is not one, or a label has a wrong value.
        BadNameError: `name` is not an identifier.
        DataError: Something is not JSON. Nothing is changed in any of these cases.

    Example:
        >>> import synmod as sm
        >>> program = {"a": sm.Param("x"), "b": sm.Param("y")}
        >>> sm.set_metadata(program, only=sm.PathContains("b"), trainable=False)
        (('b',),)

    Source: Flax NNX `set_metadata`.
    """
    check_root(node)
    wanted = Decisions(to_filter(only))
    changes: list[tuple[KeyPath, Variable]] = []
    for visit in walk(node):
        if visit.kind == "variable" and visit.first and wanted.takes(visit):
            before = visit.value.full_metadata
            if checked_metadata({**before, **metadata}) != before:
                changes.append((visit.path, visit.value))
    for _, variable in changes:
        variable.set_metadata(metadata)
    return tuple(path for path, _ in changes)


def set_attributes(node: Any, filter: FilterLike = ..., *, raise_if_not_found: bool = True, **attrs: Any) -> None:  # noqa: A002  (the word of the contract)
    """Set plain attributes on every matching node that has them.

    Every check comes before the first write.

    Args:
        node: A program.
        filter: Which nodes; every one by default.
        raise_if_not_found: Whether an attribute that no matching node has is an error.
        **attrs: Attributes and their new values. Neither may be or hold a node or Variable, except that a by-reference
            node (a language model) may take the place of one.

    Raises:
        GraphError: No matching node has an attribute (contains 'at least one instance'), or an attribute, or its new
            value, is or holds a node or Variable. Names every such place.
        ArgumentError: `node` holds no graph, or the filter is not one.

    Example:
        >>> import synmod as sm
        >>> program = sm.Generator(schema={"type": "object"})
        >>> sm.set_attributes(program, sm.Generator, temperature=0.5)
        >>> program.temperature
        0.5

    Source: Flax NNX `Module.set_attributes`; differs: any filter, statics only.
    """
    check_root(node)
    wanted = Decisions(to_filter(filter))
    nodes = [visit for visit in walk(node) if visit.kind == "node" and visit.first and wanted.takes(visit)]
    found = {name: [visit for visit in nodes if _present(visit, name) is not MISSING] for name in attrs}
    kinds = Kinds(KNOWN)
    places = [
        repr(path_str((*visit.path, name)))
        for name, visits in found.items()
        for visit in visits
        if _is_structure(_present(visit, name), kinds)
    ]
    places += [f"the new value of {name!r}" for name, value in attrs.items() if _is_structure(value, kinds)]
    if places:
        raise GraphError(
            f"set_attributes: {', '.join(places)} holds a node or Variable: only plain attributes are set. Assign it "
            "where it stands."
        )
    missing = [name for name, visits in found.items() if not visits]
    if missing and raise_if_not_found:
        known = sorted({key for visit in nodes for key, _ in visit.children if isinstance(key, str)})
        raise GraphError(
            "set_attributes: could not find at least one instance with the attribute "
            f"{', '.join(map(repr, missing))} among {len(nodes)} matching nodes.{did_you_mean(missing[0], known)}"
        )
    for name, visits in found.items():
        for visit in visits:
            setattr(visit.value, name, attrs[name])


def _present(visit: Visit, name: str) -> Any:
    """An attribute of a node, its own or that of its class, without running a property; MISSING where there is none."""
    for key, child in visit.children:
        if key == name:
            return child
    return getattr_static(visit.value, name, MISSING)


def _is_structure(value: Any, kinds: Kinds) -> bool:
    """Whether a value is or holds a Variable or a node; a by-reference node is not structure."""
    kind = kinds[type(value)]
    if kind == NODE:
        impl = own_impl(class_of(value))
        return impl is None or not impl.by_reference
    return kind == VARIABLE or (kind != STATIC and holds_node(value, kinds))


def pop(node: Any, filter: FilterLike) -> State:  # noqa: A002  (the word of the contract)
    """Take matching Variables out of their holders, from all their paths.

    Attributes and dict entries can be taken out; a sealed module is sealed anew. All of them or none.

    Args:
        node: A program.
        filter: What to take out.

    Returns:
        A State by canonical path; empty where nothing matched.

    Raises:
        GraphError: A Variable stands in a list, tuple or another fixed container (contains 'Cannot pop key'); names
            every such path.
        ArgumentError: `node` holds no graph, or the filter is not one.

    Example:
        >>> import synmod as sm
        >>> program = {"a": sm.Param("x"), "trace": sm.Intermediate([])}
        >>> sm.pop(program, sm.Intermediate).to_json(), list(program)
        ({'trace': []}, ['a'])

    Source: Flax NNX `pop`; differs: atomic, from every path.
    """
    check_root(node)
    wanted = Decisions(to_filter(filter))
    visits = [visit for visit in walk(node) if visit.kind == "variable" and wanted.takes(visit)]
    stuck = [repr(path_str(visit.path)) for visit in visits if not _can_go(visit)]
    if stuck:
        raise GraphError(
            f"pop: Cannot pop key {', '.join(stuck)}: nothing can be taken out of a list, tuple or another fixed "
            "container. Hold it in an attribute or a dict."
        )
    popped = State.of_leaves({visit.path: visit.value.to_state() for visit in visits if visit.first})
    holders = {id(visit.above.value): visit.above for visit in visits if visit.above is not None}
    with ExitStack() as putting_back:
        for holder in holders.values():
            putting_back.callback(_undo(holder))
        for visit in visits:
            assert visit.above is not None
            if visit.above.kind == "node":
                get_node_impl(visit.above.value).pop_key(visit.above.value, visit.step)
            else:
                visit.above.value.pop(visit.step, None)  # a dict that stands in two places has it once
                _set_again(visit.above)
        putting_back.pop_all()
    return popped


def _can_go(visit: Visit) -> bool:
    above = visit.above
    return above is not None and (above.kind == "node" or type(above.value) in DICTS)


def _undo(holder: Visit) -> Callable[[], None]:
    """What makes a holder again what it is now."""
    value: Any = holder.value
    if holder.kind == "container":
        content = dict(value)

        def fill_again() -> None:
            value.clear()
            value.update(content)
            _set_again(holder)

        return fill_again
    impl = get_node_impl(value)
    metadata, pairs = impl.metadata_of(value), impl.pairs(value)
    return lambda: become(value, metadata, pairs)


def _set_again(container: Visit) -> None:
    """Set the attribute that holds a container anew on its node, which then takes note of the change."""
    attribute = container
    while attribute.above is not None and attribute.above.kind != "node":
        attribute = attribute.above
    if attribute.above is not None:
        owner = attribute.above.value
        get_node_impl(owner).set_key(owner, attribute.step, attribute.value)


def become(node: Any, metadata: Any, pairs: list[tuple[Any, Any]]) -> None:
    """Change a node in place to what metadata and pairs describe.

    Raises:
        GraphError: The metadata of a user's node changes, and it has no `__dict__` to take it over in.
    """
    impl = get_node_impl(node)
    if impl.rewrite is not None:
        impl.rewrite(node, metadata, pairs)
        return
    before = impl.metadata_of(node)
    if impl.clear is not None:
        impl.clear(node)
    else:
        for key, _ in reversed(impl.pairs(node)):  # the last first, so that the numbers of what is left stay
            impl.pop_key(node, key)
    if metadata is not before and metadata != before:
        fresh: Any = impl.make(metadata)
        held: dict[str, Any] | None = getattr(node, "__dict__", None)
        if held is None:
            raise GraphError(
                f"The metadata of a {class_of(node).__name__} changed, and it has no __dict__ to take it over in "
                "place: merge into a new one."
            )
        held.clear()
        held.update(fresh.__dict__)
    impl.fill(node, pairs)
