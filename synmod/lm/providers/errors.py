"""What litellm raises, in our words: by class, narrowest first, then by the status of the provider."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from math import isfinite
from types import MappingProxyType
from typing import Any, Final, NamedTuple, TypeAlias, TypeVar, cast

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
from synmod.lm.keys import shortened
from synmod.lm.providers.route import Route

__all__ = ["BY_CLASS", "Heard", "as_model_error", "explained", "unsent"]

E = TypeVar("E", bound=ModelError)

Kind: TypeAlias = type[ModelError] | str

_PREFIX: Final = re.compile(r"^(?:(?:litellm\.)?(?:\w+ )?\w*(?:Error|Exception|Timeout)(?: - |: ))+")

REFUSED: Final = "refused"
UNREADABLE: Final = "not_json"
STATUS: Final = "status"

BY_CLASS: Final[Mapping[str, Kind]] = {
    "APIConnectionError": UnavailableError,
    "APIError": STATUS,
    "APIResponseValidationError": UNREADABLE,
    "AuthenticationError": AuthError,
    "BadGatewayError": UnavailableError,
    "BadRequestError": RequestError,
    "BlockedPiiEntityError": REFUSED,
    "BudgetExceededError": AuthError,
    "ContentPolicyViolationError": REFUSED,
    "ContextWindowExceededError": ContextWindowError,
    "GuardrailRaisedException": REFUSED,
    "ImageFetchError": RequestError,
    "InternalServerError": UnavailableError,
    "InvalidRequestError": RequestError,
    "JSONSchemaValidationError": UNREADABLE,
    "LiteLLMUnknownProvider": RequestError,
    "MidStreamFallbackError": UnavailableError,
    "MockException": STATUS,
    "ModelNotMappedError": RequestError,
    "ModifyResponseException": REFUSED,
    "NotFoundError": RequestError,
    "OpenAIError": STATUS,
    "PaymentRequiredError": AuthError,
    "PermissionDeniedError": AuthError,
    "RateLimitError": RateLimitError,
    "RejectedRequestError": RequestError,
    "SensitiveDataRouteException": REFUSED,
    "ServiceUnavailableError": UnavailableError,
    "Timeout": ModelTimeout,
    "UnprocessableEntityError": RequestError,
    "UnsupportedParamsError": RequestError,
    "VectorStoreSearchError": RequestError,
}
"""Name of an exception class of litellm -> what it is here; a class that is not named here is a failing test."""

_NOT_SENT: Final = frozenset({"LiteLLMUnknownProvider", "ModelNotMappedError", "UnsupportedParamsError"})

_NO_CREDENTIALS: Final = ("missing credentials", "unable to locate credentials", "no key is set", "api key not found")
_TOO_LONG: Final = (
    "context_length_exceeded", "context length", "context window", "maximum context", "prompt is too long",
    "too many tokens", "input is too long", "exceeds the maximum number of tokens", "exceed_context_size",
)  # fmt: skip
_NO_QUOTA: Final = ("insufficient_quota", "billing_hard_limit", "billing_not_active", "credit balance")
_QUOTA_TEXT: Final = (
    "exceeded your current quota"  # of an empty account; some say so of a full minute, and when to retry
)
_FILTERED: Final = ("content_filter", "content_policy_violation", "content management policy")
_MOST_TOLD: Final = 1_500  # bytes of what the provider said, so that our own hints have room behind it
_NO_ANSWER: Final = frozenset({"ReadTimeout", "WriteTimeout", "ServerTimeoutError", "SocketTimeoutError"})
_BROKEN: Final = frozenset({"TransportError", "ClientError", "ConnectionError", "APIConnectionError"})


class Heard(NamedTuple):
    """What our own client heard of the provider: status, headers, body of a failure; nothing where litellm spoke."""

    status: int | None = None
    headers: Mapping[str, str] = MappingProxyType({})
    body: str = ""


def explained(failure: ModelError, litellm: Any, route: Route, *, asked_for_schema: bool) -> ModelError:
    """Add what may help, where we know it: names of credentials, another way to ask for a schema, a missing /v1."""
    hints: list[str] = []
    if isinstance(failure, AuthError) and failure.status is None:
        missing = litellm.validate_environment(route.model).get("missing_keys")
        hints.append(f"litellm looks for {', '.join(missing)} in the environment." if missing else "")
    if isinstance(failure, RequestError) and asked_for_schema and failure.status in (400, 404, 415, 422):
        hints.append("If the server does not know response_format, pass LanguageModel(..., structured='prompt').")
    if failure.status == 404 and route.base is not None and not route.base.rstrip("/").endswith("/v1"):
        hints.append(f"The api_base {route.base!r} lacks /v1, which most servers want.")
    failure.args = (" ".join(filter(None, [str(failure), *hints])),)
    return failure


def unsent(error: E) -> E:
    """Mark an error of an adapter as found before a request left: it counts as no request, and is not retried."""
    error.sent = False
    return error


class _Finding(NamedTuple):
    """What an exception is here, and the status that the provider gave, if it gave one."""

    kind: Kind
    status: int | None


def as_model_error(error: Exception, heard: Heard, scrub: Callable[[str], str]) -> ModelError:
    """Make our error of what litellm raised; nothing of the original is kept but its text, without secrets."""
    said = shortened(scrub(_said(error)))
    codes = f"{getattr(error, 'code', '')} {getattr(error, 'type', '')}"
    kind, status = _finding(error, f"{said} {codes} {heard.body}".casefold(), heard)
    headers = heard.headers or _headers(error)
    about: dict[str, Any] = {
        "status": status,
        "request_id": headers.get("x-request-id") or headers.get("request-id"),
        "provider_message": said,
    }
    told = shortened(said, _MOST_TOLD)
    message = told if status is None else f"the provider answered {status}: {told}"
    if isinstance(kind, str):
        what = "the provider refused to answer" if kind == REFUSED else "the reply cannot be read"
        return BadReplyError(f"{what}: {message}", reason=kind, **about)
    ours = kind(message, retry_after_s=_retry_after(headers.get("retry-after")), **about)
    return unsent(ours) if status is None and kind in (AuthError, RequestError) else ours


def _finding(error: Exception, low: str, heard: Heard) -> _Finding:
    """Find out what an exception is."""
    name = next((known for known in _names(error) if known in BY_CLASS), "")
    kind = BY_CLASS.get(name, RequestError)
    if _lacks_credentials(low):
        return _Finding(AuthError, heard.status)
    if name in _NOT_SENT or "llm provider not provided" in low:
        return _Finding(kind, None)
    broken = _broken_connection(error)
    if broken is not None:
        return _Finding(broken, None)
    if kind is ContextWindowError or kind == REFUSED:
        return _Finding(kind, heard.status or _status(error))
    if heard.status is not None and heard.status < 300:
        return _Finding(UNREADABLE, heard.status)
    status = heard.status or _status(error)
    if status is None:
        return _Finding(UnavailableError if kind == STATUS else kind, None)
    by_text = _by_text(status, low)
    if by_text is not None:
        return _Finding(by_text, status)
    return _Finding(_by_status(status) if kind == STATUS or heard.status else kind, status)


def _by_text(status: int, low: str) -> Kind | None:
    """What only the words of the provider tell: a prompt too long or not allowed, an account that is empty."""
    if status in (400, 413) and any(words in low for words in _TOO_LONG):
        return ContextWindowError
    if status in (400, 403) and any(words in low for words in _FILTERED):
        return REFUSED
    empty = any(words in low for words in _NO_QUOTA) or (_QUOTA_TEXT in low and "retry" not in low)
    return AuthError if status == 429 and empty else None


def _by_status(status: int) -> type[ModelError]:
    """The class of a status that is no success."""
    if status in (401, 402, 403):
        return AuthError
    if status == 429:
        return RateLimitError
    return UnavailableError if status in (408, 409, 425) or status >= 500 else RequestError


def _lacks_credentials(low: str) -> bool:
    """Tell whether credentials are missing: litellm reports that as a server error, so only the text tells."""
    return any(words in low for words in _NO_CREDENTIALS) or ("missing" in low and "api key" in low)


def _broken_connection(error: Exception) -> type[ModelError] | None:
    """Look among the causes for a connection that failed, or that brought no answer in time."""
    found: type[ModelError] | None = None
    for cause in _causes(error):
        names = set(_names(cause))
        if names & _NO_ANSWER:
            return ModelTimeout
        if names & _BROKEN and "litellm" not in type(cause).__module__:
            found = UnavailableError
    return found


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    """An exception, and what it was raised for."""
    for _ in range(20):
        if error is None:
            return
        yield error
        error = error.__cause__ or error.__context__


def _names(error: BaseException) -> Iterator[str]:
    """Names of the classes of an exception, narrowest first."""
    return (kind.__name__ for kind in type(error).__mro__)


def _status(error: Exception) -> int | None:
    """The status that litellm tells; it makes one up where a connection failed, which is looked at before."""
    status = getattr(error, "status_code", None)
    try:
        return int(status) if status is not None and not isinstance(error, TimeoutError) else None
    except (TypeError, ValueError):
        return None


def _headers(error: Exception) -> Mapping[str, str]:
    """Headers of the provider's answer, by lower-case name, where litellm kept them."""
    for holder in (error, getattr(error, "response", None)):
        headers = getattr(holder, "litellm_response_headers", None) or getattr(holder, "headers", None)
        if isinstance(headers, Mapping) and headers:
            found = cast("Mapping[Any, Any]", headers)
            return {str(name).casefold(): str(value) for name, value in found.items()}
    return {}


def _said(error: Exception) -> str:
    """What the provider said, without the names that litellm puts before it."""
    text = str(getattr(error, "message", None) or error)
    return _PREFIX.sub("", text).strip() or type(error).__name__


def _retry_after(value: str | None) -> float | None:
    """Read a Retry-After header: seconds, or a date."""
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
