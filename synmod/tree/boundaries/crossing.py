"""A program across a boundary and back: objects outside remembered, copies inside, changes applied to the same objects.

Numbers carry identity over: the mark on a graph says which number each of its objects had outside.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, TypeVar

from synmod.errors import ArgumentError, GraphError
from synmod.leaves.names import new_run_id
from synmod.tree.filtering.filters import to_filter
from synmod.tree.functional.merge import check_type, unflatten_into
from synmod.tree.functional.split import states_of
from synmod.tree.graphs.defs import NodeRef, VariableRef
from synmod.tree.graphs.graphdef import GraphDef
from synmod.tree.graphs.mark import Mark
from synmod.tree.graphs.record import record
from synmod.tree.walking.edits import EDITS
from synmod.tree.walking.node_types import impl_of
from synmod.tree.walking.refmap import RefMap

if TYPE_CHECKING:
    from collections.abc import Mapping

    from synmod.tree.filtering.filters import FilterLike
    from synmod.tree.states.layout import StateLike
    from synmod.tree.states.state import State

M = TypeVar("M")


class _Outside(NamedTuple):
    """What step 1 remembers: what tells this split apart, the structure, and the live objects by number."""

    key: str
    graphdef: GraphDef[Any]
    objects: Mapping[int, Any]


class _Inside(NamedTuple):
    """What step 2 remembers: of which split the copies are, and the number outside of each."""

    key: str
    numbers: RefMap[int]


class UpdateContext:
    """What `with sm.update_context(tag) as ctx:` gives: four steps over a boundary and back.

    Attributes:
        tag: What the two sides of the boundary know it by.
    """

    __slots__ = ("_inside", "_outside", "ended", "tag")

    def __init__(self, tag: str) -> None:
        self.tag = tag
        self.ended = False
        self._outside: _Outside | None = None
        self._inside: _Inside | None = None

    def split(self, node: M, *filters: FilterLike) -> tuple[GraphDef[M], *tuple[State, ...]]:
        """Take a program apart: step 1 outside, step 3 inside.

        Outside, the live objects are remembered. After a merge inside, the graph tells of each object which one it is
        outside, and the copies are closed again.

        Args:
            node: A program.
            *filters: As for `sm.split`.

        Returns:
            `(graphdef, state)`, or `(graphdef, state1, state2, ...)` for several filters.

        Raises:
            GraphError: The context has ended, or the walk cannot be made.
            ArgumentError, StateError: As `sm.split`.
        """
        self._check_open()
        parts_for = [to_filter(each) for each in filters]
        taken = record(node)
        states = states_of(taken, parts_for, exhaustive=True)
        inside = self._inside
        if inside is None:
            outside = self._outside = _Outside(new_run_id(), taken.graphdef, taken.objects)
            mark = Mark(self.tag, outside.key, False, {index: index for index in taken.objects})
            return (taken.graphdef.marked(mark), *states)
        indices = {index: inside.numbers[x] for index, x in taken.objects.items() if x in inside.numbers}
        self._inside = None
        _close(inside.numbers)
        return (taken.graphdef.marked(Mark(self.tag, inside.key, True, indices)), *states)

    def merge(self, graphdef: GraphDef[M], state: StateLike, *states: StateLike) -> M:
        """Put a program together: step 2 inside, step 4 outside.

        Inside, new objects are made, whose structure is open for editing until they are split. Outside, the live
        objects become what the graph says, all of them or none, and keep their identity; what they pass on by
        reference (hooks, counters, language models) stays.

        Args:
            graphdef: What a split of this context gave, or of one with its tag.
            state: A State or its JSON.
            *states: More parts, in any order.

        Returns:
            New objects inside, the live ones outside.

        Raises:
            GraphError: 'Cannot merge without ref_index': nothing was split. 'Expected a NodeDef': a reference came. The
                graph was made in another context (names both tags), a live object would change its type, or the
                context has ended.
            StateError, StateSchemaError: As `sm.merge`.
        """
        self._check_open()
        mark = self._mark_of(graphdef)
        return (
            self._back(graphdef, mark, (state, *states))
            if mark.inside
            else self._into(graphdef, mark, (state, *states))
        )

    def end(self) -> None:
        """Forget everything; whoever uses the context afterwards is told."""
        self.ended = True
        if self._inside is not None:
            _close(self._inside.numbers)
        self._outside = self._inside = None

    # -- the steps ----------------------------------------------------------------------------------------------------

    def _mark_of(self, graphdef: GraphDef[Any]) -> Mark:
        """Find out which step a graph is for."""
        if isinstance(graphdef, NodeRef | VariableRef) or _is_reference(graphdef):
            raise GraphError("Expected a NodeDef, got a reference to one: merge the graph that defines it.")
        if not isinstance(graphdef, GraphDef):  # pyright: ignore[reportUnnecessaryIsInstance]  (not all callers are typed)
            raise ArgumentError(f"merge takes the GraphDef that split gave, not {graphdef!r:.200}.")
        mark = graphdef.mark
        if mark is None:
            self._split_before()
            raise GraphError(f"The graph was not made in update context {self.tag!r}: merge what `ctx.split` returned.")
        if mark.tag != self.tag or (mark.inside and mark.key != self._split_before().key):
            self._refuse(mark)
        return mark

    def _into(self, graphdef: GraphDef[M], mark: Mark, states: tuple[StateLike, ...]) -> M:
        """Step 2: make copies, and remember whose."""
        objects: dict[int, Any] = {}
        root = unflatten_into(graphdef, states, objects, {}, "merge", editable=True)
        numbers = RefMap((objects[index], number) for index, number in mark.indices.items() if index in objects)
        self._inside = _Inside(mark.key, numbers)
        return root

    def _back(self, graphdef: GraphDef[M], mark: Mark, states: tuple[StateLike, ...]) -> M:
        """Step 4: change the live objects."""
        live = self._split_before().objects
        lost = [number for number in mark.indices.values() if number not in live]
        if lost:
            raise GraphError(
                f"Context {self.tag!r} never gave out the numbers {lost}: the mapping of the graph is broken."
            )
        existing = {index: live[number] for index, number in mark.indices.items() if index in graphdef.definitions}
        for index, definition in graphdef.definitions.items():
            if index not in graphdef.kept:
                check_type(index, definition.type, existing)
        root = unflatten_into(graphdef, states, {}, existing, "merge")
        EDITS.bump()  # also where nodes that count no edits have changed
        self._outside = None
        return root

    # -- refusals -----------------------------------------------------------------------------------------------------

    def _check_open(self) -> None:
        if self.ended:
            raise GraphError(f"Update context {self.tag!r} has ended: use it inside its block.")

    def _split_before(self) -> _Outside:
        if self._outside is None:
            raise GraphError(
                f"Cannot merge without ref_index: nothing was split in update context {self.tag!r} (or it was merged "
                "already). Split the live program in it first; inside, merge the graph that this gave."
            )
        return self._outside

    def _refuse(self, mark: Mark) -> NoReturn:
        other = f"{mark.tag!r} (another split of that tag)" if mark.tag == self.tag else f"{mark.tag!r}"
        raise GraphError(
            f"The graph was made in update context {other}, this is {self.tag!r}: each knows its own objects."
        )

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise TypeError(f"cannot pickle update context {self.tag!r}: it holds live objects. Send its tag.")

    def __repr__(self) -> str:
        return f"UpdateContext({self.tag!r})"


def _is_reference(graphdef: Any) -> bool:
    """Tell whether a graph defines nothing, and only refers to what another one defines."""
    return (
        isinstance(graphdef, GraphDef) and not graphdef.definitions and isinstance(graphdef.root, NodeRef | VariableRef)
    )


def _close(copies: RefMap[int]) -> None:
    """Seal again what was opened for editing."""
    for copy in copies:
        impl = impl_of(copy)
        if impl is not None and impl.reseal is not None:
            impl.reseal(copy)
