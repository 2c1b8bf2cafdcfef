"""split, state, variables, graphdef, flatten: a program taken apart."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar, overload

from synmod.errors import ArgumentError, StateError
from synmod.leaves.names import path_str
from synmod.tree.filtering.filters import FilterLike, to_filter
from synmod.tree.graphs.graphdef import GraphDef
from synmod.tree.graphs.record import Recording, check_root, record
from synmod.tree.graphs.sharing import find_duplicates
from synmod.tree.states.partition import partition, single_or_all
from synmod.tree.states.path_map import PathMap
from synmod.tree.states.state import State
from synmod.tree.variable.overlay import LAYER
from synmod.tree.variable.variable import Variable
from synmod.tree.variable.variable_state import snapshot
from synmod.tree.walking.walk import walk

if TYPE_CHECKING:
    from collections.abc import Sequence

    from synmod.leaves.names import KeyPath
    from synmod.tree.filtering.filters import Filter
    from synmod.tree.variable.variable_state import VariableState
    from synmod.tree.walking.refmap import RefMap
    from synmod.tree.walking.walk import Visit

M = TypeVar("M")

Shared: TypeAlias = Literal["allow", "error"]


class Variables(PathMap[Variable]):
    """Live Variables by path, as `variables` gives them."""

    __slots__ = ()


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
        *filters: Give a State each; the first that matches takes a leaf. `...` takes the rest and comes last.
        shared: `"error"` refuses objects with two paths.

    Returns:
        `(graphdef, state)`, or `(graphdef, state1, state2, ...)` for several filters.

    Raises:
        ArgumentError: `node` holds no graph, or a filter is none.
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
        _refuse_sharing(node)
    taken = record(node)
    return (taken.graphdef, *states_of(taken, parts_for, exhaustive=True))


@overload
def state(node: Any) -> State: ...
@overload
def state(node: Any, only: FilterLike, /) -> State: ...
@overload
def state(node: Any, first: FilterLike, second: FilterLike, /, *more: FilterLike) -> tuple[State, ...]: ...
@overload
def state(node: Any, *filters: FilterLike) -> State | tuple[State, ...]: ...
def state(node: Any, *filters: FilterLike) -> State | tuple[State, ...]:
    """Take a snapshot of the values.

    Args:
        node: A program.
        *filters: What to take; everything without one. They need not take all.

    Returns:
        A State for none or one filter, a tuple of them for more.

    Raises:
        ArgumentError: As `split`.
        StateError: `...` is not the last filter.

    Example:
        >>> from synmod.tree import Param
        >>> state({"a": Param("x")})["a"].value
        'x'

    Source: Flax NNX `state`.
    """
    parts_for = [to_filter(each) for each in filters]
    leaves = _leaf_visits(node)
    return single_or_all(_snapshots(leaves, paths_to(leaves), parts_for, exhaustive=False))


@overload
def variables(node: Any) -> Variables: ...
@overload
def variables(node: Any, only: FilterLike, /) -> Variables: ...
@overload
def variables(node: Any, first: FilterLike, second: FilterLike, /, *more: FilterLike) -> tuple[Variables, ...]: ...
@overload
def variables(node: Any, *filters: FilterLike) -> Variables | tuple[Variables, ...]: ...
def variables(node: Any, *filters: FilterLike) -> Variables | tuple[Variables, ...]:
    """Give the live Variables by path, as `state` gives snapshots.

    Args:
        node: A program.
        *filters: What to take; everything without one.

    Returns:
        A mapping by path for none or one filter, a tuple of them for more.

    Raises:
        ArgumentError: As `split`.
        StateError: `...` is not the last filter.

    Example:
        >>> from synmod.tree import Param
        >>> program = {"a": Param("x")}
        >>> variables(program, Param)["a"] is program["a"]
        True

    Source: Flax NNX `variables`.
    """
    parts_for = [to_filter(each) for each in filters]
    leaves = [(visit.path, visit.value, visit.masked) for visit in _leaf_visits(node)]
    parts = partition(leaves, parts_for, exhaustive=False)
    return single_or_all([Variables._of(dict(part)) for part in parts])


def graphdef(node: M) -> GraphDef[M]:
    """Give the structure alone.

    Raises:
        ArgumentError: `node` holds no graph.

    Example:
        >>> from synmod.tree import Param
        >>> len(graphdef([Param("x"), Param("y")]).variables)
        2

    Source: Flax NNX `graphdef`.
    """
    return record(node).graphdef


def flatten(node: M, ref_index: RefMap[int] | None = None) -> tuple[GraphDef[M], State]:
    """Split with an index space in hand.

    Args:
        node: A program.
        ref_index: Numbers given before; what is in it becomes a reference, what is new is added.

    Returns:
        `(graphdef, state)`; the State has what is new.

    Raises:
        ArgumentError: `node` holds no graph.

    Source: Flax NNX `flatten`.
    """
    taken = record(node, ref_index)
    return taken.graphdef, states_of(taken, [], exhaustive=True)[0]


def states_of(taken: Recording[Any], filters: Sequence[Filter], *, exhaustive: bool) -> list[State]:
    """Snapshot the Variables of a recording, parted by filters."""
    paths = paths_to(taken.leaves)
    taken.graphdef._know_leaf_paths(paths)
    return _snapshots(taken.leaves, paths, filters, exhaustive=exhaustive)


def _snapshots(
    leaves: list[Visit], paths: list[KeyPath], filters: Sequence[Filter], *, exhaustive: bool
) -> list[State]:
    """Give a State for each filter; one of everything without any."""
    if not filters:
        return [State._of(dict(zip(paths, _taken([visit.value for visit in leaves]), strict=True)))]
    parts = partition(
        [(path, visit.value, visit.masked) for path, visit in zip(paths, leaves, strict=True)],
        filters,
        exhaustive=exhaustive,
    )
    return [State._of({path: variable.to_state() for path, variable in part}) for part in parts]


def _taken(variables: list[Variable]) -> list[VariableState]:
    """Take a snapshot of each Variable. Hot: where no overlay is open the values are read at once."""
    if LAYER.get() is not None:
        return [variable.to_state() for variable in variables]
    return [snapshot(type(v), v._value, v._schema, v._about) for v in variables]


def paths_to(visits: list[Visit]) -> list[KeyPath]:
    """Give the paths of visits; that to a common holder is made once."""
    paths: list[KeyPath] = []
    above, lead = None, ()
    for visit in visits:
        if visit.above is None:
            paths.append(())
            continue
        if visit.above is not above:
            above = visit.above
            lead = above.path
        paths.append((*lead, visit.step))
    return paths


def _leaf_visits(node: Any) -> list[Visit]:
    check_root(node)
    return [visit for visit in walk(node) if visit.kind == "variable" and visit.first]


def _refuse_sharing(node: Any) -> None:
    """Raise if an object has two paths."""
    twice = find_duplicates(node)
    if twice:
        lines = "; ".join(" and ".join(repr(path_str(path)) for path in paths) for paths in twice)
        raise StateError(f"Duplicate: the same object at {lines}. Use shared='allow', or clone one of them.")
