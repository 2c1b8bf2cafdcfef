"""OpenTelemetry: module calls and model calls as spans, the latter by the conventions for generative AI.

The door to opentelemetry, which comes with the extra `otel` and is imported when a hook is made.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from synmod.errors import ConfigError
from synmod.scope.frame import TOLD
from synmod.scope.hook import Hook
from synmod.scope.hooks_lib.genai import answered, asked, used
from synmod.scope.plain_json import error_text
from synmod.scope.scrubbing import Secrets

if TYPE_CHECKING:
    from synmod.scope.events import CallBegin, CallEnd, LMBegin, LMEnd


class Span(Protocol):
    """What is asked of a span."""

    def set_attributes(self, attributes: Mapping[str, Any]) -> None: ...

    def set_status(self, status: Any, description: str | None = None) -> None: ...

    def end(self) -> None: ...


Hidden = Callable[[], Iterable[str]]
"""Gives the texts that a model hides."""


class _OpenCall(NamedTuple):
    """A module call under way, and what the models hide that were called in it or beside it in its run."""

    span: Span
    secrets: set[Hidden]


class OpenTelemetry(Hook):
    """Makes a span of each module call and each model call, nested as the calls are.

    An entry call is an `invoke_workflow` span below whatever span is current in the application; other module calls
    are internal spans with `synmod.path`; a model call is a `chat` span with provider, model, parameters, tokens,
    finish reason and `synmod.cost_usd`. A failure sets the status and `error.type`.

    Args:
        tracer_provider: Where spans go; None is the provider of the application.
        content: Whether prompts and replies are written too, as `gen_ai.input.messages`, `gen_ai.output.messages` and
            `gen_ai.system_instructions`. They hold what users said, so the conventions leave them out unless told.

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
        self._lock = threading.RLock()
        self._calls: dict[str, _OpenCall] = {}
        self._asked: dict[int, tuple[LMBegin, Span]] = {}  # the event keeps the request, so that its id stays its own

    def on_call_begin(self, event: CallBegin) -> None:
        """Open the span of a module call."""
        about: dict[str, Any] = {"synmod.call_id": event.call_id or "", "synmod.phase": event.phase}
        name = event.name
        if event.parent_call_id is None:
            about |= {"gen_ai.operation.name": "invoke_workflow", "gen_ai.workflow.name": event.name}
            name = f"invoke_workflow {event.name}"
        else:
            about["synmod.path"] = event.path
        above = self._above(event.parent_call_id)
        span = self._opened(name, self._api.SpanKind.INTERNAL, above, about)
        with self._lock:
            self._calls[event.call_id or ""] = _OpenCall(span, set() if above is None else above.secrets)

    def on_call_end(self, event: CallEnd) -> None:
        """Close the span of a module call."""
        with self._lock:
            call = self._calls.pop(event.call_id or "", None)
        if call is not None:
            about = {} if event.usage is None else used(event.usage)
            self._close(call.span, about, event.exception, call.secrets)

    def on_lm_begin(self, event: LMBegin) -> None:
        """Open the span of a model call, below the module call that makes it."""
        about = asked(event, content=self._content)
        above = self._above(event.call_id)
        span = self._opened(f"chat {about['gen_ai.request.model']}", self._api.SpanKind.CLIENT, above, about)
        with self._lock:
            if above is not None and event.secrets is not None:
                above.secrets.add(event.secrets)
            self._asked[id(event.request)] = (event, span)

    def on_lm_end(self, event: LMEnd) -> None:
        """Close the span of a model call."""
        with self._lock:
            begun, span = self._asked.pop(id(event.request), (None, None))
        if begun is not None and span is not None:
            hidden = () if begun.secrets is None else (begun.secrets,)
            self._close(span, answered(event, begun, content=self._content), event.exception, hidden)

    def _above(self, call_id: str | None) -> _OpenCall | None:
        """The nearest call around that has a span: the hook of one module is not told of all calls."""
        with self._lock:
            call, frame = self._calls.get(call_id or ""), TOLD.get()
            while call is None and frame is not None:
                call, frame = self._calls.get(frame.id), frame.parent
        return call

    def _opened(self, name: str, kind: Any, above: _OpenCall | None, about: Mapping[str, Any]) -> Span:
        """Start a span below that of a call, else below what is current."""
        context = None if above is None else self._api.set_span_in_context(above.span)
        span: Span = self._tracer.start_span(name, context=context, kind=kind, attributes=about)
        return span

    def _close(
        self, span: Span, about: Mapping[str, Any], exception: BaseException | None, hidden: Iterable[Hidden]
    ) -> None:
        """End a span, with what became known; no traceback goes out, which may hold what nobody shall see."""
        span.set_attributes(about)
        if exception is not None:
            span.set_attributes({"error.type": type(exception).__qualname__})
            text = Secrets(hidden).removed(error_text(exception))
            span.set_status(self._api.Status(self._api.StatusCode.ERROR, text))
        span.end()


def _api() -> Any:
    """Import the interface; untyped, since an extra need not be there where types are checked."""
    try:
        from opentelemetry import trace as api  # pyright: ignore[reportMissingImports, reportUnknownVariableType]
    except ImportError:
        raise ConfigError("OpenTelemetry needs the package opentelemetry-api: pip install 'synmod[otel]'.") from None
    return api  # pyright: ignore[reportUnknownVariableType]  # likewise
