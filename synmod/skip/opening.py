"""Where a call finds its layer: made when it first takes part, on that of its caller or on a skip frame."""

from __future__ import annotations

from typing import Any

from synmod.scope import CallFrame, nearest_live
from synmod.skip.given import GIVEN, given_store
from synmod.skip.layers import Layer, Run
from synmod.skip.skip_frame import SkipFrame
from synmod.skip.slots import LOCK


def layer_of(frame: CallFrame) -> Layer:
    """The layer of a running call; a call that has none yet gets one, with all calls above it."""
    layer: Any = frame.layer
    if layer is not None:
        return layer
    above = frame.parent
    if above is not None and above.live and above.layer is not None and GIVEN.get() is None:
        below: Any = above.layer
        layer = frame.layer = Layer(frame, below, below.base, below.run)
        return layer
    with LOCK:
        missing: list[CallFrame] = []
        one: CallFrame | None = frame
        while one is not None and one.layer is None:
            missing.append(one)
            one = None if given_store(one) is not None else nearest_live(one.parent)
        for each in reversed(missing):
            each.layer = _new_layer(each)
    made: Any = frame.layer
    return made  # the frame knows no more than that it is a layer


def _new_layer(frame: CallFrame) -> Layer:
    """A layer on that of the calling module, which is there already, or on the skip frame."""
    above = nearest_live(frame.parent)
    given = given_store(frame)
    if given is not None:
        below = given if isinstance(given, Layer) else None
        return Layer(frame, below, given.base, Run() if above is None else layer_of(above).run)
    if above is None:
        return Layer(frame, None, SkipFrame(), Run())
    below = layer_of(above)
    return Layer(frame, below, below.base, below.run)
