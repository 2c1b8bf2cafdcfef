"""Who may enter: the name under which the server was reached, the page that sent the request, and the token."""

from __future__ import annotations

import hmac
import ipaddress
import os
import re
from collections.abc import Collection, Mapping
from functools import lru_cache
from typing import Any, Final

from synmod.errors import ArgumentError

from .refusals import Refusal

_HOST: Final = re.compile(r"(?:\[([0-9A-Fa-f:.]+)\]|([A-Za-z0-9._-]+))(?::[0-9]*)?")
_OPEN: Final = ("/", "/health", "/ready")
"""Paths that need no token."""


class Doors:
    """The checks before a request is read.

    Args:
        token: The token that requests must have; None for that of `SYNMOD_TOKEN`, or without one for requests on a
            loopback address alone; False for no token anywhere.
        hosts: The names, beside those of the loopback, under which the server may be reached.
        cors: The origins, beside its own, whose pages may call it.

    Raises:
        ArgumentError: The token is empty, or not a text; hosts or origins are one text instead of a list; or a host is
            neither a name nor an address.
    """

    def __init__(self, token: str | bool | None, hosts: Collection[str], cors: Collection[str]) -> None:
        for name, values in {"hosts": hosts, "cors": cors}.items():
            if isinstance(values, str):
                raise ArgumentError(f"serve: {name} is one text; write a list: {name}=[{values!r}].")
        if token is None:
            token = os.environ.get("SYNMOD_TOKEN") or None
        if token is not None and token is not False and not (isinstance(token, str) and token.strip()):
            raise ArgumentError("serve: token must be a text that is not empty, False for none, or None.")
        self._token = token.encode() if isinstance(token, str) else None
        self.is_local = token is None
        names = [f"[{host}]" if host.count(":") > 1 and "[" not in host else host for host in hosts]
        self._hosts = frozenset(map(_name_of, names))
        if "" in self._hosts:
            raise ArgumentError(f"serve: hosts must be names or addresses, without patterns, got {[*hosts]!r:.100}.")
        self._origins = frozenset(cors)

    def check(self, scope: Mapping[str, Any], path: str, headers: Mapping[str, str]) -> None:
        """Raise Refusal for a request that may not enter: 401, 403 or 421."""
        host = _name_of(headers.get("host", ""))
        if not (is_loopback(host) or host in self._hosts):
            raise Refusal(421, "The server is not known under this name; allow it with hosts= or --allow-host.")
        if self.is_local and not is_loopback(str((scope.get("server") or [""])[0])):
            raise Refusal(403, "Without a token the server answers on loopback addresses alone; give it one.")
        origin = headers.get("origin")
        if origin is not None and origin not in self._origins and origin.partition("://")[2] != headers.get("host"):
            raise Refusal(403, "Pages of this origin may not call the server; allow it with cors= or --cors.")
        if self._token is not None and path not in _OPEN:
            kind, _, sent = headers.get("authorization", "").partition(" ")
            if not hmac.compare_digest(sent.strip().encode("latin-1"), self._token) or kind.lower() != "bearer":
                raise Refusal(401, "The request has no valid token.", {"www-authenticate": 'Bearer realm="synmod"'})


def _name_of(host: str) -> str:
    """Return a host without its port, in lower case; "" for something else."""
    match = _HOST.fullmatch(host.strip())
    return "" if match is None else (match[1] or match[2]).lower()


@lru_cache(maxsize=256)  # two for each request
def is_loopback(host: str) -> bool:
    """Whether a name or address is that of this machine."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
