"""Ready-made hooks, as `sm.hooks_lib`: log lines, rows of JSON, the tree of the calls, spans of OpenTelemetry.

Hooks like those that users write, with no access of their own. Each costs what its line, row or span costs.
"""

from __future__ import annotations

import json
import logging
import os
import threading
import time
from dataclasses import fields
from pathlib import Path
from typing import Any, Final

from synmod.errors import ArgumentError

from .events import BuildBegin, BuildEnd, CallBegin, CallEnd, Event, Hook, LMBegin, LMEnd, SkipDropped, VariableAssign
from .otel import OpenTelemetry
from .trace_views import error_text, plain
from .tracing import Tracer
from .usage import Usage

__all__ = ["Logger", "OpenTelemetry", "Recorder", "Tracer"]

_MEASURES: Final = {
    *Event.__slots__, "exception", "elapsed_s", "usage", "rewards", "model", "attempts", "cached", "variable",
    "version",
}  # fmt: skip
"""The fields that a row without values has."""


class Logger(Hook):
    """Logs a line per end: what ended, its path, the elapsed time, and tokens or the error.

    Args:
        logger: Name of the logger, or the logger itself.
        level: Level of the lines.
        values: Whether the outputs are in the line too.

    Raises:
        ArgumentError: `logger` is neither a name nor a logger, or `level` is not a number.

    Example:
        >>> import logging, sys
        >>> import synmod as sm
        >>> with sm.hooks(sm.hooks_lib.Logger(level=logging.DEBUG)):
        ...     out = sm.run(sm.Identity(), None)

    Source: web servers' access logs.
    """

    def __init__(
        self, logger: str | logging.Logger = "synmod.calls", level: int = logging.INFO, values: bool = False
    ) -> None:
        if not isinstance(logger, (str, logging.Logger)):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ArgumentError(f"Logger got logger={logger!r:.100}: give the name of a logger, or a logger.")
        if not isinstance(level, int) or isinstance(level, bool):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ArgumentError(f"Logger got level={level!r:.100}: write a number such as logging.INFO.")
        self._logger = logging.getLogger(logger) if isinstance(logger, str) else logger
        self._level = level
        self._values = values

    def on_call_end(self, event: CallEnd) -> None:
        """Log a call; the line of an entry call has the tokens of the whole run."""
        self._line("call", event, event.usage, event.outputs)

    def on_build_end(self, event: BuildEnd) -> None:
        """Log a build."""
        self._line("build", event, None, None)

    def on_lm_end(self, event: LMEnd) -> None:
        """Log a model call."""
        self._line(f"model {event.model}", event, event.usage, event.reply)

    def _line(self, what: str, event: CallEnd | BuildEnd | LMEnd, usage: Usage | None, outputs: Any) -> None:
        """Write one line, if the logger is enabled for it."""
        if not self._logger.isEnabledFor(self._level):
            return
        parts = [f"{what} {event.path or event.name or '(no call)'}", f"{event.elapsed_s * 1000:.1f} ms"]
        if usage is not None and usage.calls:
            parts.append(f"{usage.prompt_tokens + usage.completion_tokens} tokens")
        failed = error_text(event.exception)
        if failed is not None:
            parts.append(" ".join(failed.split()))  # one line, whatever the text is
        elif self._values and outputs is not None:
            parts.append(str(plain(outputs)))
        self._logger.log(self._level, "%s", "  ".join(parts))


class Recorder(Hook):
    """Writes a row per event: `{"event", "time", "call_id", "parent_call_id", "path", "name", "phase", ...}`.

    `event` is the name of the hook's method without `on_`, `time` in seconds since the epoch; the rest are the fields
    of the record, an exception as the text `error`.

    Args:
        target: A list that rows are appended to, or the path of a file of JSON lines: appended to, and flushed after
            each row; folders are made.
        values: Whether inputs, outputs, requests, replies and assigned values are written too.

    Raises:
        ArgumentError: The target is neither a list nor a path.

    Example:
        >>> import synmod as sm
        >>> class Query(sm.DataModel):
        ...     question: str
        >>> rows = []
        >>> with sm.hooks(sm.hooks_lib.Recorder(rows)):
        ...     out = sm.run(sm.Identity(), Query(question="Why?"))
        >>> [(row["event"], row["name"]) for row in rows]
        [('call_begin', 'identity'), ('call_end', 'identity')]

    Source: structured logs as JSON lines, Keras' CSVLogger.
    """

    def __init__(self, target: list[Any] | str | os.PathLike[str], values: bool = True) -> None:
        if not isinstance(target, (list, str, os.PathLike)):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ArgumentError(f"Recorder got {target!r:.100}: give it a list, or the path of a file of JSON lines.")
        self._target = target if isinstance(target, list) else Path(target)
        self._values = values
        self._lock = threading.RLock()  # re-entrant: the collector may close a coroutine, whose call ends, in here
        self._is_begun = False

    def on_call_begin(self, event: CallBegin) -> None:
        """Write that a call begins."""
        self._write("call_begin", event)

    def on_call_end(self, event: CallEnd) -> None:
        """Write that a call ended."""
        self._write("call_end", event)

    def on_build_begin(self, event: BuildBegin) -> None:
        """Write that a build begins."""
        self._write("build_begin", event)

    def on_build_end(self, event: BuildEnd) -> None:
        """Write that a build ended."""
        self._write("build_end", event)

    def on_lm_begin(self, event: LMBegin) -> None:
        """Write that a model call begins."""
        self._write("lm_begin", event)

    def on_lm_end(self, event: LMEnd) -> None:
        """Write that a model call ended."""
        self._write("lm_end", event)

    def on_lm_chunk(self, event: Any) -> None:
        """Write that a piece of a reply arrived."""
        self._write("lm_chunk", event)

    def on_variable_assign(self, event: VariableAssign) -> None:
        """Write that a Variable got a new value."""
        self._write("variable_assign", event)

    def on_skip_dropped(self, event: SkipDropped) -> None:
        """Write that a stashed value was never popped."""
        self._write("skip_dropped", event)

    def _write(self, what: str, event: Any) -> None:
        """Add one row."""
        row: dict[str, Any] = {"event": what, "time": time.time()}
        for name in (field.name for field in fields(event)):
            value = getattr(event, name)
            if name == "exception":
                row["error"] = error_text(value)
            elif self._values or name in _MEASURES:
                row[name] = plain(value)
        if isinstance(self._target, list):
            self._target.append(row)
            return
        line = json.dumps(row, ensure_ascii=False) + "\n"
        with self._lock:
            if not self._is_begun:
                self._is_begun = _begin(self._target)
            with self._target.open("ab", buffering=0) as file:  # one write per row, and nothing is left open
                file.write(line.encode("utf-8", "backslashreplace"))  # which is how JSON writes half a character


def _begin(path: Path) -> bool:
    """Make the folder, and end a line that a killed process has left unended."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.is_file() and path.stat().st_size:  # else it is new, or a pipe
        with path.open("ab+", buffering=0) as file:
            file.seek(-1, os.SEEK_END)
            if file.read(1) != b"\n":
                file.write(b"\n")
    return True
