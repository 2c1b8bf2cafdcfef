"""What a type checker is told of modules: awaiting a call gives what `call` gives; what every constructor takes."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypedDict, TypeVar

if TYPE_CHECKING:
    from synmod.scope import Hook

R_co = TypeVar("R_co", covariant=True)


class AsyncCallee(Protocol[R_co]):
    """A module whose `call` is `async def`."""

    @property
    def call(self) -> Callable[..., Coroutine[Any, Any, R_co]]:
        """The method of the user's class."""
        ...


class PlainCallee(Protocol[R_co]):
    """A module whose `call` is a plain `def`."""

    @property
    def call(self) -> Callable[..., R_co]:
        """The method of the user's class."""
        ...


class ModuleOptions(TypedDict, total=False):
    """The keywords that every module takes: `def __init__(self, ..., **options: Unpack[ModuleOptions])`."""

    name: str | None
    description: str | None
    trainable: bool
    hooks: Sequence[Hook] | None
