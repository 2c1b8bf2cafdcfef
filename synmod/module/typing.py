"""What a type checker is told of calling a module."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, Protocol, TypeVar

R_co = TypeVar("R_co", covariant=True)


class Calls(Protocol[R_co]):
    """A module whose `call` gives an `R_co`: awaiting the module gives the same."""

    @property
    def call(self) -> Callable[..., Coroutine[Any, Any, R_co]]: ...
