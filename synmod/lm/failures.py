"""Failures: the error for an answer without a reply, or an exception of a client, and what to do about it."""

from __future__ import annotations

import re
import socket
import ssl
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any, Final, TypeAlias

from synmod import errors
from synmod.data import parse_json
from synmod.leaves import Json, is_array, is_object, mend, wall_time
from synmod.wires import first_choice

from . import options
from .records import AnyRequest
from .replies import end_of
from .streaming import error_in
from .words import json_text

MOST_OF_ERROR: Final = 2**16
"""How many bytes of the body of an error are read."""

Kind: TypeAlias = type[errors.ModelError] | str
"""A class of ours, or the reason of a `BadReplyError`."""

_REFUSED, _UNREADABLE = "refused", "not_json"

_BY_CLASS: Final[Mapping[str, Kind]] = {
    "APIResponseValidationError": _UNREADABLE,
    "ContentPolicyViolationError": _REFUSED,
    "ContextWindowExceededError": errors.ContextWindowError,
    "Timeout": errors.ModelTimeout,
}
"""Exception classes of litellm whose status is not specific."""

_NOT_SENT: Final = frozenset({"LiteLLMUnknownProvider", "ModelNotMappedError", "UnsupportedParamsError"})
_NO_ANSWER: Final = frozenset({"ReadTimeout", "WriteTimeout", "ServerTimeoutError", "SocketTimeoutError"})
_BROKEN: Final = frozenset({"TransportError", "ClientError", "ConnectionError", "APIConnectionError"})

_PREFIX: Final = re.compile(r"^(?:(?:litellm\.)?(?:\w+ )?\w*(?:Error|Exception|Timeout)(?: - |: ))+")
_NO_CREDENTIALS: Final = ("missing credentials", "unable to locate credentials", "no key is set", "api key not found")
_UNSET: Final = re.compile(r"missing|must provide|required|provide an|(not|base was) set|not provided|pip install")
_LOADING: Final = re.compile(r"loading|warming up|starting")
_TOO_LONG: Final = re.compile(
    "context_length|context length|context limit|context size|context window|exceed_context_size|"
    "exceed the configured limit|exceeds max length|exceeds the maximum number of tokens|input is too long|"
    "length of all messages|longer than the maximum model length|max_new_tokens` must be|maximum context|"
    "maximum prompt length|model token limit|must have less than|prompt is too long|prompt too long|"
    "range of input length|reduce the length of|reduce your message size|string_above_max_length|"
    "too large for model|too large to process|too many input tokens|too many tokens"
)
_NO_QUOTA: Final = ("insufficient_quota", "billing_hard_limit", "billing_not_active", "credit balance")
_QUOTA_TEXT: Final = "exceeded your current quota"  # an empty account, or a rate limit if the text mentions a retry
_UNABLE: Final = ("not supported", "does not support", "not implemented")  # llama.cpp refuses images by 500
_FILTERED: Final = ("content_filter", "content_policy_violation", "content management policy")
_WORDS_OF_STATUS: Final = {
    429: "ratelimit toomanyrequests resourceexhausted throttl quota",
    401: "authentication unauthenticated unauthorized apikey",
    403: "permission forbidden",
    402: "payment credit",
    404: "notfound",
    400: "badrequest invalidrequest invalidargument contextlength contextsize contentfilter contentpolicy",
    504: "timeout deadlineexceeded",
    503: "overloaded unavailable",
}
"""Status -> the words for it in the code or type of an error that has no status of its own."""

_STATUS_KEYS: Final = ("code", "status", "status_code", "type")
_MESSAGE_KEYS: Final = ("error", "message", "detail", "errors")
_MOST_QUOTED: Final = 1_500  # bytes of the provider's text, so that our own hints have room behind it


def http_error(status: int, headers: Mapping[str, str], body: str) -> errors.ModelError:
    """Return the error for an unsuccessful answer, or for one without a reply.

    Args:
        status: HTTP status.
        headers: Headers of the answer, by lower-case name.
        body: Its text, scrubbed of secrets.
    """
    quoted = ""
    with suppress(ValueError):
        quoted = message_in(parse_json(body))
    if 300 <= status < 400 and (target := headers.get("location")):
        quoted = f"a redirect to {target}, which is not followed; the api_base may be {_ENDPOINT.sub('', target)!r}"
    quoted = quoted or body.strip() or ("an empty body" if status < 300 else f"HTTP status {status}")
    return _make_error(_kind(status, body.casefold()), status, headers, quoted)


def error_of(json: Json) -> Json:
    """Return the error that a successful answer states, for itself or for its first choice; None without one."""
    json = _only_item(json)
    if not is_object(json):
        return None
    choice = first_choice(json)
    if (error := error_in(json)) or not choice:
        return error or None
    is_limited = end_of(choice.get("finish_reason")) in ("length", "content_filter")  # which is no error of the server
    return None if is_limited else choice.get("error") or None


def _only_item(json: Json) -> Json:
    """Return what is inside an array of one: Gemini puts one around its errors."""
    return json[0] if is_array(json) and len(json) == 1 else json


def body_error(error: Json, json: Json, headers: Mapping[str, str], secrets: options.Secrets) -> errors.ModelError:
    """Return the error for a successful answer without a reply: the one that it states, else that it has none."""
    text = secrets.scrub(json_text(json if error is None else {"error": error})[:MOST_OF_ERROR])
    stated = [error.get(key) for key in _STATUS_KEYS] if is_object(error) else [error]
    status = next((int(code) for code in map(str, stated) if re.fullmatch("[45][0-9][0-9]", code)), None)
    if status is None and error is not None:
        letters = re.sub(r"[^a-z]", "", " ".join(map(str, stated)).casefold())
        by_word = (code for code, words in _WORDS_OF_STATUS.items() if any(word in letters for word in words.split()))
        status = 400 if _TOO_LONG.search(text.casefold()) else next(by_word, 500)
    return http_error(status or 200, headers, text)


def litellm_error(error: Exception, text: str, base: str | None = None) -> errors.ModelError:
    """Return the error for an exception of litellm; only the text of the original is kept.

    Args:
        error: The exception.
        text: Its message, scrubbed of secrets.
        base: The address of the server; None for the provider's own endpoint.
    """
    if (failure := no_connection(error, base)) is not None:
        return failure
    text = text.partition("\nTraceback (most recent call last)")[0]
    low = f"{text} {getattr(error, 'code', '')} {getattr(error, 'type', '')}".casefold()
    quoted = _PREFIX.sub("", text).strip() or type(error).__name__
    if any(words in low for words in _NO_CREDENTIALS) or ("missing" in low and "api key" in low):
        return _make_error(errors.AuthError, None, {}, quoted)
    own = {kind.__name__ for kind in type(error).__mro__}
    if own & _NOT_SENT or "llm provider not provided" in low:
        return _make_error(errors.RequestError, None, {}, quoted)
    causes = [type(cause).__mro__ for cause in _chain(error) if "litellm" not in type(cause).__module__]
    broken = {kind.__name__ for kinds in causes for kind in kinds}
    if broken & _NO_ANSWER or broken & _BROKEN:  # litellm invents a status for these
        return _make_error(errors.ModelTimeout if broken & _NO_ANSWER else errors.UnavailableError, None, {}, quoted)
    status = getattr(error, "status_code", None)
    status = status if isinstance(status, int) and not isinstance(error, TimeoutError) else None
    if (status or 500) >= 500 and _UNSET.search(low) and {kinds[0].__module__ for kinds in causes} <= {"builtins"}:
        return _make_error(errors.RequestError, None, {}, quoted)  # found by litellm's own code, which invents a status
    usual = errors.RequestError if status is None else _kind(status, low)
    kind = next((kind for name, kind in _BY_CLASS.items() if name in own), usual)
    response = getattr(error, "response", None)
    fields = dict(getattr(error, "litellm_response_headers", None) or getattr(response, "headers", {}))
    return _make_error(kind, status, {str(name).casefold(): str(value) for name, value in fields.items()}, quoted)


def _chain(error: BaseException) -> list[BaseException]:
    """Return an exception and what it was raised from, outermost first."""
    chain = [error]
    while (cause := chain[-1].__cause__ or chain[-1].__context__) is not None and cause not in chain:
        chain.append(cause)
    return chain


_NOT_TLS: Final = ("HTTP_REQUEST", "RECORD_LAYER_FAILURE", "UNKNOWN_PROTOCOL", "WRONG_VERSION_NUMBER")
_HUNG_UP: Final = frozenset(
    {"BrokenPipeError", "ConnectionAbortedError", "ConnectionResetError", "ServerDisconnectedError"}
)
_ELSEWHERE: Final = frozenset({"ClientPayloadError", "ClientProxyConnectionError"})  # inside an answer; by a proxy
_ALERT: Final = r"\x15\x03"  # how a server begins that was sent HTTP in place of TLS
_UNKNOWN_ROOT: Final = "if you trust it, let SSL_CERT_FILE name a PEM file with its root"
_CERTIFICATES: Final = {
    10: "renew the certificate of the server, or correct the clock of this host",
    62: "write the host name that the certificate is for into the address",
    64: "write the host name that the certificate is for into the address",
}
"""OpenSSL's number of a fault of a certificate -> what to do."""


def no_connection(error: BaseException, base: str | None) -> errors.ModelError | None:
    """Return the error for a connection that failed before an answer, with what to do; None for any other failure.

    Args:
        error: The exception of a client, with its causes.
        base: The address of the server; None for the provider's own endpoint.
    """
    chain = _chain(error)
    client: Any = next((link for link in chain if hasattr(link, "port")), None)
    host, where = (client.host, f"{client.host}:{client.port}") if client is not None else ("the server", "the address")
    for link in chain:
        if isinstance(link, ssl.SSLCertVerificationError) and hasattr(link, "verify_code"):
            why = f"{link.verify_message.rstrip('.')}; {_CERTIFICATES.get(link.verify_code, _UNKNOWN_ROOT)}"
            return permanent_error(f"the certificate of {where} cannot be verified: {why}.")
        if isinstance(link, ssl.SSLError) and getattr(link, "reason", "") in _NOT_TLS:
            address = _with_other_scheme(base) if base else "http://"
            return permanent_error(f"{where} does not speak TLS; write {address} for a server without it.")
        if isinstance(link, ConnectionRefusedError):
            if type(client).__name__ == "ClientProxyConnectionError":
                return errors.UnavailableError(
                    f"the proxy at {where} refuses connections; start it, or correct http_proxy"
                )
            remedy = "start the server, or correct its address" if base else "something on the way may block it"
            refused = errors.UnavailableError(f"nothing listens at {where} (connection refused); {remedy}")
            refused.starting = base is not None
            return refused
        if isinstance(link, socket.gaierror):
            return errors.UnavailableError(f"the host name {host} cannot be resolved ({link.strerror}); check it")
    names = {type(link).__name__ for link in chain}
    is_alert = any(_ALERT in str(getattr(link, "message", "")) for link in chain)
    if base and (is_alert or (names & _HUNG_UP and not names & _ELSEWHERE)):
        speaks = "does not speak" if base.startswith("https:") else "speaks"
        remedy = f"if it {speaks} TLS, write {_with_other_scheme(base)}"
        return errors.UnavailableError(f"the server hung up before it answered; {remedy}")
    return None


def _with_other_scheme(base: str) -> str:
    """Return an address with http:// in place of https://, or the reverse."""
    scheme, _, rest = base.partition(":")
    return f"{'http' if scheme == 'https' else 'https'}:{rest}"


def permanent_error(text: str) -> errors.UnavailableError:
    """Return the error for a server that cannot be reached until somebody mends something; nothing was sent."""
    error = errors.UnavailableError(text, sent=False)
    error.transient = False
    return error


_ABOUT_SCHEMAS: Final = ("response_format", "schema", "structured", "extra", "json mode", "response mime type")
"""Words in the message of a server that rejected the form in which a schema was requested."""

_UNKNOWN: Final = re.compile(r"support|unknown|unrecogni[sz]ed|unexpected|not (permitted|allowed)|extra")
"""In the message of a server that rejects a parameter."""

_NO_SYSTEM_TURN: Final = re.compile(r"system role|role.{1,30}support.{1,10}system|roles must alternate")
"""In the message of a model whose template or provider takes none."""

_WANTS_TLS: Final = re.compile(r"https (port|server|scheme)|plain http|requires tls")
"""In the message of a server of TLS that was sent plain HTTP."""

_ENDPOINT: Final = re.compile(r"/(chat/completions|completions|embeddings|responses|models)/?$")


def with_hints(error: errors.ModelError, settings: options.Settings, request: AnyRequest) -> errors.ModelError:
    """Add to an error of a server what the user can do: the one way out, where there is one."""
    error.args = ("\n  ".join([str(error), *_hints(error, settings, request)]),)
    return error


def _hints(error: errors.ModelError, settings: options.Settings, request: AnyRequest) -> Iterator[str]:
    """Yield what the user can do about an error of a server."""
    refused = error.provider_message.casefold() if isinstance(error, errors.RequestError) else ""
    schema, tools = getattr(request, "schema", None), getattr(request, "tools", None)  # a batch of texts has neither
    if schema is not None and any(word in refused for word in ("tool_choice", *_ABOUT_SCHEMAS)):
        as_tool = 'structured="tool" or ' if tools and request.structured != "tool" else ""
        yield f'If the server takes no schema in this form, pass LanguageModel(..., {as_tool}structured="prompt").'
    if tools and "tool_choice" in refused and is_object(getattr(request, "tool_choice", None)):
        yield 'If the server takes no tool by name, offer that tool alone, with tool_choice="required".'
    most = request.params.get("max_tokens")
    if most is not None and "max_completion_tokens" in refused:
        yield f"Leave max_tokens out, and pass LanguageModel(..., extra_body={{'max_completion_tokens': {most}}})."
    elif _UNKNOWN.search(refused):
        for name in [name for name in request.params if re.search(rf"\b{name}\b", refused)]:
            yield f"If the model does not take this {name}, leave it out of the parameters."
    if _NO_SYSTEM_TURN.search(refused):
        template = "{'user': '{instructions}\\n{output_schema}\\n{examples}\\n{inputs}'}"
        yield f"If the model takes no system turn, write all into the user's: Generator(..., template={template})."
    if "stream_options" in error.provider_message:
        yield "If the server does not know stream_options, pass extra_body={'stream_options': None}."
    is_bare = settings.api_key is None and all(isinstance(value, str) for value in settings.headers.values())
    if error.status in (401, 403) and settings.api_base is not None and is_bare:
        name = options.ENVIRONMENT.get(settings.provider, ("MY_API_KEY",))[0]
        yield f"A key of the environment is never sent to an api_base. Pass api_key=os.environ[{name!r}]."
    base = settings.base
    if base is not None and base.startswith("http:") and error.status == 400 and _WANTS_TLS.search(refused):
        yield f"The server speaks TLS: write {_with_other_scheme(base)}."
    if error.status in (200, 404, 405) and base is not None:
        if end := _ENDPOINT.search(base):
            yield f"The api_base ends with {end[0]}, which is added to it: pass {base[: end.start()]!r}."
        elif not base.rstrip("/").endswith("/v1"):
            yield f"The api_base {base!r} lacks /v1, which most servers want."


def _make_error(kind: Kind, status: int | None, headers: Mapping[str, str], quoted: str) -> errors.ModelError:
    """Make the error of a kind."""
    quoted = mend(quoted)  # litellm passes half a character on
    text = options.shorten(quoted, _MOST_QUOTED)
    answer = "200 without a reply" if status == 200 else status
    message = text if status is None else f"the provider answered {answer}: {text}"
    request_id = headers.get("x-request-id") or headers.get("request-id")
    details: dict[str, Any] = {"status": status, "request_id": request_id}
    details["provider_message"] = options.shorten(quoted)
    if isinstance(kind, str):
        what = "the provider refused to answer" if kind == _REFUSED else "the reply cannot be read"
        return errors.BadReplyError(f"{what}: {message}", text=details["provider_message"], reason=kind, **details)
    sent = status is not None or kind not in (errors.AuthError, errors.RequestError)
    error = kind(message, retry_after_s=_retry_after(headers.get("retry-after", "")), sent=sent, **details)
    error.starting = status == 503 and _LOADING.search(quoted.casefold()) is not None
    return error


def _kind(status: int, low: str) -> Kind:
    """Return the kind of error that a status means; the provider's text decides between several."""
    if (status in (400, 413, 422) or status >= 500) and _TOO_LONG.search(low):
        return errors.ContextWindowError
    if status in (400, 403) and any(words in low for words in _FILTERED):
        return _REFUSED
    if status == 429:
        empty = any(words in low for words in _NO_QUOTA) or (_QUOTA_TEXT in low and "retry" not in low)
        return errors.AuthError if empty else errors.RateLimitError
    if status in (401, 402, 403):
        return errors.AuthError
    if status in (500, 501) and any(words in low for words in _UNABLE):
        return errors.RequestError
    is_transient = status < 300 or status in (408, 409, 425) or status >= 500
    return errors.UnavailableError if is_transient else errors.RequestError


def message_in(json: Json) -> str:
    """Return the message in the JSON of a failure: `error.message`, `detail`, the only error's; "" without one."""
    json = _only_item(json)
    if is_object(json):
        return next(filter(None, (message_in(json[key]) for key in _MESSAGE_KEYS if key in json)), "")
    return "" if is_array(json) else str(json or "").strip()


def _retry_after(value: str) -> float | None:
    """Read a Retry-After header: seconds, or a date."""
    from email.utils import mktime_tz, parsedate_tz

    date = parsedate_tz(value)
    try:
        seconds = float(value) if date is None else mktime_tz(date) - wall_time()
    except (ValueError, OverflowError):
        return None
    return max(0.0, seconds) if seconds < float("inf") else None
