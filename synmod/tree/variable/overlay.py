"""Layers over the values of Variables: what reads inside a block see, and where its writes go.

The one place that sets the ContextVar. A layer is shared by the tasks that were started below its block; a read goes
from the innermost layer outwards and ends at the live value.
"""

from __future__ import annotations

from contextvars import ContextVar, Token
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Container

    from synmod.leaves.frozen import Json

MISSING: Final[Any] = object()
"""Stands for 'this layer says nothing of that Variable'."""


class Layer:
    """Values by the identity of their Variable, over an outer layer or the live values.

    Args:
        members: Identities of the Variables whose writes belong here; None for all.
        values: What reads see at first, by identity; whoever makes the layer keeps those Variables alive.
        silent: Whether writes are nobody's business: no event is sent.

    Attributes:
        left_early: Whether its block ended before a block inside it, whose end is then to pass it over.
    """

    __slots__ = ("left_early", "members", "outer", "silent", "values", "written")

    def __init__(self, members: Container[int] | None, values: dict[int, Json], silent: bool = False) -> None:
        self.outer: Layer | None = None
        self.members = members
        self.values = values
        self.written: dict[int, Any] = {}
        self.silent = silent
        self.left_early = False

    def takes(self, variable: object) -> bool:
        """Tell whether a write of this Variable belongs here."""
        return self.members is None or id(variable) in self.members

    def is_around(self, layer: Layer | None) -> bool:
        """Tell whether it is outside of another layer."""
        while layer is not None and layer is not self:
            layer = layer.outer
        return layer is not None

    def write(self, variable: object, value: Json) -> None:
        """Take a validated value."""
        self.values[id(variable)] = value
        self.written[id(variable)] = variable


LAYER: ContextVar[Layer | None] = ContextVar("synmod_overlay", default=None)
"""The innermost layer of this context."""


def layer_for(variable: object) -> Layer | None:
    """Give the layer that takes a write of this Variable, None where it goes to the live value."""
    layer = LAYER.get()
    while layer is not None and not layer.takes(variable):
        layer = layer.outer
    return layer


class layered:  # noqa: N801  # read as a word: `with layered(layer):`
    """Put a layer on top for the block and the tasks started in it.

    A class, because what `contextlib` makes of a generator writes to exceptions that pass, which frozen ones refuse.
    """

    __slots__ = ("_layer", "_token")

    def __init__(self, layer: Layer) -> None:
        self._layer = layer
        self._token: Token[Layer | None] | None = None

    def __enter__(self) -> None:
        self._layer.outer = LAYER.get()
        self._token = LAYER.set(self._layer)

    def __exit__(self, *_: object) -> None:
        if self._token is None:
            return
        if LAYER.get() is not self._layer:  # left in another context, or before a block inside it
            self._layer.left_early = self._layer.is_around(LAYER.get())
            return
        _restore(self._token)
        below = around = LAYER.get()
        while around is not None and around.left_early:
            around = around.outer
        if around is not below:
            LAYER.set(around)


def _restore(token: Token[Layer | None]) -> None:
    """Set back what was there before; in another context than that of the token nothing is."""
    try:
        LAYER.reset(token)
    except ValueError:
        return


def discarding_writes() -> layered:
    """Let `assign` validate, and throw away what it wrote when the block ends; no live value changes.

    Source: Keras' symbolic calls, which write nothing.
    """
    return layered(Layer(None, {}, silent=True))


class keeping_writes:  # noqa: N801  # read as a word: `with keeping_writes():`
    """Write past the `discarding_writes` blocks around this one: what the block assigns stays.

    A class for the reason that `layered` is one.
    """

    __slots__ = ("_token",)

    def __enter__(self) -> None:
        layer = LAYER.get()
        while layer is not None and layer.silent:
            layer = layer.outer
        self._token = LAYER.set(layer)

    def __exit__(self, *_: object) -> None:
        _restore(self._token)
