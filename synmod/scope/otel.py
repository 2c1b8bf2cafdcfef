"""OpenTelemetry: module calls and model calls as spans, the latter by the conventions for generative AI.

The door to opentelemetry, which comes with the extra `otel` and is imported when a hook is made.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from typing import Any, Final, Protocol, cast

from synmod.errors import ConfigError

from .events import CallBegin, CallEnd, Hook, LMBegin, LMEnd
from .frame import FRAME
from .trace_views import error_text, plain
from .usage import Usage

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
"""Where the conventions have another name for a provider than our model strings."""

_PARAMS: Final = {
    "frequency_penalty": "frequency_penalty",
    "max_completion_tokens": "max_tokens",
    "max_tokens": "max_tokens",
    "presence_penalty": "presence_penalty",
    "seed": "seed",
    "stop": "stop_sequences",
    "temperature": "temperature",
    "top_k": "top_k",
    "top_p": "top_p",
}

Attributes = dict[str, Any]


class Span(Protocol):
    """What is used of a span."""

    def set_attributes(self, attributes: Mapping[str, Any]) -> None: ...

    def set_status(self, status: Any, description: str | None = None) -> None: ...

    def end(self) -> None: ...


class OpenTelemetry(Hook):
    """Makes a span of each module call and each model call, nested as the calls are.

    An entry call is an `invoke_workflow` span below whatever span is current in the application; other module calls
    are internal spans with `synmod.path`; a model call is a `chat` span with provider, model, parameters, tokens,
    finish reason and `synmod.cost_usd`. A failure sets the status and `error.type`.

    Args:
        tracer_provider: Where spans go; None is the provider of the application.
        content: Whether prompts and replies are written too, as `gen_ai.input.messages`, `gen_ai.output.messages` and
            `gen_ai.system_instructions`. They hold what users wrote, so the conventions leave them out by default.

    Raises:
        ConfigError: opentelemetry is not installed: `pip install 'synmod[otel]'`.

    Example:
        >>> import synmod as sm
        >>> with sm.hooks(sm.hooks_lib.Logger()):  # likewise sm.hooks_lib.OpenTelemetry()
        ...     out = sm.run(sm.Identity(), None)

    Source: OpenTelemetry's semantic conventions for generative AI.
    """

    def __init__(self, tracer_provider: Any = None, content: bool = False) -> None:
        self._api = _api()
        self._tracer: Any = self._api.get_tracer("synmod", tracer_provider=tracer_provider)
        self._content = content
        self._lock = threading.RLock()  # re-entrant: the collector may close a coroutine, whose call ends, in here
        self._calls: dict[str, Span] = {}
        self._lm_calls: dict[int, tuple[Any, Span]] = {}  # by the id of the request, which is held

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
            self._calls[event.call_id or ""] = span

    def on_call_end(self, event: CallEnd) -> None:
        """Close the span of a module call."""
        with self._lock:
            span = self._calls.pop(event.call_id or "", None)
        if span is not None:
            self._close(span, {} if event.usage is None else _usage_attributes(event.usage), event.exception)

    def on_lm_begin(self, event: LMBegin) -> None:
        """Open the span of a model call, below the module call that makes it."""
        attributes = _request_attributes(event, content=self._content)
        name = f"chat {attributes['gen_ai.request.model']}"
        span = self._open(name, self._api.SpanKind.CLIENT, event.call_id, attributes)
        with self._lock:
            self._lm_calls[id(event.request)] = (event.request, span)

    def on_lm_end(self, event: LMEnd) -> None:
        """Close the span of a model call."""
        with self._lock:
            _, span = self._lm_calls.pop(id(event.request), (None, None))
        if span is not None:
            self._close(span, _reply_attributes(event, content=self._content), event.exception)

    def _open(self, name: str, kind: Any, parent_id: str | None, attributes: Mapping[str, Any]) -> Span:
        """Start a span below that of the nearest call that has one, else below the current span of the application."""
        with self._lock:
            above, frame = self._calls.get(parent_id or ""), FRAME.get()
            while above is None and frame is not None:  # the hook of one module is not notified of all calls
                above, frame = self._calls.get(frame.id), frame.parent
        context = None if above is None else self._api.set_span_in_context(above)
        span: Span = self._tracer.start_span(name, context=context, kind=kind, attributes=attributes)
        return span

    def _close(self, span: Span, attributes: Mapping[str, Any], exception: BaseException | None) -> None:
        """End a span, with what became known; no traceback is sent, which may hold private values."""
        span.set_attributes(attributes)
        if exception is not None:
            span.set_attributes({"error.type": type(exception).__qualname__})
            span.set_status(self._api.Status(self._api.StatusCode.ERROR, error_text(exception)))
        span.end()


def _api() -> Any:
    """Import the interface; untyped, since an extra may be missing where types are checked."""
    try:
        from opentelemetry import trace as api  # pyright: ignore[reportMissingImports, reportUnknownVariableType]
    except ImportError:
        raise ConfigError("OpenTelemetry needs the package opentelemetry-api: pip install 'synmod[otel]'.") from None
    return api  # pyright: ignore[reportUnknownVariableType]  # likewise


def _request_attributes(event: LMBegin, *, content: bool) -> Attributes:
    """Return what is known when a model call begins."""
    provider, _, name = event.model.partition("/")
    params: Mapping[str, Any] = getattr(event.request, "params", None) or {}
    attributes: Attributes = {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": _PROVIDERS.get(provider, provider),
        "gen_ai.request.model": name or provider,
        "synmod.path": event.path,
        "synmod.phase": event.phase,
    }
    for param, attribute in _PARAMS.items():
        value = params.get(param)
        if param == "stop" and value:
            attributes[f"gen_ai.request.{attribute}"] = [value] if isinstance(value, str) else list(value)
        elif isinstance(value, (int, float, str)):
            attributes[f"gen_ai.request.{attribute}"] = value
    if content:
        turns: Any = plain(getattr(event.request, "messages", None)) or []
        system = [part for turn in turns if turn.get("role") == "system" for part in _parts(turn)]
        others = [{"role": turn.get("role"), "parts": _parts(turn)} for turn in turns if turn.get("role") != "system"]
        attributes["gen_ai.input.messages"] = _json_text(others)
        if system:
            attributes["gen_ai.system_instructions"] = _json_text(system)
    return attributes


def _reply_attributes(event: LMEnd, *, content: bool) -> Attributes:
    """Return what is known when a model call has ended."""
    reply = event.reply
    attributes = _usage_attributes(event.usage) | {"synmod.attempts": event.attempts}
    if event.cached:
        attributes["synmod.cached"] = True
    if reply is None:
        return attributes
    finish, model, request_id = (getattr(reply, name, None) for name in ("finish_reason", "model", "request_id"))
    if finish:
        attributes["gen_ai.response.finish_reasons"] = [finish]
    if model:
        attributes["gen_ai.response.model"] = model.partition("/")[2] or model
    if request_id:
        attributes["gen_ai.response.id"] = request_id
    if content:
        parts: list[Attributes] = []
        if getattr(reply, "reasoning", None):
            parts.append({"type": "reasoning", "content": reply.reasoning})
        parts.append({"type": "text", "content": getattr(reply, "text", "")})
        message = {"role": "assistant", "parts": parts, "finish_reason": finish or "stop"}
        attributes["gen_ai.output.messages"] = _json_text([message])
    return attributes


def _usage_attributes(usage: Usage) -> Attributes:
    """Return tokens and cost; the cost has a name of ours, since the conventions have none."""
    attributes: Attributes = {
        "gen_ai.usage.input_tokens": usage.prompt_tokens,
        "gen_ai.usage.output_tokens": usage.completion_tokens,
    }
    if usage.cached_tokens:
        attributes["gen_ai.usage.cache_read.input_tokens"] = usage.cached_tokens
    if usage.reasoning_tokens:
        attributes["gen_ai.usage.reasoning.output_tokens"] = usage.reasoning_tokens
    if usage.cost_usd is not None:
        attributes["synmod.cost_usd"] = usage.cost_usd
    return attributes


def _parts(turn: Mapping[str, Any]) -> list[Attributes]:
    """Return the content of a turn; what is not text is written as data."""
    content: Any = turn.get("content")
    pieces = cast("list[Any]", content) if isinstance(content, list) else [content]
    return [
        {"type": "text", "content": piece} if isinstance(piece, str) else {"type": "data", "content": piece}
        for piece in pieces
        if piece is not None
    ]


def _json_text(messages: list[Any]) -> str:
    """Return messages as JSON text, which is what attributes can hold."""
    return json.dumps(messages, ensure_ascii=False)
