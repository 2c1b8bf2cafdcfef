"""split_context and merge_context: one index space over several splits, so that what programs share stays shared."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from synmod.errors import ArgumentError, GraphError
from synmod.tree.filtering.filters import to_filter
from synmod.tree.functional.merge import unflatten
from synmod.tree.functional.split import states_of
from synmod.tree.graphs.defs import NodeRef, VariableRef
from synmod.tree.graphs.graphdef import GraphDef
from synmod.tree.graphs.record import record
from synmod.tree.walking.refmap import RefMap

if TYPE_CHECKING:
    from synmod.tree.filtering.filters import FilterLike
    from synmod.tree.states.layout import StateLike
    from synmod.tree.states.state import State


class SplitContext:
    """What `with sm.split_context() as ctx:` gives: splits that know of one another."""

    __slots__ = ("_numbers",)

    def __init__(self) -> None:
        self._numbers: RefMap[int] | None = RefMap()

    def split(self, node: Any, *filters: FilterLike) -> tuple[Any, *tuple[State, ...]]:
        """Take a program apart; of what was split before in this context it has references only.

        Args:
            node: A program.
            *filters: As for `sm.split`.

        Returns:
            `(graphdef, state)`, or a State for each filter. For an object that was split before, `graphdef` is a
            `NodeRef` and the States are empty.

        Raises:
            GraphError: The context has ended, or the walk cannot be made.
            ArgumentError, StateError: As `sm.split`.
        """
        if self._numbers is None:
            raise GraphError("This split_context has ended and is empty: split inside its block.")
        parts_for = [to_filter(each) for each in filters]
        tried = RefMap[int](self._numbers)  # a split that fails leaves no numbers behind
        taken = record(node, tried)
        states = states_of(taken, parts_for, exhaustive=True)
        self._numbers = tried
        root = taken.graphdef.root
        known = not taken.graphdef.definitions and isinstance(root, NodeRef | VariableRef)
        return (root if known else taken.graphdef, *states)

    def end(self) -> None:
        """Forget everything."""
        self._numbers = None


class MergeContext:
    """What `with sm.merge_context() as ctx:` gives: merges that know of one another."""

    __slots__ = ("_objects",)

    def __init__(self) -> None:
        self._objects: dict[int, Any] | None = {}

    def merge(self, graphdef: Any, state: StateLike, *states: StateLike) -> Any:
        """Put a program together; references lead to what was merged before in this context.

        Args:
            graphdef: What `split` of a `split_context` gave, in the same order.
            state: A State or its JSON.
            *states: More parts, in any order.

        Returns:
            The program; for a `NodeRef` the object that was merged before.

        Raises:
            GraphError: The context has ended, or an index is already used.
            StateError: A reference leads to what was not merged yet; names the path and the index. Or as `sm.merge`.
            ArgumentError: It is no GraphDef.
        """
        if self._objects is None:
            raise GraphError("This merge_context has ended and is empty: merge inside its block.")
        return unflatten(_shape_of(graphdef), state, *states, index_ref=self._objects)

    def end(self) -> None:
        """Forget everything."""
        self._objects = None


def _shape_of(given: Any) -> GraphDef[Any]:
    """Give a graph; of a reference one that refers to what it means."""
    if isinstance(given, NodeRef | VariableRef):
        return GraphDef(given, {}, foreign={given.index: ()})
    if isinstance(given, GraphDef):
        return given  # pyright: ignore[reportUnknownVariableType]
    raise ArgumentError(f"merge takes the GraphDef that split gave, not {given!r:.200}.")


class split_context:  # noqa: N801  # read as a word: `with sm.split_context() as ctx:`
    """Share one index space over several splits.

    Returns:
        (on entry) A `SplitContext`, which is empty when the block is left.

    Example:
        >>> from synmod.tree import Param
        >>> tied = Param("x")
        >>> with split_context() as ctx:
        ...     first, second = ctx.split({"a": tied}), ctx.split({"b": tied})
        >>> with merge_context() as ctx:
        ...     ctx.merge(*first)["a"] is ctx.merge(*second)["b"]
        True

    Source: Flax NNX `split_context`.
    """

    __slots__ = ("_context",)

    def __enter__(self) -> SplitContext:
        self._context = SplitContext()
        return self._context

    def __exit__(self, *_: object) -> None:
        self._context.end()


class merge_context:  # noqa: N801  # likewise
    """Share one index space over several merges.

    Returns:
        (on entry) A `MergeContext`, which is empty when the block is left.

    Example:
        >>> from synmod.tree import Param
        >>> with split_context() as ctx:
        ...     parts = ctx.split({"a": Param("x")})
        >>> with merge_context() as ctx:
        ...     ctx.merge(*parts)["a"].value
        'x'

    Source: Flax NNX `merge_context`.
    """

    __slots__ = ("_context",)

    def __enter__(self) -> MergeContext:
        self._context = MergeContext()
        return self._context

    def __exit__(self, *_: object) -> None:
        self._context.end()
