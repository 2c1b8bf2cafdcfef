"""What providers answer instead of a reply, in our words: by status and text, and for litellm's exceptions by class."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from math import isfinite
from typing import Any, Final, TypeAlias, cast

from synmod.data import parse_json
from synmod.errors import (
    AuthError,
    BadReplyError,
    ContextWindowError,
    ModelError,
    ModelTimeout,
    RateLimitError,
    RequestError,
    UnavailableError,
)
from synmod.leaves.frozen import Json, is_object

from .secrets import shortened

__all__ = ["http_error", "litellm_error", "message_in", "with_hints"]

Kind: TypeAlias = type[ModelError] | str
"""A class of ours, or the reason of a `BadReplyError`."""

_REFUSED, _UNREADABLE = "refused", "not_json"

_BY_CLASS: Final[Mapping[str, Kind]] = {
    "APIResponseValidationError": _UNREADABLE,
    "ContentPolicyViolationError": _REFUSED,
    "ContextWindowExceededError": ContextWindowError,
    "Timeout": ModelTimeout,
}
"""Exception classes of litellm whose status does not tell what they are."""

_NOT_SENT: Final = frozenset({"LiteLLMUnknownProvider", "ModelNotMappedError", "UnsupportedParamsError"})
_NO_ANSWER: Final = frozenset({"ReadTimeout", "WriteTimeout", "ServerTimeoutError", "SocketTimeoutError"})
_BROKEN: Final = frozenset({"TransportError", "ClientError", "ConnectionError", "APIConnectionError"})

_PREFIX: Final = re.compile(r"^(?:(?:litellm\.)?(?:\w+ )?\w*(?:Error|Exception|Timeout)(?: - |: ))+")
_NO_CREDENTIALS: Final = ("missing credentials", "unable to locate credentials", "no key is set", "api key not found")
_TOO_LONG: Final = (
    "context_length_exceeded", "context length", "context window", "maximum context", "prompt is too long",
    "too many tokens", "input is too long", "exceeds the maximum number of tokens", "exceed_context_size",
)  # fmt: skip
_NO_QUOTA: Final = ("insufficient_quota", "billing_hard_limit", "billing_not_active", "credit balance")
_QUOTA_TEXT: Final = "exceeded your current quota"  # of an empty account; of a full minute with a word on when to retry
_FILTERED: Final = ("content_filter", "content_policy_violation", "content management policy")
_MOST_QUOTED: Final = 1_500  # bytes of the provider's text, so that our own hints have room behind it


def http_error(status: int, headers: Mapping[str, str], body: str) -> ModelError:
    """Return the error for an answer that is not a success.

    Args:
        status: HTTP status.
        headers: Headers of the answer, by lower-case name.
        body: Its text, scrubbed of secrets.
    """
    try:
        quoted = message_in(parse_json(body))
    except ValueError:
        quoted = ""
    quoted = quoted or body.strip() or f"HTTP status {status}"
    return _made(_kind(status, body.casefold()), status, headers, quoted)


def litellm_error(error: Exception, text: str) -> ModelError:
    """Return the error for an exception of litellm; nothing of the original is kept but its text.

    Args:
        error: The exception.
        text: Its message, scrubbed of secrets.
    """
    low = f"{text} {getattr(error, 'code', '')} {getattr(error, 'type', '')}".casefold()
    names = {kind.__name__ for kind in type(error).__mro__}
    quoted = _PREFIX.sub("", text).strip() or type(error).__name__
    if any(words in low for words in _NO_CREDENTIALS) or ("missing" in low and "api key" in low):
        return _made(AuthError, None, {}, quoted)
    if names & _NOT_SENT or "llm provider not provided" in low:
        return _made(RequestError, None, {}, quoted)
    broken = _broken_connection(error)
    if broken is not None:
        return _made(broken, None, {}, quoted)
    status = _status(error)
    kind = next((kind for name, kind in _BY_CLASS.items() if name in names), None)
    if kind is None:
        kind = RequestError if status is None else _kind(status, low)
    return _made(kind, status, _headers(error), quoted)


def with_hints(error: ModelError, base: str | None, *, asked_for_schema: bool) -> ModelError:
    """Add what may help: another way to ask for a schema, a missing /v1."""
    hints: list[str] = []
    if isinstance(error, RequestError) and asked_for_schema and error.status in (400, 404, 415, 422):
        hints.append("If the server does not know response_format, pass LanguageModel(..., structured='prompt').")
    if error.status == 404 and base is not None and not base.rstrip("/").endswith("/v1"):
        hints.append(f"The api_base {base!r} lacks /v1, which most servers want.")
    error.args = ("\n  ".join([str(error), *hints]),)
    return error


def _made(kind: Kind, status: int | None, headers: Mapping[str, str], quoted: str) -> ModelError:
    """Make the error of a kind."""
    text = shortened(quoted, _MOST_QUOTED)
    message = text if status is None else f"the provider answered {status}: {text}"
    details: dict[str, Any] = {
        "status": status,
        "request_id": headers.get("x-request-id") or headers.get("request-id"),
        "provider_message": shortened(quoted),
    }
    if isinstance(kind, str):
        what = "the provider refused to answer" if kind == _REFUSED else "the reply cannot be read"
        return BadReplyError(f"{what}: {message}", text=details["provider_message"], reason=kind, **details)
    sent = status is not None or kind not in (AuthError, RequestError)
    return kind(message, retry_after_s=_retry_after(headers.get("retry-after")), sent=sent, **details)


def _kind(status: int, low: str) -> Kind:
    """Return what a status means; where it means several things, the provider's words decide."""
    if status in (400, 413) and any(words in low for words in _TOO_LONG):
        return ContextWindowError
    if status in (400, 403) and any(words in low for words in _FILTERED):
        return _REFUSED
    if status == 429:
        empty = any(words in low for words in _NO_QUOTA) or (_QUOTA_TEXT in low and "retry" not in low)
        return AuthError if empty else RateLimitError
    if status in (401, 402, 403):
        return AuthError
    if status < 300:
        return _UNREADABLE
    return UnavailableError if status in (408, 409, 425) or status >= 500 else RequestError


def message_in(json: Json) -> str:
    """Return the message in the JSON of a failure: `error.message` or `detail`; "" where there is none."""
    error = json.get("error") or json if is_object(json) else None
    found = next((error[key] for key in ("message", "detail") if error.get(key)), "") if is_object(error) else error
    return str(found or "").strip()


def _broken_connection(error: BaseException | None) -> type[ModelError] | None:
    """Look among the causes for a connection that failed, or that brought no answer in time."""
    found: type[ModelError] | None = None
    for _ in range(20):  # an exception may be its own cause
        if error is None:
            break
        names = {kind.__name__ for kind in type(error).__mro__}
        if names & _NO_ANSWER:
            return ModelTimeout
        if names & _BROKEN and "litellm" not in type(error).__module__:
            found = UnavailableError
        error = error.__cause__ or error.__context__
    return found


def _status(error: Exception) -> int | None:
    """Return the status that litellm reports; it makes one up where a connection failed, which is found before."""
    try:
        return None if isinstance(error, TimeoutError) else int(getattr(error, "status_code", None) or "")
    except (TypeError, ValueError):
        return None


def _headers(error: Exception) -> Mapping[str, str]:
    """Return the headers of the provider's answer, by lower-case name, where litellm kept them."""
    for holder in (error, getattr(error, "response", None)):
        headers = getattr(holder, "litellm_response_headers", None) or getattr(holder, "headers", None)
        if isinstance(headers, Mapping) and headers:
            found = cast("Mapping[Any, Any]", headers)
            return {str(name).casefold(): str(value) for name, value in found.items()}
    return {}


def _retry_after(value: str | None) -> float | None:
    """Read a Retry-After header: seconds, or a date."""
    from email.utils import parsedate_to_datetime

    if value is None:
        return None
    try:
        seconds = float(value)
    except ValueError:
        try:
            at = parsedate_to_datetime(value)
        except ValueError:
            return None
        now = datetime.now(UTC)
        seconds = (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp() - now.timestamp()
    return max(0.0, seconds) if isfinite(seconds) else None
