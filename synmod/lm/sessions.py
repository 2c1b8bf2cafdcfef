"""Sessions: what an event loop holds for the requests of its models, opened when first needed and closed with the loop.

No redirects, no `.netrc`, nothing from the environment but proxies and trusted roots.
"""

from __future__ import annotations

import asyncio
import atexit
import os
import ssl
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterable
from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING, Any, Final, Generic, TypeAlias, TypeVar
from urllib.parse import urlsplit
from weakref import WeakSet

from synmod.leaves import aio

if TYPE_CHECKING:
    from aiohttp import ClientSession

T = TypeVar("T")
Loop: TypeAlias = asyncio.AbstractEventLoop

CONNECT_S: Final = 10.0
"""How long a connection may take to be made."""


class PerLoop(Generic[T]):
    """A resource per event loop of asyncio: opened when first needed, closed when the loop ends.

    Args:
        opens: Opens a resource.
        close: Closes it, in its loop.
        drop: Frees it where its loop was closed before, or belongs to the parent of this forked process.
    """

    def __init__(
        self,
        opens: Callable[[], T],
        close: Callable[[Loop, T], Coroutine[Any, Any, None]],
        drop: Callable[[T], object] = lambda _: None,
    ) -> None:
        self._open = opens
        self._close = close
        self._drop = drop
        self._resources: dict[Loop, tuple[T, AsyncGenerator[None]]] = {}
        atexit.register(self._close_all)
        aio.in_forked_child(lambda: self._abandon(self._resources))

    async def get(self) -> T:
        """Return the resource of the running loop."""
        loop = asyncio.get_running_loop()
        if loop not in self._resources:
            self._abandon([loop for loop in list(self._resources) if loop.is_closed()])
            resource = self._open()
            ending = self._until_the_loop_ends(loop)
            self._resources[loop] = resource, ending
            await anext(ending)  # the loop now tracks the generator, and closes it when it ends
        return self._resources[loop][0]

    def here(self) -> T | None:
        """Return the resource of the running loop; None without one."""
        entry = self._resources.get(asyncio.get_running_loop())
        return entry and entry[0]

    async def aclose(self) -> None:
        """Close the resource of the running loop."""
        if entry := self._resources.get(asyncio.get_running_loop()):
            await entry[1].aclose()

    async def _until_the_loop_ends(self, loop: Loop) -> AsyncGenerator[None]:
        """Wait to be closed, by `aclose` or by the end of the loop."""
        try:
            yield
        finally:
            if entry := self._resources.pop(loop, None):
                await self._close(loop, entry[0])

    def _abandon(self, loops: Iterable[Loop]) -> None:
        """Drop the resources of loops that cannot close them."""
        for loop in list(loops):
            if entry := self._resources.pop(loop, None):  # else another thread has dropped it
                self._drop(entry[0])
                aio.drive(entry[1].aclose())  # ends at once, since nothing is held

    def _close_all(self) -> None:
        """Close the resources of the loops that do not run, at the end of the process."""
        self._abandon([loop for loop in list(self._resources) if loop.is_closed()])
        for loop, (_, ending) in list(self._resources.items()):
            if not loop.is_running():
                loop.run_until_complete(ending.aclose())


# -- sessions of aiohttp -----------------------------------------------------------------------------------------------


@cache
def proxy_for(url: str) -> str | None:
    """Return the proxy for an address, from the usual environment variables as they are at the first request."""
    from urllib.request import getproxies, proxy_bypass

    parts = urlsplit(url)
    return None if proxy_bypass(parts.hostname or "") else getproxies().get(parts.scheme)


@cache
def load_roots() -> ssl.SSLContext:
    """Import aiohttp and read the trusted roots, certifi's or those of SSL_CERT_FILE; both take a while.

    A thread that has used OpenSSL holds a lock of it while it ends. That of this call ends before the call returns, not
    at some moment after `sm.run`, when a process may fork: the child could not end, since nobody would free its lock.
    """
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(1) as thread:
        return thread.submit(_read_roots).result()


def _read_roots() -> ssl.SSLContext:
    """Read the trusted roots in this thread."""
    import aiohttp  # noqa: F401  # pyright: ignore[reportUnusedImport]  # so that later imports are immediate
    import certifi

    return ssl.create_default_context(cafile=os.environ.get("SSL_CERT_FILE") or certifi.where())


def _open_session() -> tuple[ClientSession, WeakSet[Any]]:
    """Open a session that adds nothing to a request; return it with the set of adapters that use it."""
    import aiohttp

    try:
        import resource

        most = max(100, resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 2)
    except ImportError:  # Windows
        most = 1_000
    session = aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=most, ssl=load_roots()),
        timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_S),
        cookie_jar=aiohttp.DummyCookieJar(),
    )
    return session, WeakSet()


def _drop_session(resource: tuple[ClientSession, WeakSet[Any]]) -> None:
    """Close the sockets of a session one by one.

    Neither aiohttp nor asyncio has a public way to do so without their loop. The selector, which a forked child shares
    with its parent, is not touched.
    """
    session = resource[0]
    connector: Any = session.connector
    idle = [protocol for connections in connector._conns.values() for protocol, *_ in connections]
    for protocol in (*idle, *connector._acquired):
        tls: Any = getattr(protocol.transport, "_ssl_protocol", None)
        transport: Any = protocol.transport if tls is None else tls._transport
        close = getattr(transport, "_call_connection_lost", None)
        if close is not None:  # uvloop closes its sockets with the loop
            with suppress(RuntimeError):  # a closed loop schedules no callbacks
                close(None)
    connector._conns.clear()
    connector._acquired.clear()
    connector._closed = True
    session.detach()


SESSIONS: Final = PerLoop(_open_session, lambda _, resource: resource[0].close(), _drop_session)
