"""Restructure a copy of a program, and merge the changes into the same live objects: `update_context` and its kin.

No other room needs them: they are for users who restructure a program in a function that takes and returns its parts,
as Flax NNX modules cross `jit`. Only `update_context` sets the ContextVar of open contexts.
"""

import inspect
from collections.abc import Callable, Mapping, MutableMapping
from contextlib import ExitStack
from contextvars import ContextVar, Token
from typing import Any, Self, TypeVar, overload

from synmod.errors import ArgumentError, GraphError
from synmod.leaves import aio, check_type, reset

from . import editing
from .filters import FilterLike
from .graphdef import REFERENCES, GraphDef, NodeDef, Recording, VariableDef, record
from .merging import build_graph, check_references, fit_values, pairs_of, resolve_references, states_of, whole_graphdef
from .states import State, StateLike
from .variable import Write
from .walk import RefMap, get_node_impl

M = TypeVar("M")
F = TypeVar("F", bound=Callable[..., Any])


# -- split and merge with an explicit index space ----------------------------------------------------------------------


def flatten(node: M, ref_index: RefMap[int] | None = None) -> tuple[GraphDef[M], State]:
    """Split with an explicit index space.

    Args:
        node: A program.
        ref_index: Numbers given before; objects in it become references, new objects are added.

    Returns:
        `(graphdef, state)`; the State holds the new Variables only.

    Raises:
        ArgumentError: `node` cannot be the root of a graph.

    Example:
        >>> from synmod.tree import Param
        >>> numbers = RefMap()
        >>> graphdef, state = flatten([Param("x")], numbers)
        >>> list(numbers.values())
        [0]

    Source: Flax NNX `flatten`.
    """
    recorded = record(node, ref_index)
    return recorded.graphdef, states_of(recorded)[0]


def unflatten(
    graphdef: GraphDef[M],
    state: StateLike,
    *states: StateLike,
    index_ref: MutableMapping[int, Any] | None = None,
    index_ref_cache: Mapping[int, Any] | None = None,
) -> M:
    """Merge with an explicit index space.

    Atomic: every check comes before the first write, and if a node refuses its new content, all nodes are restored.

    Args:
        graphdef: Structure.
        state: A State or values by path text.
        *states: More parts, in any order.
        index_ref: Objects by index, made by earlier calls; the objects of this call are added.
        index_ref_cache: Objects by index that are rewritten in place and keep their identity.

    Returns:
        The root.

    Raises:
        GraphError: An index of the graph is in `index_ref` ('already used'), or the cache holds another type for it.
        StateError: As for `merge`.

    Example:
        >>> from synmod.tree import Param, flatten, split
        >>> live = {"a": Param("x")}
        >>> graphdef, state = split({"a": Param("y")})
        >>> unflatten(graphdef, state, index_ref_cache={0: live["a"]})["a"] is live["a"], live["a"].value
        (True, 'y')

    Source: Flax NNX `unflatten`.
    """
    objects: dict[int, Any] = dict(index_ref or {})
    existing = dict(index_ref_cache or {})
    for index, definition in graphdef.definitions.items():
        if index in objects:
            raise GraphError(f"Index {index} ({definition.type.__name__}) is already used: each index is defined once.")
        if index in existing and type(existing[index]) is not definition.type:
            kind = type(existing[index]).__name__
            raise GraphError(f"Index {index} is a {definition.type.__name__} in the graph, but a {kind} in the cache.")
    check_references(graphdef, objects)
    values = fit_values(graphdef, (state, *states), "merge")
    objects.update({index: existing.get(index, target) for index, target in graphdef.by_reference.items()})
    changing = [
        definition
        for index, definition in graphdef.definitions.items()
        if index in existing and index not in graphdef.by_reference
    ]
    objects.update({definition.index: existing[definition.index] for definition in changing})
    root = build_graph(graphdef, values, objects)
    writes = [
        Write(objects[definition.index], *values[definition.index], definition.schema)
        for definition in changing
        if isinstance(definition, VariableDef)
    ]
    nodes = [definition for definition in reversed(changing) if isinstance(definition, NodeDef)]
    # nodes of users first: they may raise
    nodes.sort(key=lambda definition: get_node_impl(objects[definition.index]).rewrite is not None)
    with ExitStack() as undo:
        for definition in nodes:
            node, impl = objects[definition.index], get_node_impl(objects[definition.index])
            undo.callback(editing.rewrite_in_place, node, impl.metadata_of(node), impl.pairs(node))
            metadata = resolve_references(definition.metadata, impl.map_refs, objects)
            editing.rewrite_in_place(node, metadata, pairs_of(definition, objects))
        undo.pop_all()
    editing.write_all(writes)
    if index_ref is not None:
        index_ref.update(objects)
    return root


# -- update contexts ---------------------------------------------------------------------------------------------------

_INNERMOST: "ContextVar[update_context | None]" = ContextVar("synmod_update_context", default=None)


class update_context:  # noqa: N801  # read as a word: `with sm.update_context("editor") as ctx:`
    """Restructure a copy of a program, and apply the changes to the same live objects.

    Four steps: `ctx.split(program)` outside, `ctx.merge(graphdef, state)` inside, any change, `ctx.split(inner)`
    inside, `ctx.merge(graphdef, state)` outside. As a decorator of a plain or `async def` function the context is open
    while the body runs. It works within one process.

    Args:
        tag: The name under which `current_update_context` finds the context.

    Attributes:
        tag: The name.
        is_open: Whether the block was entered and not left.

    Raises:
        ArgumentError: The tag is not a str, or the decorated object is not a plain or async function.
        GraphError: (on entry) The block is already entered.

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

    def __init__(self, tag: str) -> None:
        check_type("update_context: tag", tag, str, "a str")
        self.tag = tag
        self.is_open = False

    def __enter__(self) -> Self:
        if self.is_open:
            raise GraphError(f"Update context {self.tag!r} is already entered: make one for each block.")
        self.is_open = True
        self._outside: Recording[Any] | None = None
        self._copies: RefMap[int] | None = None  # from each copy inside to its index outside
        self._mapping: dict[int, int] | None = None  # from each index inside to the index outside
        self.around = _INNERMOST.get()
        self._token: Token[update_context | None] = _INNERMOST.set(self)
        return self

    def __exit__(self, *_: object) -> None:
        self.is_open, self._outside, self._copies = False, None, None
        reset(_INNERMOST, self._token)

    def __call__(self, function: F) -> F:
        """Decorate a function: each call opens a context of its own."""
        tag = self.tag
        is_generator = inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function)
        if is_generator or not callable(function):  # pyright: ignore[reportUnnecessaryIsInstance]  (likewise)
            what = "a generator" if is_generator else f"{function!r:.100}"
            raise ArgumentError(f"update_context({tag!r}) decorates a plain or async function, not {what}.")
        return aio.in_block(function, lambda _: update_context(tag))

    @overload
    def split(self, node: M, only: FilterLike = ..., /) -> tuple[GraphDef[M], State]: ...
    @overload
    def split(self, node: M, *filters: FilterLike) -> tuple[GraphDef[M], *tuple[State, ...]]: ...
    def split(self, node: M, *filters: FilterLike) -> tuple[GraphDef[M], *tuple[State, ...]]:
        """Split a program: step 1 outside, step 3 inside.

        Outside, the live objects are remembered. After a merge inside, the graph has an index mapping.

        Args:
            node: A program.
            *filters: As for `sm.split`.

        Returns:
            `(graphdef, state)`, or `(graphdef, state1, state2, ...)` for several filters.

        Raises:
            GraphError: The context has ended, or the graph cannot be walked.
            ArgumentError, StateError: As for `sm.split`.
        """
        self._check_open()
        recorded = record(node)
        states = states_of(recorded, filters)
        copies, self._copies = self._copies, None
        if copies is None:
            self._outside, self._mapping = recorded, None
            return recorded.graphdef, *states
        self._mapping = {index: copies[x] for index, x in recorded.objects.items() if x in copies}
        bare = recorded.graphdef
        mapped = GraphDef[M](
            bare.root, bare.definitions, bare.leaf_paths, bare.by_reference, bare.foreign, self._mapping
        )
        return mapped, *states

    def merge(self, graphdef: GraphDef[M], state: StateLike, *states: StateLike) -> M:
        """Merge a program: step 2 inside, step 4 outside.

        Inside, new objects are made, whose structure is open for editing. Outside, the live objects change to match the
        graph, all of them or none, and keep their identity.

        Args:
            graphdef: Structure, as returned by `split` of this context.
            state: A State or values by path text.
            *states: More parts, in any order.

        Returns:
            New objects inside, the live objects outside.

        Raises:
            GraphError: Nothing was split ('Cannot merge without ref_index'), `graphdef` is a reference ('Expected a
                NodeDef') or was made in another context, or the context has ended.
            StateError, StateSchemaError: As for `sm.merge`.
        """
        self._check_open()
        if type(graphdef) in REFERENCES or not getattr(graphdef, "definitions", True):  # pyright: ignore[reportUnnecessaryContains]
            raise GraphError("Expected a NodeDef, got a reference to one: merge the graph that defines it.")
        whole_graphdef(graphdef)
        outside = self._outside
        if outside is None:
            raise GraphError(
                f"Cannot merge without ref_index: nothing was split in update context {self.tag!r} (or it was merged "
                "already). First split the live program in it; inside, merge the graph that the split returned."
            )
        if graphdef is outside.graphdef:
            objects = dict(graphdef.by_reference)
            values = fit_values(graphdef, (state, *states), "merge")
            copy = build_graph(graphdef, values, objects, unsealed=True)
            self._copies = RefMap((x, index) for index, x in objects.items())
            return copy
        mapping = self._mapping
        if mapping is None or graphdef.index_mapping is not mapping:
            raise GraphError(f"The graph was not made by the last split in update context {self.tag!r}.")
        existing = {index: outside.objects[number] for index, number in mapping.items()}
        live = unflatten(graphdef, state, *states, index_ref_cache=existing)
        self._outside = None
        return live

    def _check_open(self) -> None:
        if not self.is_open:
            raise GraphError(f"Update context {self.tag!r} has ended: use it inside its block.")


def current_update_context(tag: str) -> update_context:
    """Return the innermost open update context with a tag in this task.

    Raises:
        GraphError: No context with this tag is open.

    Example:
        >>> with update_context("editor") as ctx:
        ...     current_update_context("editor") is ctx
        True

    Source: Flax NNX `current_update_context`.
    """
    context = _INNERMOST.get()
    while context is not None:
        if context.tag == tag and context.is_open:
            return context
        context = context.around
    raise GraphError(
        f"No update context found for tag {tag!r}: open one with `with sm.update_context({tag!r}) as ctx:`."
    )


# -- shared index spaces -----------------------------------------------------------------------------------------------


class split_context:  # noqa: N801  # likewise
    """Share one index space over several splits, so that objects shared between programs stay shared.

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

    @overload
    def split(self, node: Any, only: FilterLike = ..., /) -> tuple[Any, State]: ...
    @overload
    def split(self, node: Any, *filters: FilterLike) -> tuple[Any, *tuple[State, ...]]: ...
    def split(self, node: Any, *filters: FilterLike) -> tuple[Any, *tuple[State, ...]]:
        """Split a program; objects split before in this context become references.

        Args:
            node: A program.
            *filters: As for `sm.split`.

        Returns:
            `(graphdef, state)`, or a State for each filter. For an object that was split before, `graphdef` is a
            `NodeRef` and the States are empty.

        Raises:
            GraphError: The context is not open, or the graph cannot be walked.
            ArgumentError, StateError: As for `sm.split`.
        """
        if self._numbers is None:
            raise GraphError("This split_context is not open: split inside its block.")
        tried = RefMap[int](self._numbers)  # a copy, so that a split that fails leaves no numbers behind
        recorded = record(node, tried)
        states = states_of(recorded, filters)
        self._numbers = tried
        root = recorded.graphdef.root
        is_alias = not recorded.graphdef.definitions and type(root) in REFERENCES
        return (root if is_alias else recorded.graphdef), *states


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
        """Merge a program; references lead to objects merged before in this context.

        Args:
            graphdef: Structure, as returned by `split` of a `split_context`; merge in the order of the splits.
            state: A State or values by path text.
            *states: More parts, in any order.

        Returns:
            The program; for a `NodeRef` the object that was merged before.

        Raises:
            GraphError: The context is not open, or an index is already used.
            StateError: A reference leads to an object not merged yet; names the path and index. Or as for `sm.merge`.
            ArgumentError: `graphdef` is neither a GraphDef nor a reference.
        """
        if self._objects is None:
            raise GraphError("This merge_context is not open: merge inside its block.")
        return unflatten(whole_graphdef(graphdef), state, *states, index_ref=self._objects)
