"""variable_creator: a function that makes, or changes, every Variable that modules add in a block."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar, Token
from typing import TYPE_CHECKING, Any, TypeAlias

from synmod.errors import ArgumentError
from synmod.scope import reset
from synmod.tree import Variable

if TYPE_CHECKING:
    from collections.abc import Mapping

Create: TypeAlias = Callable[..., Variable]
"""What makes a Variable of keywords."""

Creator: TypeAlias = Callable[..., Variable]

_CREATORS: ContextVar[tuple[Creator, ...]] = ContextVar("synmod_variable_creators", default=())
"""The creators of the open blocks, the outermost first."""


class variable_creator:  # noqa: N801  # read as a word: `with sm.variable_creator(fn):`
    """Let a function make every Variable that `add_variable` creates in the block, and in tasks started inside.

    Blocks nest; the innermost is asked first, and its `create` asks the next.

    Args:
        fn: `fn(create, **kwargs)` is given the keywords of `add_variable` and `owner`, the name of the module; it
            returns `create(**kwargs)`, the keywords or the Variable changed or not.

    Raises:
        ArgumentError: `fn` cannot be called; or (from `add_variable`) what it returns is no Variable.

    Example:
        >>> import synmod as sm
        >>> def frozen(create, **kwargs):
        ...     return create(**{**kwargs, "trainable": False})
        >>> with sm.variable_creator(frozen):
        ...     sm.Module().add_variable("x", name="prompt").trainable
        False

    Source: tf.variable_creator_scope.
    """

    __slots__ = ("_fn", "_tokens")

    def __init__(self, fn: Creator) -> None:
        if not callable(fn):
            raise ArgumentError(f"variable_creator takes a function fn(create, **kwargs), not {fn!r:.200}.")
        self._fn = fn
        self._tokens: list[Token[tuple[Creator, ...]]] = []

    def __enter__(self) -> None:
        self._tokens.append(_CREATORS.set((*_CREATORS.get(), self._fn)))

    def __exit__(self, *_: object) -> None:
        reset(_CREATORS, self._tokens.pop())


def created(make: Create, kwargs: Mapping[str, Any]) -> Variable:
    """Make a Variable by way of the creators of the open blocks.

    Raises:
        ArgumentError: One of them returned something else.
    """
    creators = _CREATORS.get()
    return _next(creators, make)(**kwargs) if creators else make(**kwargs)


def _next(creators: tuple[Creator, ...], make: Create) -> Create:
    """Give the function that asks the innermost of some creators."""
    if not creators:
        return make
    *outer, innermost = creators

    def create(**kwargs: Any) -> Variable:
        made: object = innermost(_next(tuple(outer), make), **kwargs)
        if not isinstance(made, Variable):  # pyright: ignore[reportUnnecessaryIsInstance]  (not all callers are typed)
            raise ArgumentError(
                f"A variable_creator returned {made!r:.200} for {kwargs.get('owner')!r}: return create(**kwargs)."
            )
        return made

    return create
