"""Progress: who wants to see how far something is, and what is shown where nobody says."""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Callable
from typing import Any, Final, Protocol, TextIO

from synmod.errors import ArgumentError

_LOG: Final = logging.getLogger("synmod.progress")
_BAR_S: Final = 0.1
_LINE_S: Final = 1.0


class Progress(Protocol):
    """Who wants to see how far something is: given as `progress=` to whatever takes it.

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
        """`n` more items are finished; `numbers` tell how it goes: `failed`, `in_flight`, also `score`, `cost_usd`."""

    def end(self, outcome: str) -> None:
        """It is over: `done`, `failed` or `stopped`."""


class Shown:
    """A progress object that breaks nothing: one that raises is told no more, with a line in the log."""

    __slots__ = ("_progress",)

    def __init__(self, progress: Progress | None) -> None:
        self._progress = progress

    def begin(self, label: str, total: int | None) -> None:
        """Tell that it starts."""
        self._tell("begin", label, total)

    def advance(self, n: int, **numbers: float) -> None:
        """Tell that `n` more items are finished."""
        self._tell("advance", n, **numbers)

    def end(self, outcome: str) -> None:
        """Tell that it is over."""
        self._tell("end", outcome)

    def _tell(self, what: str, *words: Any, **numbers: float) -> None:
        if self._progress is None:
            return
        try:
            getattr(self._progress, what)(*words, **numbers)
        except Exception as error:  # noqa: BLE001  # who watches the work never ends it
            _LOG.error("progress %s.%s failed: dropped", type(self._progress).__qualname__, what, exc_info=error)
            self._progress = None


def shown(progress: Progress | bool | None) -> Shown:
    """Give what is told: the object given, nothing for False, and for None a bar where a person looks.

    Args:
        progress: As `sm.map_concurrently` and `sm.evaluate` take it.

    Raises:
        ArgumentError: It is True.
    """
    if progress is None:
        return Shown(_on_terminal(sys.stderr) if _is_watched(sys.stderr) else None)
    if progress is True:
        raise ArgumentError("progress is True; leave it out for a bar on a terminal, or give an object that is told.")
    return Shown(None if progress is False else progress)


def _is_watched(stream: TextIO | None) -> bool:
    """Whether a person reads standard error: on a terminal, or in a notebook."""
    return "ipykernel" in sys.modules or (stream is not None and stream.isatty())


def _on_terminal(stream: TextIO) -> Progress:
    """A bar of tqdm where that is installed, else lines."""
    try:
        from tqdm import tqdm
    except ImportError:
        return Lines(stream)
    return Bar(tqdm, stream)


class Bar:
    """A bar of tqdm: redrawn ten times a second at most; nested ones stand below each other."""

    def __init__(self, tqdm: Callable[..., Any], stream: TextIO) -> None:
        self._tqdm = tqdm
        self._stream = stream
        self._bar: Any = None

    def begin(self, label: str, total: int | None) -> None:
        """Draw the bar."""
        self._bar = self._tqdm(total=total, desc=label, file=self._stream, mininterval=_BAR_S)

    def advance(self, n: int, **numbers: float) -> None:
        """Move it on."""
        self._bar.set_postfix({name: f"{value:.4g}" for name, value in numbers.items()}, refresh=False)
        self._bar.update(n)

    def end(self, outcome: str) -> None:  # noqa: ARG002  # the bar stays as it is
        """Leave it as it is."""
        self._bar.close()


class Lines:
    """A line a second at most, and one at the end."""

    def __init__(self, stream: TextIO, now: Callable[[], float] = time.monotonic) -> None:
        self._stream = stream
        self._now = now
        self._label = ""
        self._total: int | None = None
        self._done = 0
        self._numbers: dict[str, float] = {}
        self._written = 0.0

    def begin(self, label: str, total: int | None) -> None:
        """Begin to count."""
        self._label, self._total = label, total
        self._written = self._now()

    def advance(self, n: int, **numbers: float) -> None:
        """Count on; write where the last line is a second old."""
        self._done += n
        self._numbers = numbers
        if self._now() - self._written >= _LINE_S:
            self._write("")

    def end(self, outcome: str) -> None:
        """Write how it ended."""
        self._write(f", {outcome}")

    def _write(self, outcome: str) -> None:
        self._written = self._now()
        of = "" if self._total is None else f" of {self._total}"
        numbers = "".join(f", {name} {value:.4g}" for name, value in self._numbers.items())
        self._stream.write(f"{self._label}: {self._done}{of}{numbers}{outcome}\n")
        self._stream.flush()
