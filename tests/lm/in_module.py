"""A frame as a module call makes it, for tests of rooms that know no module."""

from contextlib import contextmanager

from synmod.scope import FRAME, CallFrame, RootFrame


class Owner:
    """What a frame asks of a module."""

    def __init__(self, name="writer", hooks=()):
        self.name = name
        self.hooks = tuple(hooks)
        self.description = None


@contextmanager
def inside(path="", name="writer", phase="inference", hooks=()):
    """Let the code of a block run inside the call of a module that stands at `path` below the entry module."""
    owner = Owner(name, hooks)
    entry = Owner("entry") if path else owner
    frame = root = RootFrame(entry, False, phase, False, {id(owner): path})
    if path:
        frame = CallFrame(root, owner, False, phase, False)
    token = FRAME.set(frame)
    try:
        yield frame
    finally:
        FRAME.reset(token)
        frame.live = root.live = False
