"""What all doubles share: a LanguageModel whose adapter answers from items instead of a provider."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from synmod.data import dump_json
from synmod.errors import ConfigError
from synmod.leaves import aio
from synmod.leaves.frozen import is_array
from synmod.lm import LanguageModel, LMReply, LMRequest, estimate_text, estimate_tokens
from synmod.scope import Usage

__all__ = ["Double", "reply_of"]


class DoubleAdapter:
    """An adapter that answers with what a function gives for a request."""

    __slots__ = ("answer", "latency_s", "name", "requests", "version")

    def __init__(self, name: str, answer: Callable[[LMRequest], Any | Awaitable[Any]], latency_s: float) -> None:
        self.name = name
        self.version = 1
        self.answer = answer
        self.latency_s = latency_s
        self.requests: list[LMRequest] = []

    def send(self, request: LMRequest) -> Awaitable[LMReply] | LMReply:
        """Answer one request, at once where nothing waits."""
        self.requests.append(request)
        if self.latency_s:
            return self._later(request)
        item = self.answer(request)
        return self._awaited(item, request) if hasattr(item, "__await__") else reply_of(item, request)

    async def _later(self, request: LMRequest) -> LMReply:
        """Answer after the latency."""
        await aio.sleep(self.latency_s)
        item = self.answer(request)
        return reply_of(await item if hasattr(item, "__await__") else item, request)

    async def _awaited(self, item: Awaitable[Any], request: LMRequest) -> LMReply:
        """Answer with what an async function gives."""
        return reply_of(await item, request)


class Double(LanguageModel):
    """A LanguageModel with only the adapter replaced: reading, repair, retries, counters and events are real."""

    __slots__ = ()

    def __init__(
        self,
        answer: Callable[[LMRequest], Any | Awaitable[Any]],
        model: str,
        latency_s: float,
        backoff: bool,
        lm: dict[str, Any],
    ) -> None:
        name = model.partition("/")[2]
        super().__init__(model, adapter=DoubleAdapter(name, answer, latency_s), **lm)
        self.backoff = backoff

    @property
    def requests(self) -> list[LMRequest]:
        """The requests that reached the adapter, in order."""
        assert isinstance(self.adapter, DoubleAdapter)
        return self.adapter.requests


def reply_of(item: Any, request: LMRequest) -> LMReply:
    """Turn an item into a reply: text as it is, a value as its JSON text, a reply as it is; an exception is raised."""
    if isinstance(item, LMReply):
        return item
    if isinstance(item, BaseException):
        raise item
    first = item[0] if is_array(item) and item else item
    if type(first).__name__ == "ToolCall":
        raise ConfigError("ToolCall: a double cannot call tools yet; let it reply with text, JSON or a data model.")
    text = item if isinstance(item, str) else dump_json(item)
    usage = Usage(
        prompt_tokens=estimate_tokens(request.messages),
        completion_tokens=estimate_text(len(text)),
        estimated=True,
    )
    return LMReply(text, usage=usage)
