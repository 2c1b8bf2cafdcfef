"""The skip frame of the running entry call."""

from __future__ import annotations

from synmod.skip.opening import layer_of
from synmod.skip.routes import routes_of
from synmod.skip.skip_frame import SkipFrame, here


def current_skip_frame() -> SkipFrame | None:
    """Give the skip frame of the running entry call, seen from the running call; in a hook, from the one it is told of.

    Returns:
        The frame, None outside module calls.

    Example:
        >>> current_skip_frame() is None
        True

    Source: torchgpipe's `current_skip_tracker`.
    """
    frame = here()
    if frame is None:
        return None
    found = layer_of(frame).base
    found.adopt(routes_of(frame.root).numbers)
    return found
