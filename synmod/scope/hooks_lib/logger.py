"""Logger: a line of the log for each call, build and model call that ended."""

from __future__ import annotations

import logging
from typing import Any

from synmod.errors import ArgumentError
from synmod.scope.events import BuildEnd, CallEnd, LMEnd
from synmod.scope.hook import Hook
from synmod.scope.plain_json import error_text, plain
from synmod.scope.scrubbing import LearnedSecrets
from synmod.scope.usage_record import Usage


class Logger(Hook):
    """Logs a line for each end: what ended, its path, the elapsed time, and tokens or the error; never a model's key.

    Args:
        logger: Name of the logger, or the logger itself.
        level: Level of the lines.
        values: Whether the outputs are in the line too.

    Raises:
        ArgumentError: `logger` is neither a name nor a logger, or `level` no number.

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
        _check(logger, level)
        self._logger = logging.getLogger(logger) if isinstance(logger, str) else logger
        self._level = level
        self._values = values
        self._secrets = LearnedSecrets()

    def on_call_end(self, event: CallEnd) -> None:
        """Log a call; that of an entry call tells the tokens of the whole run."""
        self._line("call", event, event.usage, event.outputs)

    def on_build_end(self, event: BuildEnd) -> None:
        """Log a build."""
        self._line("build", event, None, None)

    def on_lm_end(self, event: LMEnd) -> None:
        """Log a model call."""
        self._secrets.learn(event.secrets)
        self._line(f"model {event.model}", event, event.usage, event.reply)

    def _line(self, what: str, event: CallEnd | BuildEnd | LMEnd, usage: Usage | None, outputs: Any) -> None:
        """Write one line, if anybody reads it."""
        if not self._logger.isEnabledFor(self._level):
            return
        parts = [f"{what} {event.path or event.name or '(no call)'}", f"{event.elapsed_s * 1000:.1f} ms"]
        if usage is not None and usage.calls:
            parts.append(f"{usage.prompt_tokens + usage.completion_tokens} tokens")
        failed = error_text(event.exception)
        if failed is not None:
            parts.append(self._secrets.removed(" ".join(failed.split())))  # one line, whatever it says
        elif self._values and outputs is not None:
            parts.append(str(self._secrets.removed(plain(outputs))))
        self._logger.log(self._level, "%s", "  ".join(parts))


def _check(logger: object, level: object) -> None:
    """Refuse what cannot be logged to."""
    if not isinstance(logger, (str, logging.Logger)):
        raise ArgumentError(f"Logger got logger={logger!r:.100}: give the name of a logger, or one.")
    if not isinstance(level, int) or isinstance(level, bool):
        raise ArgumentError(f"Logger got level={level!r:.100}: write a number such as logging.INFO.")
