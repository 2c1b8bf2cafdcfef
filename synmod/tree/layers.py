"""Layers over the values of Variables: the overlays and traces that are open in a task, in one ContextVar."""

from __future__ import annotations

from collections.abc import Callable, Container
from contextvars import ContextVar
from typing import TYPE_CHECKING, Final

from synmod.leaves import Json, reset

if TYPE_CHECKING:
    from .variable import Variable


class Layer:
    """Values by the identity of their Variable, over an outer layer or the live values.

    A context manager: inside the block, and in the tasks started there, the layer is innermost.

    Args:
        members: Identities of the Variables whose writes go to this layer; None for all.
        values: First values, by identity; the caller keeps those Variables alive.
        silent: Whether writes send no event.
        remember: Is called with each Variable before its live value or its metadata changes; None for nothing.

    Attributes:
        written: The Variables that were written, by identity.
    """

    __slots__ = ("members", "outer", "remember", "silent", "values", "written")

    def __init__(
        self,
        members: Container[int] | None,
        values: dict[int, Json],
        silent: bool = False,
        remember: Callable[[Variable], None] | None = None,
    ) -> None:
        self.outer: Layer | None = None
        self.members = members
        self.values = values
        self.written: dict[int, Variable] = {}
        self.silent = silent
        self.remember = remember

    def __enter__(self) -> None:
        self.outer = LAYER.get()
        LAYER.set(self)

    def __exit__(self, *_: object) -> None:
        """Remove the layer, wherever it is in this context: a block inside it may still be open."""
        layer = LAYER.get()
        if layer is self:
            LAYER.set(self.outer)
        while layer is not None:
            if layer.outer is self:
                layer.outer = self.outer
            layer = layer.outer


LAYER: Final[ContextVar[Layer | None]] = ContextVar("synmod_overlay", default=None)
"""The innermost layer of this context."""


def discard_writes() -> Layer:
    """Return a block in which `assign` validates but its writes are discarded at the end; no live value changes.

    Source: Keras' symbolic calls, which write nothing.
    """
    return Layer(None, {}, silent=True)


class keep_writes:  # noqa: N801  # read as a word: `with keep_writes(...):`
    """Set all layers aside: what this block reads and writes is live.

    Args:
        remember: Is called with each Variable before its value or its metadata changes.
    """

    __slots__ = ("_layer", "_token")

    def __init__(self, remember: Callable[[Variable], None]) -> None:
        self._layer = Layer((), {}, remember=remember)

    def __enter__(self) -> None:
        self._token = LAYER.set(self._layer)

    def __exit__(self, *_: object) -> None:
        reset(LAYER, self._token)
