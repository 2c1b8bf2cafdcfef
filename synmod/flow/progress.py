"""Progress: who follows how far something is, and the bar on a terminal."""

from __future__ import annotations

import logging
import shutil
import sys
from typing import Any, Final, Protocol

from synmod.errors import ArgumentError

_LOG: Final = logging.getLogger("synmod.progress")
_ORDER: Final = ("score", "failed", "cost_usd", "in_flight")
"""The numbers beside the bar: a narrow terminal cuts off the last."""


class Progress(Protocol):
    """Follows how far something is: given as `progress=` to whatever takes it.

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

    Source: tqdm; differs: a protocol of three calls, so that anything may stand behind it.
    """

    def begin(self, label: str, total: int | None) -> None:
        """It starts; `total` is None where nobody knows."""

    def advance(self, n: int, **numbers: float) -> None:
        """`n` more items are finished; `numbers`: `failed`, `in_flight`, and of an evaluation `score`, `cost_usd`."""

    def end(self, outcome: str) -> None:
        """It is over: `done`, `failed` or `stopped`."""


class Shown:
    """A progress object that breaks nothing: one that raises is dropped, with a line in the log."""

    __slots__ = ("_progress",)

    def __init__(self, progress: Progress | None) -> None:
        self._progress = progress

    def begin(self, label: str, total: int | None) -> None:
        """Pass on that it starts."""
        self._call("begin", label, total)

    def advance(self, n: int, **numbers: float) -> None:
        """Pass on that `n` more items are finished."""
        self._call("advance", n, **numbers)

    def end(self, outcome: str) -> None:
        """Pass on that it is over."""
        self._call("end", outcome)

    def _call(self, method: str, *args: Any, **numbers: float) -> None:
        if self._progress is None:
            return
        try:
            getattr(self._progress, method)(*args, **numbers)
        except Exception as error:  # noqa: BLE001  # a progress object never ends the work
            _LOG.error("progress %s.%s failed: dropped", type(self._progress).__qualname__, method, exc_info=error)
            self._progress = None


def shown(progress: Progress | bool | None) -> Shown:
    """Return what follows: the object given, nothing for False, and for None a bar where a person looks.

    Args:
        progress: As `sm.map_concurrently` and `sm.evaluate` take it.

    Raises:
        ArgumentError: It is True.
    """
    if progress is None:
        is_watched = "ipykernel" in sys.modules or (sys.stderr is not None and sys.stderr.isatty())
        return Shown(Bar() if is_watched else None)
    if progress is True:
        raise ArgumentError("progress is True; leave it out for a bar on a terminal, or pass an object.")
    return Shown(None if progress is False else progress)


class Bar:
    """A bar of tqdm on standard error: redrawn ten times a second at most; nested ones stand below each other."""

    def __init__(self) -> None:
        self._bar: Any = None

    def begin(self, label: str, total: int | None) -> None:
        """Draw the bar."""
        from tqdm import tqdm

        columns = shutil.get_terminal_size().columns
        self._bar = tqdm(total=total, desc=label, file=sys.stderr, mininterval=0.1, ncols=columns)

    def advance(self, n: int, **numbers: float) -> None:
        """Move it on, the numbers beside it."""
        names = sorted(numbers, key=lambda name: _ORDER.index(name) if name in _ORDER else len(_ORDER))
        self._bar.set_postfix({name: f"{numbers[name]:.4g}" for name in names}, refresh=False)
        self._bar.update(n)

    def end(self, outcome: str) -> None:  # noqa: ARG002  # the bar stays as it is
        """Leave it as it is."""
        self._bar.close()
