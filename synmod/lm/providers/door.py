"""The one door to litellm: imported at the first request that needs it, in a worker thread, once.

The import takes seconds and would fetch prices from the network and read a `.env` of the project around it, unless the
environment says otherwise; so that is said here first. Nothing else of litellm's globals is touched but its hints on
standard output and its handlers on standard error.
"""

from __future__ import annotations

import logging
import os
import ssl
import threading
import warnings
from collections.abc import Generator
from contextlib import contextmanager
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from types import ModuleType
from typing import Any, Final

from synmod.errors import UnavailableError
from synmod.leaves import aio

__all__ = ["open_door", "quiet", "tls"]

MALWARE: Final = frozenset({"1.82.7", "1.82.8"})
"""Releases that were published with stolen credentials."""

_INSTALL: Final = 'install it: pip install "litellm>=1.84,<2"'

_SET_BEFORE_IMPORT: Final = {"LITELLM_LOCAL_MODEL_COST_MAP": "True", "LITELLM_MODE": "PRODUCTION"}
_LOGGERS: Final = ("LiteLLM", "LiteLLM Router", "LiteLLM Proxy")


class _Door:
    """What litellm is, once it is there; one thread opens it, and everybody waits for that."""

    __slots__ = ("_failure", "_lock", "_opening", "litellm")

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._opening: aio.Signal | None = None
        self._failure = ""
        self.litellm: ModuleType | None = None

    async def open(self) -> Any:
        """Wait until litellm is there; a cancelled waiter leaves the import running."""
        if self.litellm is None:
            await self._begin().wait()
        if self.litellm is None:
            raise UnavailableError(self._failure)
        return self.litellm

    def _begin(self) -> aio.Signal:
        """Start the import, unless it is under way; a failed one is tried again, since it may have been mended."""
        with self._lock:
            if self._opening is None or (self._opening.is_set and self.litellm is None):
                self._opening = aio.Signal()
                threading.Thread(target=self._import, args=(self._opening,), name="litellm", daemon=True).start()
            return self._opening

    def _import(self, opened: aio.Signal) -> None:
        """Import litellm in this thread."""
        try:
            self._failure = _refusal()
            if not self._failure:
                self.litellm = _imported()
        except ImportError as error:
            self._failure = f"litellm cannot be imported ({error}); {_INSTALL}."
        finally:
            self._failure = self._failure or "litellm cannot be imported; see the traceback of its thread."
            opened.set()


_DOOR: Final = _Door()

open_door = _DOOR.open


def _refusal() -> str:
    """Say why litellm is not even imported, or ""."""
    try:
        found = version("litellm")
    except PackageNotFoundError:
        return f"litellm is not installed, and this model needs it; {_INSTALL}."
    if found in MALWARE:
        return (
            f"litellm {found} carries malware and is refused; change the credentials of this machine, and {_INSTALL}."
        )
    return ""


def _imported() -> ModuleType:
    """Import litellm and quieten it."""
    for name, value in _SET_BEFORE_IMPORT.items():
        os.environ.setdefault(name, value)
    with quiet():
        import litellm

    litellm.suppress_debug_info = True
    for name in _LOGGERS:
        logger = logging.getLogger(name)
        for handler in list(logger.handlers):
            if hasattr(handler, "stream"):
                logger.removeHandler(handler)
        logger.addHandler(logging.NullHandler())
    tls()
    return litellm


@cache
def tls() -> ssl.SSLContext:
    """The trusted roots: certifi's, or those of SSL_CERT_FILE. Reading them takes too long for a loop."""
    import httpx

    return httpx.create_ssl_context()


class _Quiet:
    """The filters that ignore warnings of litellm's and pydantic's modules, there while anybody needs them.

    litellm makes its coroutine in a worker thread; a request that is cancelled meanwhile leaves one that nobody awaits.
    """

    __slots__ = ("_filters", "_lock", "_users")

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._users = 0
        self._filters: list[Any] = []

    def enter(self) -> None:
        """Put the filters in front, unless they are there; a test may have put others in their place meanwhile."""
        with self._lock:
            self._users += 1
            if not self._filters or any(one not in warnings.filters for one in self._filters):
                warnings.filterwarnings("ignore", module=r"(litellm|pydantic)(\.|$)")
                warnings.filterwarnings("ignore", message=r"coroutine '\w*\.?acompletion' was never awaited")
                self._filters = list(warnings.filters[:2])

    def leave(self) -> None:
        """Take the filters away with their last user."""
        with self._lock:
            self._users -= 1
            if not self._users:
                for one in self._filters:
                    if one in warnings.filters:
                        warnings.filters.remove(one)  # type: ignore[attr-defined]  # a list, whatever its stub says


_QUIET: Final = _Quiet()


@contextmanager
def quiet() -> Generator[None]:
    """Ignore the warnings of litellm's and pydantic's modules in a block, whatever other tasks and threads do."""
    _QUIET.enter()
    try:
        yield
    finally:
        _QUIET.leave()
