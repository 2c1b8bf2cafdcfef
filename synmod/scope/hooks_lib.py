"""Ready-made hooks, as `sm.hooks_lib`: log lines, rows of JSON, the tree of the calls, spans of OpenTelemetry.

They are written like the hooks of users; each costs what its line, row or span costs. The only importer of
opentelemetry, which comes with the extra `otel` and is imported when such a hook is made.
"""

import json
import logging
import os
import threading
import time
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import fields
from pathlib import Path
from typing import Any, Final, TypeAlias

from synmod.errors import ConfigError
from synmod.leaves import aio, check_int, check_type, is_array, make_file, path_text, scrub

from .hooks import BuildEnd, CallBegin, CallEnd, Event, Hook, LMBegin, LMEnd
from .judging import Judge
from .tracing import Tracer, error_text, nearest_open, plain, seconds_text
from .usage import Usage

__all__ = ["Judge", "Logger", "OpenTelemetry", "Recorder", "Tracer"]

# -- spans of OpenTelemetry --------------------------------------------------------------------------------------------

_PROVIDERS: Final = {
    "azure": "azure.ai.openai",
    "azure_ai": "azure.ai.inference",
    "bedrock": "aws.bedrock",
    "gemini": "gcp.gemini",
    "mistral": "mistral_ai",
    "vertex_ai": "gcp.vertex_ai",
    "watsonx": "ibm.watsonx.ai",
    "xai": "x_ai",
}
"""The providers whose name in the conventions differs from that in our model strings."""

_PARAMS: Final = ("frequency_penalty", "max_tokens", "presence_penalty", "seed", "temperature", "top_k", "top_p")
"""The sampling parameters that the conventions name as we do."""

Attributes: TypeAlias = dict[str, Any]
Span: TypeAlias = Any
"""A span of opentelemetry; untyped, since an extra may be missing where types are checked."""


class OpenTelemetry(Hook):
    """Makes a span for each module call and each model call, nested as the calls are.

    Each span is current while its call runs, so that the application's own spans, and those of instrumented clients,
    are below it. An entry call is an `invoke_workflow` span below the current span of the application; other module
    calls are internal spans with `synmod.path`; a model call is a `chat` span with provider, model, parameters, tokens,
    finish reason and `synmod.cost_usd`. A failure sets the status and `error.type`.

    Args:
        tracer_provider: Where spans go; None for the provider of the application.
        content: Whether prompts and replies are written too, as `gen_ai.input.messages`, `gen_ai.output.messages` and
            `gen_ai.system_instructions`. They contain user input, so the conventions leave them out by default.

    Raises:
        ConfigError: opentelemetry is not installed: `pip install 'synmod-lm[otel]'`.

    Example:
        >>> import synmod as sm
        >>> with sm.hooks(sm.hooks_lib.Logger()):  # likewise sm.hooks_lib.OpenTelemetry()
        ...     out = sm.run(sm.Identity(), None)

    Source: OpenTelemetry's semantic conventions for generative AI.
    """

    def __init__(self, tracer_provider: Any = None, content: bool = False) -> None:
        self._api, self._context = _api()
        self._tracer: Any = self._api.get_tracer("synmod", tracer_provider=tracer_provider)
        self._content = content
        self._lock = threading.RLock()  # re-entrant: the collector may close a coroutine in here, which ends a call
        self._calls: dict[str, tuple[Span, Any]] = {}  # each with what makes the span before it current again
        self._lm_calls: dict[int, tuple[Any, Span, Any]] = {}  # by the id of the request, which is kept alive

    def on_call_begin(self, event: CallBegin) -> None:
        """Open the span of a module call."""
        name, attributes = event.name, {"synmod.call_id": event.call_id or "", "synmod.phase": event.phase}
        if event.parent_call_id is None:
            attributes |= {"gen_ai.operation.name": "invoke_workflow", "gen_ai.workflow.name": event.name}
            name = f"invoke_workflow {event.name}"
        else:
            attributes["synmod.path"] = event.path
        span = self._open(name, self._api.SpanKind.INTERNAL, event.parent_call_id, attributes)
        with self._lock:
            self._calls[event.call_id or ""] = span, self._enter(span)

    def on_call_end(self, event: CallEnd) -> None:
        """Close the span of a module call."""
        with self._lock:
            span, token = self._calls.pop(event.call_id or "", (None, None))
        if span is not None:
            self._close(span, token, {} if event.usage is None else _usage_attributes(event.usage), event.exception)

    def on_lm_begin(self, event: LMBegin) -> None:
        """Open the span of a model call, below the module call that makes it."""
        attributes = _request_attributes(event, content=self._content)
        name = f"{attributes['gen_ai.operation.name']} {attributes['gen_ai.request.model']}"
        span = self._open(name, self._api.SpanKind.CLIENT, event.call_id, attributes)
        with self._lock:
            self._lm_calls[id(event.request)] = event.request, span, self._enter(span)

    def on_lm_end(self, event: LMEnd) -> None:
        """Close the span of a model call."""
        with self._lock:
            _, span, token = self._lm_calls.pop(id(event.request), (None, None, None))
        if span is not None:
            self._close(span, token, _reply_attributes(event, content=self._content), event.exception)

    def server_span(self, name: str, headers: Mapping[str, str]) -> AbstractContextManager[Span]:
        """Return a block with the span of a request, below the span that its `traceparent` header names."""
        from opentelemetry.propagate import extract

        return self._tracer.start_as_current_span(name, context=extract(headers), kind=self._api.SpanKind.SERVER)

    def _open(self, name: str, kind: Any, parent_id: str | None, attributes: Mapping[str, Any]) -> Span:
        """Start a span below that of the nearest call that has one, else below the current span of the application."""
        with self._lock:
            above = nearest_open(self._calls, parent_id or "")
        context = None if above is None else self._api.set_span_in_context(above[0])
        return self._tracer.start_span(name, context=context, kind=kind, attributes=attributes)

    def _enter(self, span: Span) -> Any:
        """Make a span current, in this task alone."""
        return self._context.attach(self._api.set_span_in_context(span))

    def _close(self, span: Span, token: Any, attributes: Mapping[str, Any], exception: BaseException | None) -> None:
        """End a span with its last attributes; no traceback is sent, since it may hold private values."""
        if self._api.get_current_span() is span:  # else the collector ends the call, in the context of another
            self._context.detach(token)
        span.set_attributes(attributes)
        if exception is not None:
            span.set_attributes({"error.type": type(exception).__qualname__})
            span.set_status(self._api.Status(self._api.StatusCode.ERROR, error_text(exception)))
        span.end()


def _api() -> tuple[Any, Any]:
    """Import the traces and contexts of opentelemetry; untyped, like its spans."""
    try:
        from opentelemetry import context, trace  # pyright: ignore[reportMissingImports, reportUnknownVariableType]
    except ImportError:
        raise ConfigError("OpenTelemetry needs the package opentelemetry-api: pip install 'synmod-lm[otel]'.") from None
    return trace, context  # pyright: ignore[reportUnknownVariableType]  # likewise


def _request_attributes(event: LMBegin, *, content: bool) -> Attributes:
    """Return the attributes that are known when a model call begins."""
    provider, _, name = event.model.partition("/")
    params: Mapping[str, Any] = getattr(event.request, "params", None) or {}
    attributes: Attributes = {
        "gen_ai.operation.name": "embeddings" if hasattr(event.request, "texts") else "chat",
        "gen_ai.provider.name": _PROVIDERS.get(provider, provider),
        "gen_ai.request.model": name or provider,
        "synmod.path": event.path,
        "synmod.phase": event.phase,
    }
    options = {**params, "max_tokens": params.get("max_completion_tokens", params.get("max_tokens"))}
    for param in _PARAMS:
        if isinstance(options.get(param), (int, float, str)):
            attributes[f"gen_ai.request.{param}"] = options[param]
    if stop := params.get("stop"):
        attributes["gen_ai.request.stop_sequences"] = [stop] if isinstance(stop, str) else list(stop)
    if content:
        turns: Any = plain(getattr(event.request, "messages", None)) or []
        system = [part for turn in turns if turn.get("role") == "system" for part in _parts(turn)]
        messages = [{"role": turn.get("role"), "parts": _parts(turn)} for turn in turns if turn.get("role") != "system"]
        attributes["gen_ai.input.messages"] = _json_text(messages)
        if system:
            attributes["gen_ai.system_instructions"] = _json_text(system)
    return attributes


def _reply_attributes(event: LMEnd, *, content: bool) -> Attributes:
    """Return the attributes that are known when a model call has ended."""
    reply = event.reply
    finish, model, request_id = (getattr(reply, name, None) for name in ("finish_reason", "model", "request_id"))
    attributes: Attributes = {
        **_usage_attributes(event.usage),
        "synmod.attempts": event.attempts,
        "synmod.cached": event.cached or None,
        "gen_ai.response.finish_reasons": [finish] if finish else None,
        "gen_ai.response.model": (model or "").partition("/")[2] or model or None,
        "gen_ai.response.id": request_id or None,
    }
    if content and reply is not None:
        texts = {"reasoning": getattr(reply, "reasoning", None), "text": getattr(reply, "text", "")}
        parts = [{"type": kind, "content": text} for kind, text in texts.items() if kind == "text" or text]
        message = {"role": "assistant", "parts": parts, "finish_reason": finish or "stop"}
        attributes["gen_ai.output.messages"] = _json_text([message])
    return _without_none(attributes)


def _usage_attributes(usage: Usage) -> Attributes:
    """Return tokens and cost; the name of the cost is our own, since the conventions have none."""
    return _without_none(
        {
            "gen_ai.usage.input_tokens": usage.prompt_tokens,
            "gen_ai.usage.output_tokens": usage.completion_tokens,
            "gen_ai.usage.cache_read.input_tokens": usage.cached_tokens or None,
            "gen_ai.usage.cache_creation.input_tokens": usage.cache_write_tokens or None,
            "gen_ai.usage.reasoning.output_tokens": usage.reasoning_tokens or None,
            "synmod.cost_usd": usage.cost_usd,
        }
    )


def _without_none(attributes: Attributes) -> Attributes:
    """Return the attributes that have a value."""
    return {name: value for name, value in attributes.items() if value is not None}


def _parts(turn: Mapping[str, Any]) -> list[Attributes]:
    """Return the parts of a turn; content other than text is written as data."""
    content: Any = turn.get("content")
    pieces = content if is_array(content) else [content]
    return [
        {"type": "text", "content": piece} if isinstance(piece, str) else {"type": "data", "content": piece}
        for piece in pieces
        if piece is not None
    ]


def _json_text(messages: list[Any]) -> str:
    """Return messages as JSON text, which is what attributes can hold."""
    return json.dumps(messages, ensure_ascii=False)


# -- hooks -------------------------------------------------------------------------------------------------------------

_OF_ENDS: Final = ("exception", "elapsed_s", "usage", "rewards")
_MEASURES: Final = {*Event.__slots__, *_OF_ENDS, "model", "attempts", "cached", "variable", "version"}
"""The fields that a row without values has."""


class Logger(Hook):
    """Logs a line when a call, build or model call ends: its path, the elapsed time, and tokens or the error.

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
        check_type("Logger: logger", logger, str | logging.Logger, "the name of a logger, or a logger")
        self._logger = logging.getLogger(logger) if isinstance(logger, str) else logger
        self._level = check_int("Logger: level", level, None)
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
        parts = [f"{what} {event.place or '(no call)'}", seconds_text(event.elapsed_s)]
        if usage is not None and usage.calls:
            parts.append(f"{usage.prompt_tokens + usage.completion_tokens} tokens")
        failed = error_text(event.exception)
        if failed is not None:
            parts.append(" ".join(failed.split()))  # one line, whatever the text is
        elif self._values and outputs is not None:
            parts.append(str(plain(outputs)))
        self._logger.log(self._level, "%s", "  ".join(parts))


_WRITING = aio.lock()
"""Shared by all Recorders, since several may write to one file; re-entrant, since the collector may end a call here."""


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
        expected = "a list, or the path of a file of JSON lines"
        check_type("Recorder: target", target, list | str | os.PathLike, expected)
        self._target = target if isinstance(target, list) else Path(path_text(target))
        self._values = values
        self._is_begun = False

    def write(self, event: Event) -> None:
        """Add the row of an event."""
        row: dict[str, Any] = {"event": event.method.removeprefix("on_"), "time": time.time()}
        for name in (field.name for field in fields(event)):
            value = getattr(event, name)
            if name == "exception":
                row["error"] = error_text(value)
            elif name in _MEASURES or (self._values and (name, event.method) != ("request", "on_lm_chunk")):
                row[name] = plain(value)  # a request in each piece would write a long prompt a thousand times
        if isinstance(self._target, list):
            self._target.append(row)
            return
        line = f"{scrub(json.dumps(row, ensure_ascii=False))}\n"
        with _WRITING:
            if not self._is_begun:
                self._is_begun = _begin(self._target)
            with self._target.open("ab", buffering=0) as file:  # one write per row, and nothing is left open
                file.write(line.encode("utf-8", "backslashreplace"))  # as JSON writes a lone surrogate

    on_call_begin = on_call_end = on_build_begin = on_build_end = write
    on_lm_begin = on_lm_chunk = on_lm_end = on_variable_assign = on_skip_dropped = write


def _begin(path: Path) -> bool:
    """Make the file, or end its last line if a killed process left it unfinished."""
    if not path.exists():
        make_file(path)
    elif path.is_file() and path.stat().st_size:  # else it is a pipe
        with path.open("ab+", buffering=0) as file:
            file.seek(-1, os.SEEK_END)
            if file.read(1) != b"\n":
                file.write(b"\n")
    return True
