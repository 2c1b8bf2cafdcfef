"""call: a method run on a program that exists for that call alone; state goes in, state comes out."""

from __future__ import annotations

import inspect
from collections.abc import AsyncGenerator, AsyncIterator, Coroutine
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar, cast

from synmod.errors import ArgumentError
from synmod.tree.functional.merge import merge
from synmod.tree.functional.split import split
from synmod.tree.graphs.graphdef import GraphDef

if TYPE_CHECKING:
    from synmod.tree.states.layout import StateLike
    from synmod.tree.states.state import State

M = TypeVar("M")
Pair = tuple[GraphDef[Any], "State"]


def call(parts: tuple[GraphDef[M], *tuple[StateLike, ...]]) -> PureCall[M]:
    """Call methods of a program that came apart: `out, (graphdef, state) = await sm.call((graphdef, state)).encode(x)`.

    Attributes and items walk down; a call runs the method on a private merge. A plain method gives its result at once,
    an async generator an async iterator whose `.state` is final at its end. The original is untouched, and calls with
    other States at the same time know nothing of one another.

    Args:
        parts: What `split` gave: the graph and one or more States.

    Returns:
        A proxy. A call gives `(out, (graphdef, state))`; the same graph where the structure is unchanged.

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
        raise ArgumentError(f"call takes the pair that split gave, (graphdef, state); got {parts!r:.200}.")
    return PureCall(parts[0], parts[1:], ())


class PureCall(Generic[M]):
    """A place in a program that came apart; what `call` gives."""

    __slots__ = ("__graphdef", "__states", "__steps")  # names that hide no attribute of a program

    def __init__(
        self, graphdef: GraphDef[M], states: tuple[StateLike, ...], steps: tuple[tuple[str, Any], ...]
    ) -> None:
        self.__graphdef = graphdef
        self.__states = states
        self.__steps = steps

    def __getattr__(self, name: str) -> PureCall[M]:
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        return PureCall(self.__graphdef, self.__states, (*self.__steps, ("attribute", name)))

    def __getitem__(self, key: Any) -> PureCall[M]:
        return PureCall(self.__graphdef, self.__states, (*self.__steps, ("item", key)))

    __iter__ = None  # without it Python would iterate by way of __getitem__

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        """Run what stands here on a private merge."""
        root = merge(self.__graphdef, *self.__states)
        target: Any = root
        for kind, key in self.__steps:
            target = getattr(target, key) if kind == "attribute" else target[key]
        out = target(*args, **kwargs)
        run = _Run(self.__graphdef, root)
        if isinstance(out, AsyncIterator):
            return PureStream(cast("AsyncGenerator[Any, Any]", out), run)
        if inspect.iscoroutine(out):
            return _waited(cast("Coroutine[Any, Any, Any]", out), run)
        return out, run.parts()

    def __repr__(self) -> str:
        steps = "".join(f".{key}" if kind == "attribute" else f"[{key!r}]" for kind, key in self.__steps)
        return f"call((graphdef, state)){steps}"


class _Run:
    """The program of one call, and the graph that it was made of."""

    __slots__ = ("_graphdef", "_root")

    def __init__(self, graphdef: GraphDef[Any], root: Any) -> None:
        self._graphdef = graphdef
        self._root = root

    def parts(self) -> Pair:
        """Take the program apart; the very graph it came from where nothing of the structure changed."""
        graphdef, state = split(self._root)
        return (self._graphdef if graphdef == self._graphdef else graphdef), state


async def _waited(out: Coroutine[Any, Any, Any], run: _Run) -> tuple[Any, Pair]:
    """Wait for an async method."""
    return await out, run.parts()


class PureStream(AsyncIterator[Any]):
    """What an async generator yields; `graphdef` and `state` are those of the moment, final at its end."""

    __slots__ = ("_items", "_run")

    def __init__(self, items: AsyncGenerator[Any, Any], run: _Run) -> None:
        self._items = items
        self._run = run

    @property
    def graphdef(self) -> GraphDef[Any]:
        """The structure."""
        return self._run.parts()[0]

    @property
    def state(self) -> State:
        """The values."""
        return self._run.parts()[1]

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Any:
        return await anext(self._items)

    async def aclose(self) -> None:
        """End it early."""
        await self._items.aclose()
