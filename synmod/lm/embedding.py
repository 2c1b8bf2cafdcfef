"""EmbeddingModel: from texts to vectors, in batches, through the layers of every model call."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Final, cast

from synmod.cache import Cache, key_of
from synmod.errors import BadReplyError, ConfigError, DataError, ModelError
from synmod.leaves import Json, aio, check_seconds, checks_keywords, frozen_dict, is_array, is_object
from synmod.registry import register_own
from synmod.scope import NO_USAGE, Usage
from synmod.wires import an_object, count_of

from . import options, records
from .call import ModelCall, call_model, join_equal_call, send_with_retries
from .chat_completions import Endpoint
from .failures import message_in
from .limits import Limit
from .model import EmbeddedModels, SharedModel, model_of_kind, refuse_on_symbols


@register_own()
class EmbeddingModel(SharedModel):
    """An embedding model of any provider: from texts to vectors.

    Texts are sent in concurrent batches. Each batch is one model call: it has its own attempts and events, and counts
    as one call in budgets and counters.

    Args:
        model: `provider/name`, such as "openai/text-embedding-3-small"; "embedded/hash" needs no provider.
        api_key: As for `LanguageModel`.
        api_base: Address of an OpenAI-compatible server, `/v1` included.
        attempts: How many requests one batch may send in all, 1 to 100.
        timeout_s: Seconds for the whole call; None for no limit.
        batch_size: How many texts one request may hold.
        dimensions: The length of the vectors, if the model offers a choice.
        name: The name in a saved file; by default the model string.
        headers: Further HTTP headers, as for `LanguageModel`.
        price: (USD per million tokens, 0); None for the known list price.
        adapter: "direct", "litellm", or a provider of your own: an object with `name`, `version` and
            `async send(EmbeddingRequest) -> EmbeddingReply`.
        limit: As for `LanguageModel`.
        cache: As for `LanguageModel`; texts that it holds are not sent.

    Raises:
        ConfigError: An argument is wrong; names it.

    Example:
        >>> em = EmbeddingModel("embedded/hash")
        >>> reply = sm.run(em(["a red car", "a red cart", "the sea"]))
        >>> [len(vector) for vector in reply.vectors]
        [256, 256, 256]

    Source: OpenAI's embeddings, Synalinks' `EmbeddingModel`; differs: equal texts are sent once, one retry loop.
    """

    __slots__ = ()

    @checks_keywords
    def __init__(
        self,
        model: str,
        *,
        api_key: options.ApiKey | None = None,
        api_base: str | None = None,
        attempts: int = 3,
        timeout_s: float | None = 120,
        batch_size: int = 64,
        dimensions: int | None = None,
        name: str | None = None,
        headers: Mapping[str, str | options.Secret] | None = None,
        price: tuple[float, float] | None = None,
        adapter: records.Adapter | str | None = None,
        limit: Limit | int | None = None,
        cache: options.CacheGiven | None = None,
    ) -> None:
        api_key = options.hidden(api_key)
        settings = options.settings_for(locals())
        super().__init__(settings, EMBEDDINGS, EmbeddedModels.instance.embedding)

    def get_config(self) -> dict[str, Json]:
        """Return what a saved file holds: no key and no endpoint."""
        settings = self.settings
        names = ("model", "attempts", "timeout_s", "batch_size", "dimensions")
        own_name = {} if settings.name == settings.model else {"name": settings.name}
        return {name: getattr(settings, name) for name in names} | own_name

    async def __call__(self, texts: Iterable[str], *, timeout_s: float | None = None) -> records.EmbeddingReply:
        """Embed texts.

        Args:
            texts: The texts; equal ones are sent once.
            timeout_s: Seconds for this call, instead of the model's.

        Returns:
            One vector for each text, in order.

        Raises:
            DataError: `texts` is a str, or holds something other than a str; names the index.
            ConfigError: `timeout_s` is not a number of seconds, or a budget limits the cost of a model without a price.
            AuthError: No key, or one that is refused.
            RequestError: The provider refuses the request.
            ContextWindowError: A text is too long.
            RateLimitError, UnavailableError: The last attempt failed too.
            ModelTimeout: `timeout_s` is over.
            BadReplyError: The reply does not hold one vector for each text, all of one length.
            UnboundModelError: The model was loaded from a file, which holds no connection.
            BuildError: A module is being built or traced here, which must not cost tokens.
            DeadlineExceeded, BudgetExceeded: An enclosing `sm.deadline` or `sm.budget` ends the call.

        Example:
            >>> reply = sm.run(EmbeddingModel("embedded/hash")(["tea", "coffee", "tea"]))
            >>> reply.vectors[0] == reply.vectors[2]
            True
        """
        refuse_on_symbols(self.model)
        settings, texts = self.settings, _check_texts(texts)
        seconds = settings.timeout_s
        if timeout_s is not None:
            seconds = check_seconds(f"{self.model}: timeout_s", timeout_s, error=ConfigError)
        params = frozen_dict({} if settings.dimensions is None else {"dimensions": settings.dimensions})
        unique, size = list(dict.fromkeys(texts)), settings.batch_size
        batches = [tuple(unique[at : at + size]) for at in range(0, len(unique), size)]
        replies: dict[int, records.EmbeddingReply] = {}

        async def embed(number: int) -> None:
            request = records.EmbeddingRequest(self.model, batches[number], params)
            replies[number] = await call_model(ModelCall(self, seconds), request, _vectors_from_journal)

        async with aio.task_group() as group:
            for number in range(len(batches)):
                group.start_soon(embed, number)
        in_order = [replies[number] for number in range(len(batches))]
        vectors = [vector for reply in in_order for vector in reply.vectors]
        if len({*map(len, vectors)}) > 1:
            raise BadReplyError(f"{self.model}: the vectors of several batches differ in length", reason="schema")
        of_text = dict(zip(unique, vectors, strict=True))
        return records.EmbeddingReply(
            tuple([of_text[text] for text in texts]),
            sum((reply.usage for reply in in_order), NO_USAGE),
            bool(in_order) and all(reply.cached for reply in in_order),
            self.model,
            max((reply.elapsed_s for reply in in_order), default=0.0),
        )


def resolve_embedding_model(model: EmbeddingModel | str, where: str = "embedding_model") -> EmbeddingModel:
    """Return the model itself, or the one embedding model of this process that a string names.

    Args:
        model: A model, or a string such as "embedded/hash".
        where: The receiver, for the message.

    Raises:
        ConfigError: It is neither, or the string is not `provider/name`. Begins with `where`.

    Example:
        >>> resolve_embedding_model("embedded/hash") is resolve_embedding_model("embedded/hash")
        True

    Source: as `LanguageModel`.
    """
    return model_of_kind(EmbeddingModel, model, where)


def _check_texts(texts: Any) -> list[str]:
    """Return texts as a list.

    Raises:
        DataError: It is a single text, or holds something other than a str; names the index.
    """
    if isinstance(texts, str | bytes) or not isinstance(texts, Iterable):
        raise DataError(f"texts: got {type(cast('object', texts)).__name__}, wanted a list of texts: write [text].")
    items: list[Any] = list(cast("Iterable[Any]", texts))
    for index, text in enumerate(items):
        if not isinstance(text, str):
            raise DataError(f"texts[{index}]: got {type(text).__name__}, wanted a str.")
        try:
            text.encode()
        except UnicodeEncodeError:
            raise DataError(f"texts[{index}]: a lone surrogate, which no UTF-8 text can hold.") from None
    return items


async def _vectors_from_journal(call: ModelCall, request: records.EmbeddingRequest) -> records.EmbeddingReply:
    """Return the vectors of a batch that a durable block has recorded; else request them, and record them."""
    part = call.ambient.journal
    if part is None or not part.records_calls:
        return await _vectors_from_cache(call, request)
    content = key_of([_content(call, request), request.texts])
    async with part.record("embedding", call.path, request.model, content) as record:
        rows = None if record.value is None else [_vector(row) for row in record.value["vectors"]]
        if rows is not None and len(rows) == len(request.texts) and all(rows):
            record.accept()
            return records.EmbeddingReply(tuple(rows), cached=True, model=request.model, elapsed_s=call.elapsed_s)
        reply = await _vectors_from_cache(call, request)
        await record.keep({"vectors": [list(vector) for vector in reply.vectors]}, reply.usage)
        return reply


def _content(call: ModelCall, request: records.EmbeddingRequest) -> Json:
    """Return what a vector depends on beside its text."""
    adapter = call.model.adapter
    return ["embedding", adapter.name, adapter.version, request.model, call.model.settings.base, request.params]


async def _vectors_from_cache(call: ModelCall, request: records.EmbeddingRequest) -> records.EmbeddingReply:
    """Return a vector for each text of a batch, from the cache of the model or else from the provider."""
    if (cache := call.model.cache) is None:
        await call.prepare(request)
        return await _request_vectors(call, request)
    content = _content(call, request)
    keys = {text: key_of([content, text]) for text in request.texts}

    def complete(reply: records.EmbeddingReply, vectors: Mapping[str, tuple[float, ...]]) -> records.EmbeddingReply:
        return replace(reply, vectors=tuple([vectors[text] for text in request.texts]), elapsed_s=call.elapsed_s)

    async def request_missing() -> records.EmbeddingReply:
        vectors = await _find_vectors(cache, keys)  # again: an equal call may just have ended
        if not (missing := tuple([text for text in keys if text not in vectors])):
            return complete(unpaid, vectors)
        reply = await _request_vectors(call, replace(request, texts=missing))
        vectors |= zip(missing, reply.vectors, strict=True)
        for text in missing:
            await cache.keep(keys[text], {"vector": list(vectors[text])})
        return complete(reply, vectors)

    unpaid = records.EmbeddingReply((), cached=True, model=request.model)
    vectors = await _find_vectors(cache, keys)
    if len(vectors) == len(keys):
        return complete(unpaid, vectors)
    await call.prepare(request)
    return await join_equal_call(call, tuple(keys.values()), request_missing)


async def _find_vectors(cache: Cache, keys: Mapping[str, str]) -> dict[str, tuple[float, ...]]:
    """Return the vectors that a cache holds, by text."""
    entries = [(text, await cache.find(key)) for text, key in keys.items()]
    return {text: vector for text, entry in entries if entry is not None and (vector := _vector(entry.get("vector")))}


async def _request_vectors(call: ModelCall, request: records.EmbeddingRequest) -> records.EmbeddingReply:
    """Return a vector for each text of a batch, from the provider.

    Raises:
        BadReplyError: There is not one vector for each text; or they differ in length, or from `dimensions` if given.
    """
    reply: records.EmbeddingReply = await send_with_retries(call, request)
    lengths, dimensions = {len(vector) for vector in reply.vectors}, request.params.get("dimensions")
    if len(reply.vectors) != len(request.texts) or lengths != {dimensions or max(lengths, default=0)} or 0 in lengths:
        got = f"got {len(reply.vectors)} vectors of length {', '.join(map(str, sorted(lengths))) or 'none'}"
        length = f"length {dimensions}" if dimensions else "one length"
        raise BadReplyError(f"{got}, wanted one for each of {len(request.texts)} texts, of {length}", reason="schema")
    return records.EmbeddingReply(reply.vectors, call.usage(), False, request.model, call.elapsed_s)


# -- requests and answers of providers ---------------------------------------------------------------------------------

_LARGEST: Final = 1e300  # JSON numbers are unbounded, those of a vector are not


def _body(request: records.EmbeddingRequest, level: str) -> dict[str, Any]:  # noqa: ARG001  # for completions alone
    """Return the body of a request to `/embeddings`."""
    return {"input": list(request.texts), "encoding_format": "float", **request.params}


def _reply_of(
    response: Json, request: records.EmbeddingRequest, headers: Mapping[str, str]
) -> records.EmbeddingReply | ModelError:
    """Return the vectors of an answer, in the order of the texts; an error if they cannot be read."""
    data = an_object(response).get("data")
    items: list[Any] = list(data) if is_array(data) else []
    rows = {str(item.get("index", at)): item.get("embedding") for at, item in enumerate(items) if is_object(item)}
    vectors = [_vector(rows.get(str(index))) for index in range(len(request.texts))]
    if len(rows) != len(request.texts) or not all(vectors):
        quoted = message_in(response)
        text = f"the provider answered without {len(request.texts)} vectors" + (f": {quoted}" if quoted else "")
        request_id = headers.get("x-request-id") or headers.get("request-id")
        return BadReplyError(text, reason="schema", status=200, provider_message=quoted, request_id=request_id)
    counted = count_of(an_object(response).get("usage"), "prompt_tokens")
    tokens = counted or records.estimate_text(sum(map(len, request.texts)))
    return records.EmbeddingReply(tuple(vectors), Usage(prompt_tokens=tokens, estimated=not counted))


def _vector(json: Any) -> tuple[float, ...]:
    """Return a vector; an empty one for anything but a list of finite numbers."""
    numbers = list(json) if is_array(json) else []
    fit = all(isinstance(number, (int, float)) and abs(number) < _LARGEST for number in numbers)
    return tuple(map(float, numbers)) if fit else ()


EMBEDDINGS: Final = Endpoint("/embeddings", "aembedding", _body, _reply_of)
"""Embeddings of texts."""
