"""The direct adapter: chat completions over aiohttp, for OpenAI itself and for every server that is compatible with it.

One session per event loop; no redirects, no `.netrc`, nothing of the environment but proxies and roots of trust.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Final
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

from .chat_completions import PerLoop, chat_body, http_error, refuse_trio, reply_of, reply_or_raise, with_hints
from .litellm_adapter import Price, counted_tokens, list_price
from .prompt import json_text
from .records import LMReply, LMRequest, Message
from .settings import Secrets, Settings

if TYPE_CHECKING:
    import ssl

    from aiohttp import ClientSession

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
        if self._base is None and (missing := self._secrets.missing()):
            raise missing
        if self._base is None and "top_k" in request.params:
            raise RequestError("this model does not take top_k; leave it out of the parameters.", sent=False)

    async def send(self, request: LMRequest) -> LMReply:
        """Send one request."""
        return reply_or_raise(await self._exchanged(request))

    async def price(self) -> Price | None:
        """Return the list price; the price of a server of the user's own is not known."""
        return await aio.to_thread(list_price, self._settings.model) if self._base is None else None

    async def count_tokens(self, messages: Sequence[Message]) -> int | None:
        """Count with OpenAI's tokenizer, which litellm carries; None for other servers."""
        return await counted_tokens(self._settings.model, messages) if self._base is None else None

    async def aclose(self) -> None:
        """Close the connections of the running loop, unless another model uses them."""
        _, users = await _SESSIONS.get()
        users.discard(self)
        if not users:
            await _SESSIONS.aclose()

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
        if not _roots.cache_info().currsize:
            await aio.to_thread(_roots)  # that takes a while
        session, users = await _SESSIONS.get()
        users.add(self)
        content = bytearray()
        try:
            async with session.post(
                self._url,
                data=json_text(body).encode(),
                headers=headers,
                allow_redirects=False,
                proxy=_proxy(self._url),
            ) as response:
                status, received = response.status, {name.lower(): text for name, text in response.headers.items()}
                async for chunk in response.content.iter_any():
                    content += chunk
                    if len(content) > _MOST_BODY:
                        break
        except aiohttp.ConnectionTimeoutError:
            return UnavailableError(f"no connection within {_CONNECT_S:g} s")
        except aiohttp.ServerTimeoutError:
            return ModelTimeout("the connection brought no answer in time")
        except (aiohttp.ClientError, OSError) as error:
            return UnavailableError(self._secrets.scrubbed(f"{type(error).__name__}: {error}"))
        if status < 300 and len(content) > _MOST_BODY:
            return BadReplyError("the reply is longer than 32 MiB", reason="not_json", status=status)
        try:
            if status < 300:
                return reply_of(parse_json(bytes(content)), request, received)
        except ValueError:
            pass
        text = self._secrets.scrubbed(content.decode(errors="replace"))
        error = http_error(status, received, text)
        return with_hints(error, self._base, asked_for_schema="response_format" in body)


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


@cache
def _roots() -> ssl.SSLContext:
    """Read the trusted roots: certifi's, or those of SSL_CERT_FILE."""
    import ssl

    import certifi

    return ssl.create_default_context(cafile=os.environ.get("SSL_CERT_FILE") or certifi.where())


def _opened() -> tuple[ClientSession, WeakSet[DirectAdapter]]:
    """Open a session that adds nothing to a request; with it stand the adapters that use it."""
    import aiohttp

    try:
        import resource

        most = max(100, resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 2)
    except ImportError:  # Windows
        most = 1_000
    session = aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=most, ssl=_roots()),
        timeout=aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT_S),
        cookie_jar=aiohttp.DummyCookieJar(),
    )
    return session, WeakSet()


async def _close(_loop: object, held: tuple[ClientSession, WeakSet[DirectAdapter]]) -> None:
    """Close a session."""
    await held[0].close()


_SESSIONS: Final = PerLoop(_opened, _close)
