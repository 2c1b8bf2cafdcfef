"""pop: Variables taken out of a program, all of them or none."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, overload

from synmod.errors import GraphError, StateError
from synmod.leaves.names import path_str
from synmod.tree.filtering.decisions import Decisions
from synmod.tree.filtering.filters import Any as AnyOf
from synmod.tree.filtering.filters import FilterLike, to_filter
from synmod.tree.functional.rewrite import empty_node
from synmod.tree.graphs.record import check_root
from synmod.tree.states.partition import partition, single_or_all
from synmod.tree.states.state import State
from synmod.tree.variable.containers import DICTS
from synmod.tree.walking.edits import EDITS
from synmod.tree.walking.node_types import get_node_impl
from synmod.tree.walking.walk import Visit, walk

if TYPE_CHECKING:
    from collections.abc import Callable


@overload
def pop(node: Any, only: FilterLike, /) -> State: ...
@overload
def pop(node: Any, first: FilterLike, second: FilterLike, /, *more: FilterLike) -> tuple[State, ...]: ...
@overload
def pop(node: Any, *filters: FilterLike) -> State | tuple[State, ...]: ...
def pop(node: Any, *filters: FilterLike) -> State | tuple[State, ...]:
    """Take matching Variables out of their holders, from all their paths.

    Attributes and dict entries can be taken out; a sealed module is sealed anew. All of them or none.

    Args:
        node: A program.
        *filters: What to take out, a State each; the first that matches takes a leaf. They need not take all.

    Returns:
        A State by canonical path for one filter, a tuple of them for more; empty where nothing matched.

    Raises:
        StateError: No filter (contains 'Expected at least one filter'), or `...` is not the last.
        GraphError: A Variable stands in a list, tuple or another fixed container (contains 'Cannot pop key'); names
            every such path.
        ArgumentError: `node` holds no graph, or a filter is none.

    Example:
        >>> import synmod as sm
        >>> program = {"a": sm.Param("x"), "trace": sm.Intermediate([])}
        >>> sm.pop(program, sm.Intermediate).to_json(), list(program)
        ({'trace': []}, ['a'])

    Source: Flax NNX `pop`; differs: atomic, from every path.
    """
    check_root(node)
    if not filters:
        raise StateError("pop: Expected at least one filter; `...` takes everything.")
    parts_for = [to_filter(each) for each in filters]
    visits = [visit for visit in walk(node) if visit.kind == "variable"]
    leaves = [(visit.path, visit.value.to_state(), visit.masked) for visit in visits if visit.first]
    parts = partition(leaves, parts_for, exhaustive=False)
    decisions = Decisions(AnyOf(*parts_for))
    _take_all([visit for visit in visits if decisions.takes(visit)])
    return single_or_all([State._of(dict(part)) for part in parts])


def _take_all(visits: list[Visit]) -> None:
    """Take what is visited out of its holders; put everything back where one of them refuses."""
    stuck = [repr(path_str(visit.path)) for visit in visits if not _can_go(visit)]
    if stuck:
        raise GraphError(
            f"pop: Cannot pop key {', '.join(stuck)}: nothing can be taken out of a list, tuple or another fixed "
            "container. Hold it in an attribute or a dict."
        )
    known: set[int] = set()
    with ExitStack() as putting_back:  # goes on where a holder refuses even that
        for visit in visits:
            holder: Any = visit.above
            if id(holder) not in known:
                known.add(id(holder))
                putting_back.callback(_undo(holder))
            _take(holder, visit.step)
        putting_back.pop_all()
    if visits:
        EDITS.bump()


def _can_go(visit: Visit) -> bool:
    above = visit.above
    return above is not None and (above.kind == "node" or type(above.value) in DICTS)


def _take(holder: Visit, key: Any) -> None:
    if holder.kind == "node":
        get_node_impl(holder.value).pop_key(holder.value, key)
        return
    holder.value.pop(key, None)  # a dict that stands in two places gives it once
    _tell_owner(holder)


def _tell_owner(container: Visit) -> None:
    """Set the attribute that holds a container anew, on the node that has it."""
    attribute = container
    while attribute.above is not None and attribute.above.kind != "node":
        attribute = attribute.above
    if attribute.above is not None:
        owner = attribute.above.value
        get_node_impl(owner).set_key(owner, attribute.step, attribute.value)


def _undo(holder: Visit) -> Callable[[], None]:
    """Give what makes a holder again what it is now."""
    value: Any = holder.value
    if holder.kind == "container":
        content = dict(value)

        def fill_again() -> None:
            value.clear()
            value.update(content)
            _tell_owner(holder)

        return fill_again
    impl = get_node_impl(value)
    metadata, pairs = impl.metadata_of(value), impl.pairs(value)

    def make_again() -> None:
        if impl.rewrite is not None:
            impl.rewrite(value, metadata, pairs)
            return
        empty_node(value, impl, [key for key, _ in impl.pairs(value)])
        impl.fill(value, pairs)

    return make_again
