"""update_context: the block, or the decorator, inside which a program may cross a boundary and come back.

The one place that sets the ContextVar of these contexts.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from contextvars import ContextVar, Token
from typing import Any, NamedTuple, NoReturn, TypeVar

from synmod.errors import ArgumentError, GraphError
from synmod.tree.boundaries.crossing import UpdateContext

F = TypeVar("F", bound=Callable[..., Any])


class _Active(NamedTuple):
    """An entered context and what is around it."""

    context: UpdateContext
    around: _Active | None


_ACTIVE: ContextVar[_Active | None] = ContextVar("synmod_update_context", default=None)


class _active:  # noqa: N801  # read as a word: `with _active(context):`
    """Make a context the innermost one for a block."""

    __slots__ = ("_context", "_token")

    def __init__(self, context: UpdateContext) -> None:
        self._context = context
        self._token: Token[_Active | None] | None = None

    def __enter__(self) -> None:
        self._token = _ACTIVE.set(_Active(self._context, _ACTIVE.get()))

    def __exit__(self, *_: object) -> None:
        if self._token is not None:
            try:
                _ACTIVE.reset(self._token)
            except ValueError:  # left in another context than it was entered in: nothing to restore there
                return


class update_context:  # noqa: N801  # read as a word: `with sm.update_context("worker") as ctx:`
    """Let a program cross a boundary, be restructured there, and come back into the same live objects.

    Four steps: `ctx.split(program)` outside, `ctx.merge(graphdef, state)` inside, any change, `ctx.split(inner)`
    inside, `ctx.merge(graphdef, state)` outside. As a
    decorator of a plain or `async def` function the context is open while the body runs.

    Args:
        tag: What the two sides know it by.

    Returns:
        (on entry) An `UpdateContext`, which has ended when the block is left.

    Raises:
        ArgumentError: The tag is no text, or what is decorated no function.
        TypeError: It is pickled.

    Example:
        >>> from synmod.tree import Param
        >>> program = {"a": Param("x"), "b": Param("y")}
        >>> a, b = program.values()
        >>> with update_context("worker") as ctx:
        ...     inner = ctx.merge(*ctx.split(program))
        ...     inner["a"], inner["b"] = inner["b"], inner["a"]
        ...     changed = ctx.merge(*ctx.split(inner))
        >>> changed["a"] is b, changed["b"] is a
        (True, True)

    Source: Flax NNX `update_context`; differs: atomic, by ContextVar.
    """

    __slots__ = ("_entries", "_tag")

    def __init__(self, tag: str) -> None:
        if not isinstance(tag, str):  # pyright: ignore[reportUnnecessaryIsInstance]  (not all callers are typed)
            raise ArgumentError(f"The tag of an update context is a text, not {tag!r:.200}.")
        self._tag = tag
        self._entries: list[tuple[UpdateContext, _active]] = []

    def __enter__(self) -> UpdateContext:
        context = UpdateContext(self._tag)
        block = _active(context)
        self._entries.append((context, block))
        block.__enter__()
        return context

    def __exit__(self, *_: object) -> None:
        active = _ACTIVE.get()
        mine = next((n for n, each in enumerate(self._entries) if active is not None and each[0] is active.context), -1)
        context, block = self._entries.pop(mine)
        context.end()
        block.__exit__()

    async def __aenter__(self) -> UpdateContext:
        return self.__enter__()

    async def __aexit__(self, *_: object) -> None:
        self.__exit__()

    def __call__(self, function: F) -> F:
        """Decorate a function: each call of it has a context of its own."""
        if not callable(function):  # pyright: ignore[reportUnnecessaryIsInstance]  (not all callers are typed)
            raise ArgumentError(f"update_context({self._tag!r}) decorates a function, not {function!r:.200}.")
        if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
            raise ArgumentError(f"update_context({self._tag!r}) decorates a plain or async function, not a generator.")
        return (_async if inspect.iscoroutinefunction(function) else _plain)(self._tag, function)

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise TypeError(f"cannot pickle update context {self._tag!r}: it belongs to the code that runs. Send its tag.")

    def __repr__(self) -> str:
        return f"update_context({self._tag!r})"


def current_update_context(tag: str) -> UpdateContext:
    """Find the innermost open update context of a tag in this task.

    Raises:
        GraphError: There is none.

    Example:
        >>> with update_context("worker") as ctx:
        ...     current_update_context("worker") is ctx
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


def _plain(tag: str, function: Callable[..., Any]) -> Any:
    @functools.wraps(function)
    def within(*args: Any, **kwargs: Any) -> Any:
        with update_context(tag):
            return function(*args, **kwargs)

    return within


def _async(tag: str, function: Callable[..., Any]) -> Any:
    @functools.wraps(function)
    async def within(*args: Any, **kwargs: Any) -> Any:
        with update_context(tag):
            return await function(*args, **kwargs)

    return within
