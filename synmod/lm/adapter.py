"""Adapters: what really talks to a model. One async method; every hard thing around it is the layers' work."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Protocol, runtime_checkable

from synmod.lm.records import LMReply, LMRequest

__all__ = ["Adapter"]


@runtime_checkable
class Adapter(Protocol):
    """A provider of one's own: hand it to `LanguageModel(..., adapter=it)` and it gets all layers.

    Attributes:
        name: What the adapter is called.
        version: Changes when its replies would.

    What it may have besides: `check(request)`, a plain function that refuses at once; `async prepare(request)`, for
    what it must load first; `reasons(request)`, a plain function: whether the model reasons natively on a request and
    the reply will hold it; `async aclose()`.

    Source: httpx transports.
    """

    @property
    def name(self) -> str: ...

    @property
    def version(self) -> str | int: ...

    def send(self, request: LMRequest, /) -> Awaitable[LMReply] | LMReply:
        """Send one request and give its reply; raise a `ModelError` for what the provider refuses.

        Write it as `async def`. A plain function may give the reply itself where nothing is to be waited for.
        """
        ...
