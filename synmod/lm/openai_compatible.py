"""The direct adapter: chat completions over aiohttp, for OpenAI itself and for every server that speaks as it does.

One session per event loop; no redirects, no `.netrc`, nothing of the environment but proxies and roots of trust. The
shape of requests and replies is shared with the adapter of litellm, which uses the same.
"""

from __future__ import annotations

import asyncio
import atexit
import os
import re
import threading
import warnings
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit
from weakref import WeakSet

from synmod.data import parse_json
from synmod.errors import (
    AuthError,
    BadReplyError,
    ConfigError,
    ModelError,
    ModelTimeout,
    RequestError,
    SynmodWarning,
    UnavailableError,
)
from synmod.leaves import aio
from synmod.leaves.frozen import Json, is_array, is_object
from synmod.scope import Usage

from .litellm_door import Price, counted_tokens, list_price
from .messages import Message, estimate_text, estimate_tokens, message
from .provider_errors import http_error, with_hints
from .records import LMReply, LMRequest
from .schema_words import json_text, value_text

if TYPE_CHECKING:
    import ssl

    from aiohttp import ClientResponse, ClientSession

    from .secrets import Secrets
    from .settings import Settings

__all__ = ["LOCAL", "DirectAdapter", "chat_body", "is_strict", "refuse_trio", "reply_of", "serves"]

OPENAI: Final = "https://api.openai.com/v1"

LOCAL: Final[Mapping[str, str]] = {
    "hosted_vllm": "http://localhost:8000/v1",
    "llamafile": "http://localhost:8080/v1",
    "lm_studio": "http://localhost:1234/v1",
    "ollama": "http://localhost:11434/v1",
    "vllm": "http://localhost:8000/v1",
}
"""Provider -> the usual address of its server on this machine."""

_CONNECT_S: Final = 10.0
_MOST_BODY: Final = 32 * 2**20
_NOT_IN_A_NAME: Final = re.compile(r"[^A-Za-z0-9_-]+")
_STRICT_KEYWORDS: Final = frozenset({
    "$defs", "$ref", "additionalProperties", "anyOf", "const", "description", "enum", "exclusiveMaximum",
    "exclusiveMinimum", "format", "items", "maxItems", "maximum", "minItems", "minimum", "multipleOf", "pattern",
    "properties", "required", "title", "type",
})  # fmt: skip
_MOST_STRICT_PROPERTIES, _DEEPEST_STRICT = 100, 5


def serves(settings: Settings) -> bool:
    """Whether the direct adapter serves a model by default: OpenAI's, a local server's, any with an `api_base`."""
    return settings.api_base is not None or settings.provider == "openai" or settings.provider in LOCAL


class DirectAdapter:
    """Sends chat completions to OpenAI or to an OpenAI-compatible server.

    Args:
        settings: What the model was made with.
        secrets: Its key and headers.

    Raises:
        ConfigError: The provider's address is not known, and there is no `api_base`.
    """

    name = "direct"
    version = 1

    def __init__(self, settings: Settings, secrets: Secrets) -> None:
        base = settings.api_base or LOCAL.get(settings.provider)
        if base is None and settings.provider != "openai":
            raise ConfigError(
                f"{settings.model}: adapter='direct' needs api_base=..., the address of an OpenAI-compatible server."
            )
        self._settings = settings
        self._secrets = secrets
        self._base = base  # None for OpenAI itself
        self._url = f"{(base or OPENAI).rstrip('/')}/chat/completions"
        if settings.api_key is not None and _is_plain_and_public(self._url):
            warnings.warn(
                f"{settings.model}: the key goes over plain http to a public host; use https.",
                SynmodWarning,
                stacklevel=4,
            )

    def check(self, request: LMRequest) -> None:
        """Raise at once for what cannot work here.

        Raises:
            UnavailableError: trio runs this code.
            AuthError: There is no key where one is needed.
            RequestError: OpenAI does not take `top_k`.
        """
        refuse_trio("the direct adapter")
        missing = self._secrets.missing() if self._base is None else None
        if missing is not None:
            raise missing
        if self._base is None and "top_k" in request.params:
            raise RequestError("this model does not take top_k; leave it out of the parameters.", sent=False)

    async def send(self, request: LMRequest) -> LMReply:
        """Send one request."""
        outcome = await self._exchanged(request)
        if isinstance(outcome, LMReply):
            return outcome
        # Raised here, so that neither the original nor a frame that knows the key hangs on it.
        try:
            raise outcome
        finally:
            del outcome  # else the error and this frame would hold each other

    async def price(self) -> Price | None:
        """Return the list price; the price of a server of the user's own is not known."""
        return await aio.to_thread(list_price, self._settings.model) if self._base is None else None

    async def count_tokens(self, messages: Sequence[Message]) -> int | None:
        """Count with OpenAI's tokenizer, which litellm carries; None for other servers."""
        if self._base is not None:
            return None
        return await counted_tokens(self._settings.model, messages)

    async def aclose(self) -> None:
        """Close the connections of the running loop, unless another model uses them."""
        await _leave(self)

    async def _exchanged(self, request: LMRequest) -> LMReply | ModelError:
        """Send one request with its key; a failure is returned, not raised."""
        import aiohttp

        key = await self._secrets.key()
        if isinstance(key, AuthError):
            return key
        headers = {"content-type": "application/json", "user-agent": "synmod"}
        if key is not None:
            headers["authorization"] = f"Bearer {key}"
        headers |= {name.lower(): text for name, text in self._secrets.headers().items()}
        body = chat_body(request, request.structured or "schema")
        if self._base is None and "max_tokens" in body:
            body["max_completion_tokens"] = body.pop("max_tokens")
        body = {"model": self._settings.model.partition("/")[2], **body, **self._settings.extra_body}
        try:
            session, roots = await _session(self), await _roots(self._url)
            async with session.post(
                self._url,
                data=json_text(body).encode(),
                headers=headers,
                allow_redirects=False,
                proxy=_proxy(self._url),
                ssl=roots,
            ) as response:
                status, received = response.status, {name.lower(): text for name, text in response.headers.items()}
                content = await _content(response)
        except aiohttp.ConnectionTimeoutError:
            return UnavailableError(f"no connection within {_CONNECT_S:g} s")
        except aiohttp.ServerTimeoutError:
            return ModelTimeout("the connection brought no answer in time")
        except (aiohttp.ClientError, OSError) as error:
            return UnavailableError(self._secrets.scrubbed(f"{type(error).__name__}: {error}"))
        if status >= 300:
            text = self._secrets.scrubbed((content or b"").decode(errors="replace"))
            return with_hints(
                http_error(status, received, text), self._base, asked_for_schema="response_format" in body
            )
        if content is None:
            return BadReplyError("the reply is longer than 32 MiB", reason="not_json", status=status)
        try:
            return reply_of(parse_json(content), request, received)
        except ValueError:
            text = self._secrets.scrubbed(content.decode(errors="replace"))
            return http_error(status, received, text)


def refuse_trio(who: str) -> None:
    """Raise UnavailableError, which is not transient, where trio runs this code."""
    if aio.backend() == "trio":
        error = UnavailableError(f"{who} needs asyncio, and trio runs this code.", sent=False)
        error.transient = False
        raise error


def chat_body(request: LMRequest, level: str) -> dict[str, Any]:
    """Return messages, parameters and response format of a request, as chat completions take them."""
    body: dict[str, Any] = dict(request.params)
    messages, schema = request.messages, request.schema
    if schema is not None:
        if level == "schema":
            name = _NOT_IN_A_NAME.sub("_", str(schema.get("title") or "reply")).strip("_")[:64] or "reply"
            strict = {"strict": True} if is_strict(schema) else {}
            body["response_format"] = {"type": "json_schema", "json_schema": {"name": name, "schema": schema, **strict}}
        else:
            messages = _with_schema(messages, schema)
        if level == "json":
            body["response_format"] = {"type": "json_object"}
    body["messages"] = list(messages)
    return body


def _with_schema(messages: tuple[Message, ...], schema: Json) -> tuple[Message, ...]:
    """Write the schema into the system turn, unless a turn shows it: where it is not sent, the model must read it."""
    if any("<output_schema>" in str(turn["content"]) for turn in messages):
        return messages
    shown = (
        f"<output_schema>{value_text(schema)}</output_schema>\n"
        "Reply with one JSON value that satisfies the schema, and nothing else."
    )
    first = messages[0]
    if first["role"] == "system" and isinstance(first["content"], str):
        return (message("system", f"{first['content']}\n{shown}"), *messages[1:])
    return (message("system", shown), *messages)


def is_strict(schema: Json) -> bool:
    """Whether a schema lies in the strict subset: every object in it is closed and requires all its fields."""
    if not is_object(schema) or schema.get("type") != "object" or "anyOf" in schema:
        return False
    properties = 0
    pending: list[tuple[Any, int]] = [(schema, 0)]
    while pending:
        part, depth = pending.pop()
        if not is_object(part) or depth > _DEEPEST_STRICT or not part.keys() <= _STRICT_KEYWORDS:
            return False
        if "$ref" in part and len(part) > 1:
            return False
        if "properties" in part or part.get("type") == "object":
            named = part.get("properties", {})
            if part.get("additionalProperties") is not False or set(part.get("required", ())) != set(named):
                return False
            properties += len(named)
        pending.extend((inner, depth + deeper) for inner, deeper in _inside(part))
    return properties <= _MOST_STRICT_PROPERTIES


def _inside(part: Mapping[str, Any]) -> Iterator[tuple[Any, int]]:
    """Yield the schemas inside a schema, and how much deeper their values nest."""
    yield from ((inner, 1) for inner in part.get("properties", {}).values())
    yield from ((inner, 0) for inner in part.get("$defs", {}).values())
    yield from ((inner, 0) for inner in part.get("anyOf", ()))
    if "items" in part:
        yield part["items"], 1


def reply_of(response: Json, request: LMRequest, headers: Mapping[str, str]) -> LMReply | ModelError:
    """Return the first choice of a chat completion as a reply; the error where there is none."""
    choices = response.get("choices") if is_object(response) else None
    choice = choices[0] if is_array(choices) and choices else None
    if not is_object(response) or not is_object(choice) or not is_object(choice.get("message")):
        unreadable = not is_object(response)
        reason = "not_json" if unreadable else "empty"
        return BadReplyError("the provider answered without any choice", reason=reason, status=200)
    answer = choice["message"]
    specific: Json = answer.get("provider_specific_fields")
    refusal = answer.get("refusal") or (specific.get("refusal") if is_object(specific) else None)
    refusal = refusal if isinstance(refusal, str) else ""
    content, reasoning = answer.get("content"), answer.get("reasoning_content") or answer.get("reasoning")
    parts = content if is_array(content) else []
    text = content if isinstance(content, str) else "".join(str(part.get("text", "")) for part in parts)
    request_id = headers.get("x-request-id") or headers.get("request-id") or response.get("id")
    return LMReply(
        refusal or text,
        tool_calls=tuple(answer.get("tool_calls") or ()),
        reasoning=reasoning if isinstance(reasoning, str) else None,
        finish_reason="refusal" if refusal else choice.get("finish_reason"),
        usage=_usage(response.get("usage"), request, refusal or text),
        model=request.model,
        request_id=None if request_id is None else str(request_id),
    )


def _usage(usage: Json, request: LMRequest, text: str) -> Usage:
    """Return the tokens that the provider counted, else an estimate."""
    prompt, completion = _count(usage, "prompt_tokens"), _count(usage, "completion_tokens")
    if not prompt and not completion:
        prompt, completion = estimate_tokens(request.messages), estimate_text(len(text))
        return Usage(prompt_tokens=prompt, completion_tokens=completion, estimated=True)
    cached = _count(usage.get("prompt_tokens_details"), "cached_tokens")
    reasoning = _count(usage.get("completion_tokens_details"), "reasoning_tokens")
    return Usage(prompt_tokens=prompt, completion_tokens=completion, cached_tokens=cached, reasoning_tokens=reasoning)


def _count(counts: Json, name: str) -> int:
    """Return a number of tokens, 0 where it is missing."""
    count = counts.get(name) if is_object(counts) else None
    return count if isinstance(count, int) and count > 0 else 0


async def _content(response: ClientResponse) -> bytes | None:
    """Read a body, of a failure the first 32 MiB at most; None for a longer body of a success."""
    chunks: list[bytes] = []
    size = 0
    async for chunk in response.content.iter_any():
        chunks.append(chunk)
        size += len(chunk)
        if size > _MOST_BODY:
            response.close()
            return b"".join(chunks)[:_MOST_BODY] if response.status >= 300 else None
    return b"".join(chunks)


def _is_plain_and_public(url: str) -> bool:
    """Whether an address is http at a host outside of private networks."""
    import ipaddress

    parts = urlsplit(url)
    host = parts.hostname or ""
    if parts.scheme != "http" or ("." not in host.strip("[]") and ":" not in host):
        return False
    try:
        return ipaddress.ip_address(host).is_global
    except ValueError:
        return not host.endswith((".local", ".internal", ".localhost", ".test"))


@cache
def _proxy(url: str) -> str | None:
    """Return the proxy for an address, by the usual environment variables as they are at the first request."""
    from urllib.request import getproxies, proxy_bypass

    parts = urlsplit(url)
    return None if proxy_bypass(parts.hostname or "") else getproxies().get(parts.scheme)


async def _roots(url: str) -> ssl.SSLContext | bool:
    """Return the trusted roots for an https address; they are read once, in a thread, since that takes a while."""
    if not url.startswith("https:"):
        return True
    return _context() if _context.cache_info().currsize else await aio.to_thread(_context)


@cache
def _context() -> ssl.SSLContext:
    """Read certifi's roots, or those of SSL_CERT_FILE."""
    import ssl

    import certifi

    return ssl.create_default_context(cafile=os.environ.get("SSL_CERT_FILE") or certifi.where())


class _Connections:
    """The session of one loop, and the adapters that use it."""

    def __init__(self, session: ClientSession) -> None:
        self.session = session
        self.users: WeakSet[DirectAdapter] = WeakSet()
        self.ending: AsyncGenerator[None] | None = None


_OPENING: Final = threading.Lock()
_BY_LOOP: Final[dict[asyncio.AbstractEventLoop, _Connections]] = {}


async def _session(user: DirectAdapter) -> ClientSession:
    """Return the session of the running loop; it is closed when the loop ends, or when its last user leaves."""
    loop = asyncio.get_running_loop()
    with _OPENING:
        held = _BY_LOOP.get(loop)
        known = held is not None
        if held is None:
            for closed in [other for other in _BY_LOOP if other.is_closed()]:
                aio.drive(_BY_LOOP.pop(closed).session.close())  # nothing is left to wait for
            held = _BY_LOOP[loop] = _Connections(_new_session())
        held.users.add(user)
    if not known:
        held.ending = _until_the_loop_ends(loop, held)
        await anext(held.ending)  # from here on the loop knows the generator, and closes it at its end
    return held.session


def _new_session() -> ClientSession:
    """Open a session that adds nothing to a request."""
    import aiohttp

    try:
        import resource

        most = max(100, resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 2)
    except ImportError:  # Windows
        most = 1_000
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=most),
        timeout=aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT_S),
        cookie_jar=aiohttp.DummyCookieJar(),
    )


async def _until_the_loop_ends(loop: asyncio.AbstractEventLoop, held: _Connections) -> AsyncGenerator[None]:
    """Wait to be closed, by `_leave` or by the end of the loop; then close the connections."""
    try:
        yield
    finally:
        with _OPENING:
            if _BY_LOOP.get(loop) is held:
                del _BY_LOOP[loop]
        await held.session.close()


async def _leave(user: DirectAdapter) -> None:
    """Close the connections of the running loop, unless other adapters use them."""
    held = _BY_LOOP.get(asyncio.get_running_loop())
    if held is not None:
        held.users.discard(user)
        if not held.users and held.ending is not None:
            await held.ending.aclose()


@atexit.register
def _close_at_exit() -> None:
    """Close what loops that were never ended still hold."""
    for loop, held in list(_BY_LOOP.items()):
        if loop.is_closed():
            aio.drive(held.session.close())  # nothing is left to wait for
        elif not loop.is_running():
            loop.run_until_complete(held.session.close())
