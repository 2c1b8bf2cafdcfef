"""The cache of a model: what makes two requests equal, replies as entries, and equal calls as one."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Hashable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

from synmod.cache import Cache, key_of
from synmod.data import ToolCall
from synmod.errors import ConfigError, ModelError
from synmod.leaves import FrozenDict, Json, dump_json, fill, frozen_dict, frozen_list
from synmod.scope import Usage, is_of_block_around

from .records import Adapter, EmbeddingReply, LMReply, LMRequest, Message, message

if TYPE_CHECKING:
    from .call import ModelCall
    from .model import SharedModel

R = TypeVar("R", LMReply, EmbeddingReply)


def request_content(request: LMRequest, adapter: Adapter) -> Json:
    """Return as JSON what the reply to a request depends on, wherever it is sent.

    No key, header, address, timeout or limit is part of it. `key_of(request_content(...))` is the key of a cassette;
    `request_key` adds the endpoint.

    Args:
        request: The request.
        adapter: What sends it: name and version count.

    Returns:
        A JSON object of what is not None.

    Example:
        >>> from synmod.lm import embedded_adapter, turns
        >>> request_content(LMRequest("embedded/nearest", turns("Hi"), sample=2), embedded_adapter("nearest"))["sample"]
        2

    Source: DSPy's cache key; differs: the schema, the sample and the adapter's version count.
    """
    content = {
        "adapter": frozen_list([adapter.name, adapter.version]),
        "model": request.model,
        "messages": frozen_list(request.messages),
        "schema": request.schema,
        "structured": request.structured,
        "reasoning_field": request.reasoning_field,
        "tools": None if request.tools is None else frozen_list(request.tools),
        "tool_choice": request.tool_choice,
        "params": request.params or None,
        "sample": request.sample,
    }
    return frozen_dict({name: value for name, value in content.items() if value is not None})


def request_key(model: SharedModel, request: LMRequest) -> str:
    """Return the key of a request in the cache of a model: its content, the endpoint and what `extra_body` adds.

    Args:
        model: The model that answers.
        request: The request.

    Returns:
        A SHA-256 in hex. It changes with whatever could change the reply.

    Example:
        >>> lm = sm.LanguageModel("embedded/nearest")
        >>> request_key(lm, LMRequest(lm.model, ())) == request_key(lm, LMRequest(lm.model, (), sample=1))
        False

    Source: content addressing.
    """
    settings = model.settings
    return key_of([request_content(request, model.adapter), settings.api_base, settings.extra_body])


async def remembered(
    call: ModelCall, request: LMRequest, work: Callable[[ModelCall, LMRequest], Awaitable[LMReply]]
) -> LMReply:
    """Return the reply that the cache of the model holds, or that an equal call under way gets; else do the work.

    A reply is kept before it is returned, unless it was cut off or quotes a secret. A leader hands over to a call that
    waits if its time or budget is over, or a stream of it broke off; any other failure reaches each of them.

    Args:
        call: The call.
        request: Its request.
        work: Gets a valid reply.

    Raises:
        ModelError: What the work raised, here or in an equal call.
    """
    cache, key = cast("Cache", call.model.cache), request_key(call.model, request)
    entry = await cache.find(key)
    if entry is not None:
        return _reply_of(entry, call)
    await call.prepare(request)

    async def ask() -> LMReply:
        entry = await cache.find(key)  # an equal call may just have ended
        if entry is not None:
            return _reply_of(entry, call)
        reply = await work(call, request)
        entry = _entry_of(reply)
        text = dump_json(entry)
        if reply.finish_reason != "length" and call.model.secrets.scrubbed(text) == text:
            await cache.keep(key, entry)
        return reply

    return await once(call, key, ask)


async def once(call: ModelCall, key: Hashable, ask: Callable[[], Awaitable[R]]) -> R:
    """Return what `ask` returns: asked here, or by an equal call under way through the same cache, which pays for it.

    Args:
        call: The call.
        key: What makes calls equal.
        ask: Gets the reply, and keeps it.

    Raises:
        ModelError: What asking raised, here or in the equal call.
    """
    is_own = False

    async def lead() -> R:
        nonlocal is_own
        is_own = True
        try:
            return await ask()
        except ModelError as error:
            call.complete(error)  # before others get it: this call knows the secrets
            raise

    def hands_over(error: Exception) -> bool:
        return call.over or call.has_begun or isinstance(error, ConfigError) or is_of_block_around(error)

    reply: R = await call.bounded(cast("Cache", call.model.cache).flights.run(key, lead, hands_over))
    if is_own:
        return reply
    unpaid: dict[str, Any] = {"cached": True, "usage": Usage(), "elapsed_s": call.elapsed_s}
    if isinstance(reply, LMReply):
        unpaid |= {"attempts": (), "first_chunk_s": None}
    return replace(reply, **unpaid)


_KEPT: Final = ("text", "json", "message", "tool_calls", "reasoning", "finish_reason", "model", "request_id")
_PLAIN: Final = LMReply()


def _entry_of(reply: LMReply) -> Json:
    """Return what a cache keeps of a reply: what is not as usual."""
    entry = {name: value for name in _KEPT if (value := getattr(reply, name)) != getattr(_PLAIN, name)}
    if reply.message == message("assistant", reply.text):
        del entry["message"]
    if reply.tool_calls:
        entry["tool_calls"] = list(reply.tool_calls)
    return entry


def _reply_of(entry: FrozenDict, call: ModelCall) -> LMReply:
    """Return the reply of an entry, as one that nobody paid for."""
    kept: dict[str, Any] = {name: value for name, value in entry.items() if name in _KEPT}
    turn = message("assistant", entry.get("text", ""))
    if "message" in entry:
        turn = Message.__new__(Message)
        fill(turn, entry["message"])
    kept["message"] = turn
    kept["tool_calls"] = tuple([ToolCall.model_validate(each) for each in entry.get("tool_calls", ())])
    return LMReply(**kept, cached=True, elapsed_s=call.elapsed_s)
