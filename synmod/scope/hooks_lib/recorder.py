"""Recorder: every event as one row of JSON, in a list or in a file of JSON lines."""

from __future__ import annotations

import json
import os
import threading
import time
from dataclasses import fields
from pathlib import Path
from typing import Any, Final

from synmod.errors import ArgumentError
from synmod.scope.events import BuildBegin, BuildEnd, CallBegin, CallEnd, Event, LMBegin, LMEnd, VariableAssign
from synmod.scope.hook import Hook
from synmod.scope.plain_json import error_text, plain
from synmod.scope.scrubbing import LearnedSecrets

_MEASURES: Final = frozenset(
    {
        *Event.__slots__,
        "exception",
        "elapsed_s",
        "usage",
        "rewards",
        "model",
        "attempts",
        "cached",
        "variable",
        "version",
    }
)
"""The fields that a record without values shows."""


class Recorder(Hook):
    """Writes a row for each event: `{"event", "time", "call_id", "parent_call_id", "path", "name", "phase", ...}`.

    `event` is the name of the hook's method without `on_`, `time` in seconds since the epoch; the rest are the fields
    of the record, an exception as the text `error`. Keys of the models that are called go out as `***`.

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
        _check(target)
        self._rows: list[Any] | None = target if isinstance(target, list) else None
        self._path = None if isinstance(target, list) else Path(target)
        self._values = values
        # May be taken again: clean-up of garbage closes coroutines anywhere, and their calls end then and there.
        self._lock = threading.RLock()
        self._is_begun = False
        self._secrets = LearnedSecrets()

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
        self._secrets.learn(event.secrets)
        self._write("lm_begin", event)

    def on_lm_end(self, event: LMEnd) -> None:
        """Write that a model call ended."""
        self._secrets.learn(event.secrets)
        self._write("lm_end", event)

    def on_lm_chunk(self, event: Any) -> None:
        """Write that a piece of a reply arrived."""
        self._write("lm_chunk", event)

    def on_variable_assign(self, event: VariableAssign) -> None:
        """Write that a Variable got a new value."""
        self._write("variable_assign", event)

    def on_skip_dropped(self, event: Any) -> None:
        """Write that a stashed value was never popped."""
        self._write("skip_dropped", event)

    def _write(self, what: str, event: Any) -> None:
        """Add one row."""
        row: dict[str, Any] = {"event": what, "time": time.time()}
        for field in fields(event):
            name, value = field.name, getattr(event, field.name)
            if name == "secrets":
                continue
            if name == "exception":
                row["error"] = error_text(value)
            elif self._values or name in _MEASURES:
                row[name] = plain(value)
        row = self._secrets.removed(row)
        if self._path is None:
            if self._rows is not None:
                self._rows.append(row)
            return
        line = json.dumps(row, ensure_ascii=False) + "\n"
        with self._lock:
            if not self._is_begun:
                self._is_begun = _begin(self._path)
            with self._path.open("ab", buffering=0) as file:  # one write a row, and nothing is left open
                file.write(line.encode("utf-8", "backslashreplace"))  # which is how JSON writes half a character


def _begin(path: Path) -> bool:
    """Make the folder, and end a line that somebody who was killed has left unended."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.is_file() and path.stat().st_size:  # else it is new, or a pipe
        with path.open("ab+", buffering=0) as file:
            file.seek(-1, os.SEEK_END)
            if file.read(1) != b"\n":
                file.write(b"\n")
    return True


def _check(target: object) -> None:
    """Refuse what cannot be written to."""
    if not isinstance(target, (list, str, os.PathLike)):
        raise ArgumentError(f"Recorder got {target!r:.100}: give it a list, or the path of a file of JSON lines.")
