"""What a type checker is told of calling a module: awaiting it gives what its `call` gives."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, Protocol, TypeVar

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
