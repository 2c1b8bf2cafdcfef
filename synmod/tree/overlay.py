"""Layers over the values of Variables: what reads inside a block see, and where its writes go.

The one place that sets the ContextVar. A layer is shared by the tasks that were started below its block; a read goes
from the innermost layer outwards and ends at the live value.
"""

from __future__ import annotations

from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Container, Generator

    from synmod.leaves.frozen import Json

MISSING: Final[Any] = object()
"""Stands for 'this layer says nothing of that Variable'."""


class Layer:
    """Values by the identity of their Variable, over an outer layer or the live values.

    Args:
        members: Identities of the Variables whose writes belong here; None for all.
        values: What reads see at first, by identity; whoever makes the layer keeps those Variables alive.
        silent: Whether writes are nobody's business: no event is sent.
    """

    __slots__ = ("members", "outer", "silent", "values", "written")

    def __init__(self, members: Container[int] | None, values: dict[int, Json], silent: bool = False) -> None:
        self.outer: Layer | None = None
        self.members = members
        self.values = values
        self.written: dict[int, Any] = {}
        self.silent = silent

    def write(self, variable: object, value: Json) -> None:
        """Take a validated value."""
        self.values[id(variable)] = value
        self.written[id(variable)] = variable


LAYER: ContextVar[Layer | None] = ContextVar("synmod_overlay", default=None)
"""The innermost layer of this context."""


def layer_for(variable: object) -> Layer | None:
    """Give the layer that takes a write of this Variable, None where it goes to the live value."""
    layer = LAYER.get()
    while layer is not None and layer.members is not None and id(variable) not in layer.members:
        layer = layer.outer
    return layer


@contextmanager
def layered(layer: Layer) -> Generator[None]:
    """Put a layer on top for the block and the tasks started in it."""
    layer.outer = LAYER.get()
    token = LAYER.set(layer)
    try:
        yield
    finally:
        with suppress(ValueError):  # left in another context than it was entered in: that one has nothing to restore
            LAYER.reset(token)


@contextmanager
def discarding_writes() -> Generator[None]:
    """Let `assign` validate, and throw away what it wrote when the block ends; no live value changes.

    Source: graph.md section 10; the writes of a symbolic trace.
    """
    with layered(Layer(None, {}, silent=True)):
        yield
