"""Entering a frame for a module, for everything but the hot call (which does the same, written flat)."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from synmod.module.paths import paths_below
from synmod.scope.ambient import ambient, reset
from synmod.scope.frame import FRAME, CallFrame, RootFrame, nearest_live
from synmod.scope.phase import phase_in

if TYPE_CHECKING:
    from synmod.module.module import Module


@contextmanager
def entered(module: Module, training: bool | None, *, symbolic: bool) -> Generator[CallFrame]:
    """Make the frame of a call of `module` the current one for the block."""
    parent = nearest_live(FRAME.get())
    around = ambient()
    phase = phase_in(around, parent)
    record = module._record
    if training is None:
        training = vars(module).get("training") if parent is None or parent._training is None else parent._training
    if parent is None:
        frame: CallFrame = RootFrame(record, training, phase, symbolic, paths_below(module))
    else:
        frame = CallFrame(parent, record, training, phase, symbolic or parent._symbolic)
    token = FRAME.set(frame)
    try:
        yield frame
    finally:
        frame._live = False
        reset(FRAME, token)
