"""Entering a frame for a module, for everything but the hot call (which does the same, written flat)."""

from __future__ import annotations

from collections.abc import Mapping
from contextvars import Token
from types import TracebackType
from typing import TYPE_CHECKING, Any

from synmod.module.paths import paths_below
from synmod.scope import FRAME, CallFrame, RootFrame, ambient, nearest_live, phase_in, reset

if TYPE_CHECKING:
    from synmod.module.module import Module


class SymbolicFrame:
    """The block in which a module runs on symbols: its frame is the current one.

    A class, because what `contextlib` makes of a generator writes to exceptions that pass, which frozen ones refuse.
    """

    __slots__ = ("_frame", "_hands_on", "_token", "left")

    def __init__(self, module: Module, training: bool | None = None, *, hands_on: bool = True) -> None:
        self._hands_on = hands_on
        """Whether what was stashed inside goes on to the calling module."""
        self.left: Mapping[Any, Any] | None = None
        """What the call has left beside its outputs, once it has ended."""
        parent = nearest_live(FRAME.get())
        phase = phase_in(ambient(), parent)
        record = module._record
        if training is None and parent is not None:
            training = parent.decided_training
        if training is None:
            training = vars(module).get("training", record.declaration.call.training_on_class)
        if parent is None:
            self._frame: CallFrame = RootFrame(record, training, phase, True, paths_below(module))
        else:
            self._frame = CallFrame(parent, record, training, phase, True)
        self._token: Token[CallFrame | None] | None = None

    def __enter__(self) -> CallFrame:
        self._token = FRAME.set(self._frame)
        return self._frame

    def __exit__(self, _: type[BaseException] | None, error: BaseException | None, __: TracebackType | None) -> None:
        layer = self._frame.layer
        try:
            if layer is not None and error is None and self._hands_on:
                self.left = layer.left()
                layer.commit()
            elif layer is not None:
                layer.drop()
        finally:
            self._frame.live = False
            self._frame.layer = None
            if self._token is not None:
                reset(FRAME, self._token)
