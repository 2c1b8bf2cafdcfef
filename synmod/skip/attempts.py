"""Attempts on the lane: each has a layer of its own, and that of the attempt that is kept is committed."""

from __future__ import annotations

from typing import Self

from synmod.module import ATTEMPTS
from synmod.scope import current_call
from synmod.skip.given import Given, close_given, open_given
from synmod.skip.layers import Layer
from synmod.skip.opening import layer_of


class SkipAttempt:
    """A block whose calls see the lane as it was before it, and change it only if it is kept."""

    __slots__ = ("_given", "_layer")

    def __init__(self) -> None:
        self._layer: Layer | None = None
        self._given: Given | None = None

    def __enter__(self) -> Self:
        frame = current_call()
        if frame is not None and not frame.symbolic:
            below = layer_of(frame)
            self._layer = Layer(frame, below, below.base, below.run)
            self._given = open_given(self._layer)
        return self

    def __exit__(self, *_: object) -> None:
        if self._given is not None:
            close_given(self._given)

    def keep(self) -> None:
        """Commit what the calls of the block did."""
        if self._layer is not None:
            self._layer.commit()


ATTEMPTS["skips"] = SkipAttempt
