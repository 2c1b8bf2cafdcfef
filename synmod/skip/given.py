"""`use_skip_frame`: calls on a skip frame that somebody has in hand."""

from __future__ import annotations

from contextvars import ContextVar, Token
from typing import TYPE_CHECKING

from synmod.errors import ArgumentError
from synmod.scope import CallFrame, current_call, nearest_live, reset

if TYPE_CHECKING:
    from synmod.skip.skip_frame import SkipFrame
    from synmod.skip.slots import Store


class Given:
    """One open block: what its calls run on, and the call that opened it."""

    __slots__ = ("around", "at", "is_open", "store", "token")

    def __init__(self, store: Store, at: CallFrame | None, around: Given | None) -> None:
        self.store = store
        self.at = at
        self.around = around
        self.is_open = True
        self.token: Token[Given | None] | None = None


GIVEN: ContextVar[Given | None] = ContextVar("synmod_given_skip_frame", default=None)
"""The innermost block entered in this context; None, which is hot, where there never was one."""


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
        self._entries: list[Given] = []

    def __enter__(self) -> SkipFrame:
        self._entries.append(open_given(self._frame))
        return self._frame

    def __exit__(self, *_: object) -> None:
        current = GIVEN.get()
        index = next((i for i, given in enumerate(self._entries) if given is current), len(self._entries) - 1)
        close_given(self._entries.pop(index))


def open_given(store: Store) -> Given:
    """Let the calls that are begun here run on `store`."""
    given = Given(store, current_call(), _open(GIVEN.get()))
    given.token = GIVEN.set(given)
    return given


def close_given(given: Given) -> None:
    """End that."""
    given.is_open = False
    if given.token is not None:
        reset(GIVEN, given.token)


def given_store(frame: CallFrame) -> Store | None:
    """What a call runs on by itself, since its caller has opened a block; None for the layer of its caller."""
    given = _open(GIVEN.get())
    if given is None or frame.symbolic:
        return None
    above = nearest_live(frame.parent)
    while given is not None:
        if above is None or given.at is above:
            return given.store
        given = _open(given.around)
    return None


def open_store() -> Store | None:
    """What the innermost open block around this place gives."""
    given = _open(GIVEN.get())
    return None if given is None else given.store


def _open(given: Given | None) -> Given | None:
    """The innermost block that is still open; a task may outlive one."""
    while given is not None and not given.is_open:
        given = given.around
    return given
