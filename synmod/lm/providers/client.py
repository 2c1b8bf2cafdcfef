"""A client of our own under litellm, one for each event loop, so that we know what is sent and what comes back.

litellm's client follows redirects, adds headers that the environment names, and forgets the status and the headers
of an answer that it could not read.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, Generator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final
from weakref import WeakKeyDictionary, WeakSet

from synmod.lm.providers.closing import close_leftovers
from synmod.lm.providers.door import tls
from synmod.lm.providers.errors import Heard
from synmod.scope import reset

__all__ = ["Exchange", "client_for", "exchanging", "leave_loop"]

_ORDINARY: Final = frozenset({
    "accept", "accept-encoding", "authorization", "connection", "content-length", "content-type", "host",
})  # fmt: skip


_LONGEST_BODY: Final = 20_000


class Exchange:
    """One request and its answer, as our client sees them.

    Attributes:
        key: What the Authorization header holds.
        headers: Further headers, of the caller.
        to_base: Whether it goes to a server of the caller's, which must not see what the environment holds.
        heard: Status and headers of the answer.
    """

    __slots__ = ("headers", "heard", "key", "to_base")

    def __init__(self, key: str, headers: Mapping[str, str], *, to_base: bool) -> None:
        self.key = key
        self.headers = headers
        self.to_base = to_base
        self.heard = Heard()


_EXCHANGE: Final[ContextVar[Exchange | None]] = ContextVar("synmod_lm_exchange", default=None)


@contextmanager
def exchanging(exchange: Exchange) -> Generator[None]:
    """Let the request that is sent in a block be this one."""
    token = _EXCHANGE.set(exchange)
    try:
        yield
    finally:
        reset(_EXCHANGE, token)


class _LoopClient:
    """The connections of one loop, and who uses them."""

    __slots__ = ("_by_base", "closing", "http", "users")

    def __init__(self) -> None:
        import httpx

        self.http = httpx.AsyncClient(
            follow_redirects=False,
            limits=httpx.Limits(max_connections=1000, max_keepalive_connections=100),
            verify=tls(),
            event_hooks={"request": [_send], "response": [_hear]},
        )
        self.users: WeakSet[object] = WeakSet()
        self.closing: AsyncGenerator[None, None] | None = None
        self._by_base: dict[str | None, Any] = {}

    def speaking_to(self, base: str | None) -> Any:
        """Give the client that litellm uses for an address."""
        if base not in self._by_base:
            import openai

            self._by_base[base] = openai.AsyncOpenAI(
                api_key="none", base_url=base, max_retries=0, http_client=self.http
            )
        return self._by_base[base]


_OPENING: Final = threading.Lock()
_BY_LOOP: Final[WeakKeyDictionary[asyncio.AbstractEventLoop, _LoopClient]] = WeakKeyDictionary()


async def client_for(user: object, base: str | None) -> Any:
    """Give the client of the running loop for an address; it is closed when the loop ends, or its last user leaves."""
    loop = asyncio.get_running_loop()
    with _OPENING:
        known = _BY_LOOP.get(loop)
        made = known or _LoopClient()
        if known is None:
            _forget_closed_loops()
            _BY_LOOP[loop] = made
        made.users.add(user)
    if known is None:
        made.closing = _until_the_loop_ends(made)
        await anext(made.closing)  # from here on the loop knows the generator, and closes it at its end
    return made.speaking_to(base)


def _forget_closed_loops() -> None:
    """Drop the clients of loops that were closed without shutting down their generators; the lock is held."""
    for loop in [loop for loop in _BY_LOOP if loop.is_closed()]:
        del _BY_LOOP[loop]


async def leave_loop(user: object) -> None:
    """Close the connections of the running loop, unless others use them."""
    known = _BY_LOOP.get(asyncio.get_running_loop())
    if known is None:
        await close_leftovers()
        return
    known.users.discard(user)
    if not known.users and known.closing is not None:
        await known.closing.aclose()


async def _until_the_loop_ends(made: _LoopClient) -> AsyncGenerator[None, None]:
    """Wait to be closed, by `leave_loop` or by the end of the loop; then close the connections."""
    try:
        yield
    finally:
        loop = asyncio.get_running_loop()
        with _OPENING:
            if _BY_LOOP.get(loop) is made:
                del _BY_LOOP[loop]
        await made.http.aclose()
        await close_leftovers()


async def _send(request: Any) -> None:
    """Put the headers of this exchange on a request; a server of the caller's sees nothing of the environment."""
    exchange = _EXCHANGE.get()
    if exchange is None:
        raise RuntimeError("a request without an exchange has no key of its own")
    if exchange.to_base:
        for name in set(request.headers) - _ORDINARY:
            # The SDK reads its own marks from the request again; they say nothing about the caller.
            if not name.startswith("x-stainless-"):
                del request.headers[name]
    request.headers["authorization"] = f"Bearer {exchange.key}"
    request.headers["user-agent"] = "synmod"
    request.headers.update(exchange.headers)


async def _hear(response: Any) -> None:
    """Keep the status and the headers of an answer, and the body of a failure, which litellm cuts down to a message."""
    exchange = _EXCHANGE.get()
    if exchange is None:
        return
    headers = {name.lower(): value for name, value in response.headers.items()}
    exchange.heard = Heard(response.status_code, headers)
    if response.status_code >= 400:
        await response.aread()
        exchange.heard = Heard(response.status_code, headers, response.text[:_LONGEST_BODY])
