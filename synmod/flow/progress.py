"""The progress of long work: a protocol of three methods, and a bar on a terminal."""

from __future__ import annotations

import logging
import sys
from typing import Any, Final, Protocol

from synmod.errors import ArgumentError

_LOG: Final = logging.getLogger("synmod.progress")


class Progress(Protocol):
    """Follows the progress of long work; passed as `progress=`.

    Example:
        >>> import synmod as sm
        >>> class Counted:
        ...     done = 0
        ...
        ...     def begin(self, label: str, total: int | None) -> None: ...
        ...
        ...     def advance(self, n: int, **numbers: float) -> None:
        ...         self.done += n
        ...
        ...     def end(self, outcome: str) -> None: ...
        >>> watched: sm.Progress = Counted()
        >>> report = sm.run(sm.evaluate(sm.Identity(), [sm.ChatMessage(role="user", content="Hi")], progress=watched))
        >>> watched.done
        1

    Source: tqdm; differs: a protocol of three methods, so that any object can implement it.
    """

    def begin(self, label: str, total: int | None) -> None:
        """The work starts; `total` is the number of items, None if unknown."""

    def advance(self, n: int, **numbers: float) -> None:
        """`n` more items are finished; `numbers`: `failed`, `in_flight`, and of an evaluation `score`, `cost_usd`."""

    def end(self, outcome: str) -> None:
        """The work is over; `outcome` is `done`, `failed` or `stopped`."""


class SafeProgress:
    """A wrapper that drops a progress object that raises, with a line in the log."""

    __slots__ = ("_progress",)

    def __init__(self, progress: Progress | None) -> None:
        self._progress = progress

    @property
    def is_seen(self) -> bool:
        """Whether there is a progress object."""
        return self._progress is not None

    def begin(self, label: str, total: int | None) -> None:
        """Pass on that the work starts."""
        self._call("begin", label, total)

    def advance(self, n: int, **numbers: float) -> None:
        """Pass on that `n` more items are finished."""
        self._call("advance", n, **numbers)

    def end(self, outcome: str) -> None:
        """Pass on that the work is over."""
        self._call("end", outcome)

    def _call(self, method: str, *args: Any, **numbers: float) -> None:
        if self._progress is None:
            return
        try:
            getattr(self._progress, method)(*args, **numbers)
        except Exception as error:  # noqa: BLE001  # a progress object never ends the work
            _LOG.error("progress %s.%s failed: dropped", type(self._progress).__qualname__, method, exc_info=error)
            self._progress = None


def open_progress(progress: Progress | bool | None) -> SafeProgress:
    """Return `progress` in a wrapper: nothing for False, and for None a bar if a person is watching.

    Args:
        progress: As `sm.map_concurrently` and `sm.evaluate` take it.

    Raises:
        ArgumentError: It is True.
    """
    if progress is None:
        is_watched = "ipykernel" in sys.modules or (sys.stderr is not None and sys.stderr.isatty())
        return SafeProgress(Bar() if is_watched else None)
    if progress is True:
        raise ArgumentError("progress is True; leave it out for a bar on a terminal, or pass an object.")
    return SafeProgress(None if progress is False else progress)


class Bar:
    """A bar of tqdm on standard error: redrawn at most ten times a second; nested bars appear below each other."""

    def __init__(self) -> None:
        self._bar: Any = None

    def begin(self, label: str, total: int | None) -> None:
        """Draw the bar."""
        from shutil import get_terminal_size  # imports bz2 and lzma

        from tqdm import tqdm

        columns = get_terminal_size().columns
        self._bar = tqdm(total=total, desc=label, file=sys.stderr, mininterval=0.1, ncols=columns)

    def advance(self, n: int, **numbers: float) -> None:
        """Advance the bar, with the numbers beside it; a narrow terminal cuts off the last ones."""
        self._bar.set_postfix({name: f"{number:.4g}" for name, number in numbers.items()}, refresh=False)
        self._bar.update(n)

    def end(self, outcome: str) -> None:  # noqa: ARG002  # the bar shows how far it came
        """Close the bar; it stays on the screen."""
        self._bar.close()
