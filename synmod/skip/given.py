"""`use_skip_frame`: calls on a skip frame that somebody has in hand."""

from __future__ import annotations

from contextvars import ContextVar, Token
from typing import TYPE_CHECKING

from synmod.errors import ArgumentError
from synmod.scope.ambient import reset
from synmod.scope.frame import CallFrame, current_call, nearest_live

if TYPE_CHECKING:
    from synmod.skip.skip_frame import SkipFrame


class Given:
    """One open block: the frame that holds in it, and the call that opened it."""

    __slots__ = ("around", "at", "frame", "is_open")

    def __init__(self, frame: SkipFrame, at: CallFrame | None, around: Given | None) -> None:
        self.frame = frame
        self.at = at
        self.around = around
        self.is_open = True


_GIVEN: ContextVar[Given | None] = ContextVar("synmod_given_skip_frame", default=None)


class use_skip_frame:  # noqa: N801  # read as a word: `with use_skip_frame(frame):`
    """Run the calls of a block on a given skip frame: for tests, or to go on where another run has stopped.

    What nobody pops stays in it.

    Args:
        frame: The frame.

    Raises:
        ArgumentError: It is no SkipFrame.

    Example:
        >>> from synmod.skip import SkipFrame
        >>> with use_skip_frame(SkipFrame()) as frame:
        ...     len(frame)
        0

    Source: torchgpipe's `use_skip_tracker`; differs: a ContextVar, never a thread-local.
    """

    __slots__ = ("_entries", "_frame")

    def __init__(self, frame: SkipFrame) -> None:
        from synmod.skip.skip_frame import SkipFrame

        if not isinstance(frame, SkipFrame):  # pyright: ignore[reportUnnecessaryIsInstance]  # users may pass anything
            raise ArgumentError(f"use_skip_frame takes a SkipFrame, got {frame!r:.100}.")
        frame.is_given = True
        self._frame = frame
        self._entries: list[tuple[Given, Token[Given | None]]] = []

    def __enter__(self) -> SkipFrame:
        given = Given(self._frame, current_call(), _open(_GIVEN.get()))
        self._entries.append((given, _GIVEN.set(given)))
        return self._frame

    def __exit__(self, *_: object) -> None:
        current = _GIVEN.get()
        index = next((i for i, (given, _) in enumerate(self._entries) if given is current), len(self._entries) - 1)
        given, token = self._entries.pop(index)
        given.is_open = False
        reset(_GIVEN, token)


def given_frame(frame: CallFrame) -> SkipFrame | None:
    """The frame that a call runs on by itself, since its caller has opened a block; None for that of its caller."""
    given = _open(_GIVEN.get())
    if given is None or frame._symbolic:
        return None
    above = nearest_live(frame._parent)
    while given is not None:
        if above is None or given.at is above:
            return given.frame
        given = _open(given.around)
    return None


def _open(given: Given | None) -> Given | None:
    """The innermost block that is still open; a task may outlive one."""
    while given is not None and not given.is_open:
        given = given.around
    return given
