"""One index space over several splits and merges: copies that come back as changes of the same live objects.

`update_context` is the one place that sets the ContextVar of open contexts.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, MutableMapping
from contextlib import ExitStack
from contextvars import ContextVar, Token
from typing import Any, NamedTuple, NoReturn, Self, TypeVar, cast

from synmod.errors import ArgumentError, GraphError

from .editing import become, write_all
from .filters import FilterLike, to_filter
from .fitting import StateLike
from .graphdef import GraphDef, NodeDef, NodeRef, Recording, VariableDef, VariableRef, record
from .merging import build_graph, check_references, checked_values, pairs_of, resolved, states_of
from .nodes import get_node_impl
from .states import State
from .variable import Write
from .walk import RefMap

M = TypeVar("M")
F = TypeVar("F", bound=Callable[..., Any])


# -- split and merge with the index space in hand ----------------------------------------------------------------------


def flatten(node: M, ref_index: RefMap[int] | None = None) -> tuple[GraphDef[M], State]:
    """Split with an index space in hand.

    Args:
        node: A program.
        ref_index: Numbers given before; what is in it becomes a reference, what is new is added.

    Returns:
        `(graphdef, state)`; the State has what is new.

    Raises:
        ArgumentError: `node` holds no graph.

    Example:
        >>> from synmod.tree import Param
        >>> numbers = RefMap()
        >>> graphdef, state = flatten([Param("x")], numbers)
        >>> list(numbers.values())
        [0]

    Source: Flax NNX `flatten`.
    """
    taken = record(node, ref_index)
    return taken.graphdef, states_of(taken)[0]


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
        state: A State or values by path text.
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
    cache = dict(index_ref_cache or {})
    for index, definition in graphdef.definitions.items():
        if index in objects:
            raise GraphError(f"Index {index} ({definition.type.__name__}) is already used: each is defined once.")
        if index in cache and type(cache[index]) is not definition.type:
            kind = type(cache[index]).__name__
            raise GraphError(f"Index {index} is a {definition.type.__name__} in the graph, but {kind} in the cache.")
    root = _merged_into(graphdef, (state, *states), objects, cache, "unflatten")
    if index_ref is not None:
        index_ref.update(objects)
    return root


def _merged_into(
    graphdef: GraphDef[M],
    states: tuple[StateLike, ...],
    objects: dict[int, Any],
    existing: Mapping[int, Any],
    what: str,
) -> M:
    """Merge, where some objects are there already and change in place: all of them or none.

    Args:
        graphdef: Shape.
        states: The values.
        objects: Objects by index that are used as they are; all others of the graph are added.
        existing: Objects by index that become in place what the graph has of them.
        what: The name of the function, for errors.
    """
    check_references(graphdef, objects)
    values = checked_values(graphdef, states, what)
    objects.update({index: existing.get(index, kept) for index, kept in graphdef.kept.items()})
    changing = [each for each in graphdef.definitions.values() if each.index in existing and each.index not in objects]
    objects.update({each.index: existing[each.index] for each in changing})
    root = build_graph(graphdef, values, objects)
    writes = [
        Write(objects[each.index], *values[each.index], each.schema)
        for each in changing
        if isinstance(each, VariableDef)
    ]
    nodes = [each for each in reversed(changing) if isinstance(each, NodeDef)]
    nodes.sort(key=lambda each: get_node_impl(objects[each.index]).rewrite is not None)  # a user's may raise: first
    with ExitStack() as taking_back:
        for each in nodes:
            node, impl = objects[each.index], get_node_impl(objects[each.index])
            taking_back.callback(become, node, impl.metadata_of(node), impl.pairs(node))
            metadata = each.metadata if impl.map_refs is None else resolved(each.metadata, impl.map_refs, objects)
            become(node, metadata, pairs_of(each, objects))
        taking_back.pop_all()
    write_all(writes)
    return root


# -- update contexts ---------------------------------------------------------------------------------------------------


class IndexMapping(dict[int, int]):
    """The index outside of each index of a graph that was split inside an update context.

    Attributes:
        outside: The graph that was split outside.
        tag: The tag of the context.
    """

    __slots__ = ("outside", "tag")

    def __init__(self, indices: Mapping[int, int], outside: GraphDef[Any], tag: str) -> None:
        super().__init__(indices)
        self.outside = outside
        self.tag = tag

    def __reduce__(self) -> tuple[Any, ...]:  # outside its process it has no meaning beyond the numbers
        return dict, (dict(self),)


class UpdateContext:
    """What `with sm.update_context(tag) as ctx:` returns: four steps, to a copy of a program and back.

    Attributes:
        tag: The tag.
        ended: Whether its block was left.
    """

    __slots__ = ("_copies", "_outside", "ended", "tag")

    def __init__(self, tag: str) -> None:
        self.tag = tag
        self.ended = False
        self._outside: Recording[Any] | None = None
        self._copies: RefMap[int] | None = None  # the index outside of each copy inside

    def split(self, node: M, *filters: FilterLike) -> tuple[GraphDef[M], *tuple[State, ...]]:
        """Take a program apart: step 1 outside, step 3 inside.

        Outside, the live objects are remembered. After a merge inside, the graph has an index mapping.

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
        states = states_of(taken, parts_for)
        copies, outside = self._copies, self._outside
        if copies is None or outside is None:
            self._outside = taken
            return taken.graphdef, *states
        indices = {index: copies[x] for index, x in taken.objects.items() if x in copies}
        self._copies = None
        return taken.graphdef.with_index_mapping(IndexMapping(indices, outside.graphdef, self.tag)), *states

    def merge(self, graphdef: GraphDef[M], state: StateLike, *states: StateLike) -> M:
        """Put a program together: step 2 inside, step 4 outside.

        Inside, new objects are made, whose structure is open for editing. Outside, the live objects become what the
        graph has of them, all of them or none, and keep their identity.

        Args:
            graphdef: What `split` of this context returned.
            state: A State or values by path text.
            *states: More parts, in any order.

        Returns:
            New objects inside, the live ones outside.

        Raises:
            GraphError: 'Cannot merge without ref_index': nothing was split. 'Expected a NodeDef': a reference came. The
                graph was made in another context, or the context has ended.
            StateError, StateSchemaError: As `sm.merge`.
        """
        self._check_open()
        bare = isinstance(graphdef, GraphDef) and not graphdef.definitions  # pyright: ignore[reportUnnecessaryIsInstance]
        if isinstance(graphdef.root if bare else graphdef, NodeRef | VariableRef):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise GraphError("Expected a NodeDef, got a reference to one: merge the graph that defines it.")
        if not isinstance(graphdef, GraphDef):  # pyright: ignore[reportUnnecessaryIsInstance]  (not all callers are typed)
            raise ArgumentError(f"merge takes the GraphDef that split returned, not {graphdef!r:.200}.")
        outside, mapping = self._outside, graphdef.index_mapping
        if outside is None:
            raise GraphError(
                f"Cannot merge without ref_index: nothing was split in update context {self.tag!r} (or it was merged "
                "already). Split the live program in it first; inside, merge the graph that this returned."
            )
        if mapping is None:
            if graphdef is not outside.graphdef:
                raise GraphError(f"The graph was not made by the last split in update context {self.tag!r}.")
            objects = dict(graphdef.kept)
            values = checked_values(graphdef, (state, *states), "merge")
            root = build_graph(graphdef, values, objects, unsealed=True)
            self._copies = RefMap((x, index) for index, x in objects.items())
            return root
        if not isinstance(mapping, IndexMapping) or mapping.outside is not outside.graphdef:
            tag = mapping.tag if isinstance(mapping, IndexMapping) else "of another process"
            other = f"{tag!r} (another split of that tag)" if tag == self.tag else f"{tag!r}"
            raise GraphError(f"The graph was made in update context {other}, this is {self.tag!r}.")
        existing = {index: outside.objects[number] for index, number in mapping.items()}
        root = _merged_into(graphdef, (state, *states), {}, existing, "merge")
        self._outside = None
        return root

    def end(self) -> None:
        """Forget everything."""
        self.ended = True
        self._outside = self._copies = None

    def _check_open(self) -> None:
        if self.ended:
            raise GraphError(f"Update context {self.tag!r} has ended: use it inside its block.")

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise TypeError(f"cannot pickle update context {self.tag!r}: it holds live objects.")

    def __repr__(self) -> str:
        return f"UpdateContext({self.tag!r})"


class _Active(NamedTuple):
    """An open context and what is around it."""

    context: UpdateContext
    around: _Active | None


_ACTIVE: ContextVar[_Active | None] = ContextVar("synmod_update_context", default=None)


class update_context:  # noqa: N801  # read as a word: `with sm.update_context("editor") as ctx:`
    """Let code restructure a copy of a program, and bring the changes back into the same live objects.

    Four steps: `ctx.split(program)` outside, `ctx.merge(graphdef, state)` inside, any change, `ctx.split(inner)`
    inside, `ctx.merge(graphdef, state)` outside. As a decorator of a plain or `async def` function the context is open
    while the body runs. It works in one process.

    Args:
        tag: The name under which `current_update_context` finds it.

    Returns:
        (on entry) An `UpdateContext`, which has ended when the block is left.

    Raises:
        ArgumentError: The tag is not a str, or what is decorated not a plain or async function.
        GraphError: (on entry) The block is entered already.
        TypeError: It is pickled.

    Example:
        >>> from synmod.tree import Param
        >>> program = {"a": Param("x"), "b": Param("y")}
        >>> a, b = program.values()
        >>> with update_context("editor") as ctx:
        ...     inner = ctx.merge(*ctx.split(program))
        ...     inner["a"], inner["b"] = inner["b"], inner["a"]
        ...     changed = ctx.merge(*ctx.split(inner))
        >>> changed["a"] is b, changed["b"] is a
        (True, True)

    Source: Flax NNX `update_context`; differs: atomic, by ContextVar.
    """

    __slots__ = ("_context", "_tag", "_token")

    def __init__(self, tag: str) -> None:
        if not isinstance(tag, str):  # pyright: ignore[reportUnnecessaryIsInstance]  (not all callers are typed)
            raise ArgumentError(f"The tag of an update context is a str, not {tag!r:.200}.")
        self._tag = tag
        self._context: UpdateContext | None = None
        self._token: Token[_Active | None] | None = None

    def __enter__(self) -> UpdateContext:
        if self._context is not None:
            raise GraphError(f"This block of update context {self._tag!r} is entered already: make one for each.")
        self._context = UpdateContext(self._tag)
        self._token = _ACTIVE.set(_Active(self._context, _ACTIVE.get()))
        return self._context

    def __exit__(self, *_: object) -> None:
        context, self._context = self._context, None
        if context is not None:
            context.end()
        if self._token is not None:
            try:
                _ACTIVE.reset(self._token)
            except ValueError:  # left in another context than it was entered in: nothing to restore there
                return

    def __call__(self, function: F) -> F:
        """Decorate a function: each call of it has a context of its own."""
        generator = inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function)
        if not callable(function) or generator:  # pyright: ignore[reportUnnecessaryIsInstance]  (not all callers are typed)
            kind = "a generator" if generator else f"{function!r:.100}"
            raise ArgumentError(f"update_context({self._tag!r}) decorates a plain or async function, not {kind}.")
        tag = self._tag
        if inspect.iscoroutinefunction(function):

            @functools.wraps(function)
            async def waiting(*args: Any, **kwargs: Any) -> Any:
                with update_context(tag):
                    return await function(*args, **kwargs)

            return cast("F", waiting)

        @functools.wraps(function)
        def plain(*args: Any, **kwargs: Any) -> Any:
            with update_context(tag):
                return function(*args, **kwargs)

        return cast("F", plain)

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise TypeError(f"cannot pickle update context {self._tag!r}: it belongs to the code that runs.")

    def __repr__(self) -> str:
        return f"update_context({self._tag!r})"


def current_update_context(tag: str) -> UpdateContext:
    """Return the innermost open update context of a tag in this task.

    Raises:
        GraphError: There is none.

    Example:
        >>> with update_context("editor") as ctx:
        ...     current_update_context("editor") is ctx
        True

    Source: Flax NNX `current_update_context`.
    """
    active = _ACTIVE.get()
    while active is not None:
        if active.context.tag == tag and not active.context.ended:
            return active.context
        active = active.around
    raise GraphError(
        f"No update context found for tag {tag!r}: open one with `with sm.update_context({tag!r}) as ctx:`."
    )


# -- shared index spaces -----------------------------------------------------------------------------------------------


class split_context:  # noqa: N801  # likewise
    """Share one index space over several splits, so that what programs share stays shared.

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

    __slots__ = ("_numbers",)

    def __init__(self) -> None:
        self._numbers: RefMap[int] | None = None

    def __enter__(self) -> Self:
        self._numbers = RefMap()
        return self

    def __exit__(self, *_: object) -> None:
        self._numbers = None

    def split(self, node: Any, *filters: FilterLike) -> tuple[Any, *tuple[State, ...]]:
        """Take a program apart; what was split before in this context becomes references.

        Args:
            node: A program.
            *filters: As for `sm.split`.

        Returns:
            `(graphdef, state)`, or a State for each filter. For an object that was split before, `graphdef` is a
            `NodeRef` and the States are empty.

        Raises:
            GraphError: The context is not open, or the walk cannot be made.
            ArgumentError, StateError: As `sm.split`.
        """
        if self._numbers is None:
            raise GraphError("This split_context has ended and is empty: split inside its block.")
        parts_for = [to_filter(each) for each in filters]
        tried = RefMap[int](self._numbers)  # a split that fails leaves no numbers behind
        taken = record(node, tried)
        states = states_of(taken, parts_for)
        self._numbers = tried
        root = taken.graphdef.root
        known = not taken.graphdef.definitions and isinstance(root, NodeRef | VariableRef)
        return (root if known else taken.graphdef), *states


class merge_context:  # noqa: N801  # likewise
    """Share one index space over several merges.

    Example:
        >>> from synmod.tree import Param
        >>> with split_context() as ctx:
        ...     parts = ctx.split({"a": Param("x")})
        >>> with merge_context() as ctx:
        ...     ctx.merge(*parts)["a"].value
        'x'

    Source: Flax NNX `merge_context`.
    """

    __slots__ = ("_objects",)

    def __init__(self) -> None:
        self._objects: dict[int, Any] | None = None

    def __enter__(self) -> Self:
        self._objects = {}
        return self

    def __exit__(self, *_: object) -> None:
        self._objects = None

    def merge(self, graphdef: Any, state: StateLike, *states: StateLike) -> Any:
        """Put a program together; references lead to what was merged before in this context.

        Args:
            graphdef: What `split` of a `split_context` returned, in the same order.
            state: A State or values by path text.
            *states: More parts, in any order.

        Returns:
            The program; for a `NodeRef` the object that was merged before.

        Raises:
            GraphError: The context is not open, or an index is already used.
            StateError: A reference leads to what was not merged yet; names the path and the index. Or as `sm.merge`.
            ArgumentError: It is not a GraphDef.
        """
        if self._objects is None:
            raise GraphError("This merge_context has ended and is empty: merge inside its block.")
        shape: Any = graphdef
        if isinstance(shape, NodeRef | VariableRef):
            shape = GraphDef[Any](shape, {}, {}, foreign={shape.index: ()})
        if type(shape) is not GraphDef:  # pyright: ignore[reportUnknownVariableType]  (its type is not narrowed)
            raise ArgumentError(f"merge takes the GraphDef that split returned, not {graphdef!r:.200}.")
        return unflatten(cast("GraphDef[Any]", shape), state, *states, index_ref=self._objects)
