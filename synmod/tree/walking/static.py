"""`static(x)`: something that a program carries along, and that the graph never looks into."""

from __future__ import annotations

from typing import Any, Generic, TypeVar, final

T = TypeVar("T")


@final
class Static(Generic[T]):
    """Carries `value` by reference; equal only to a Static of the very same object."""

    __slots__ = ("value",)

    value: T

    def __init__(self, value: T) -> None:
        object.__setattr__(self, "value", value)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"A Static cannot be changed: make a new one instead of setting {name!r}.")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Static) and other.value is self.value  # pyright: ignore[reportUnknownMemberType]

    def __hash__(self) -> int:
        return id(self.value)

    def __reduce__(self) -> tuple[Any, ...]:
        return Static, (self.value,)

    def __repr__(self) -> str:
        return f"static({self.value!r:.80})"


def static(x: Any) -> Any:
    """Keep an object out of the graph, even a Module.

    It is passed on by reference, never descended into, and in no fingerprint and no file: after a load the constructor
    must set it again. An attribute set to it reads as `x`; inside a container it stays a `Static` with `.value`.

    Args:
        x: Any object: a client, a lock, a cache.

    Returns:
        A `Static`; typed as Any, because as an attribute it reads as `x`.

    Example:
        >>> [static(len)][0].value
        <built-in function len>

    Source: NNX `Static`, Equinox `field(static=True)`.
    """
    return x if isinstance(x, Static) else Static(x)  # pyright: ignore[reportUnknownVariableType]
