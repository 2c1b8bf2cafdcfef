"""LanguageModel: one async call in front of every provider; and the choice of the model that answers.

A model is an object, a string (one shared model per string), the default of a block or of the process, or one that
replaces others for a block.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Literal, NamedTuple, NoReturn, Protocol, Self, TypeVar, cast, overload

from pydantic import BaseModel

from synmod import leaves
from synmod.cache import Cache
from synmod.data import Schema, declare, model_of
from synmod.errors import BuildError, ConfigError, UnboundModelError
from synmod.registry import register_own
from synmod.scope import PHASES, ModelCounters, ModelCounts, current_call

from . import options, records
from .batches import AnthropicJobs, BatchAdapter, OpenAIJobs
from .call import call_with_fallbacks
from .chat_completions import CHAT, Endpoint
from .direct_adapter import DirectAdapter, MessagesAdapter, ResponsesAdapter
from .limits import Limit
from .litellm_adapter import LiteLLMAdapter, LiteLLMPrice, Price, count_tokens, list_entry, token_price
from .relay import LMStream
from .replies import function_schemas, is_native_tool, normalize_tool_choice

M = TypeVar("M", bound="SharedModel")

COUNTER_ATTRIBUTES: Final = {
    f"{prefix}cumulated_{name}": (phase, name)
    for prefix, phase in (("", None), *((f"{phase}_", phase) for phase in PHASES))
    for name in ModelCounts._fields
    if name != "cancelled"
}
"""Attribute of a model -> (phase, None for all; field)."""

_ADAPTERS: Final = {"direct": DirectAdapter, "litellm": LiteLLMAdapter, "responses": ResponsesAdapter}
_CALL_KEYWORDS: Final = "schema tools stream sample timeout_s structured reasoning_field data_model"


@dataclass(frozen=True)
class EmbeddedModels:
    """The adapters of models in the process, which a higher room defines; `synmod/__init__.py` sets the instance.

    Attributes:
        chat: The class of the adapter of a language model `embedded/<name>`, by name.
        embedding: Likewise of an embedding model.
    """

    chat: Mapping[str, Callable[[], Any]]
    embedding: Mapping[str, Callable[[], Any]]
    instance: ClassVar[EmbeddedModels]


class SharedModel:
    """A model of a provider, held by reference and shared by modules, tasks, threads and event loops.

    Args:
        settings: The checked arguments.
        endpoint: Chat completions or embeddings.
        embedded: The adapters of the models `embedded/<name>`, by name.

    Raises:
        ConfigError: The adapter is not one, or the model string is one that a file must not choose.

    Source: httpx's clients.
    """

    __slots__ = ("__weakref__", "_price", "adapter", "backoff", "counters", "is_awaited", "secrets", "settings")

    def __init__(
        self, settings: options.Settings, endpoint: Endpoint, embedded: Mapping[str, Callable[[], Any]]
    ) -> None:
        self.settings: options.Settings = settings
        self.secrets = options.Secrets(settings)
        self.adapter: Any = self._adapter(endpoint, embedded)
        if settings.batch is not None:
            self.adapter = self._with_jobs(self.adapter, settings.batch)
        self.counters = ModelCounters()
        self.backoff = True  # whether to wait between attempts; a test double need not
        self.is_awaited = False  # whether calls wait for its server to start, which is logged once
        self._price: tuple[Price | LiteLLMPrice | None] | None = None  # None until looked up

    def _adapter(self, endpoint: Endpoint, embedded: Mapping[str, Callable[[], Any]]) -> Any:
        """Return the adapter that serves the model: the one chosen by hand, else by provider and `api_base`."""
        settings, choice = self.settings, self.settings.adapter
        if choice is not None and not (isinstance(choice, str) and choice in _ADAPTERS):
            missing = [name for name in ("name", "version", "send") if not hasattr(choice, name)]
            if missing:
                got = f"{choice!r:.100}, which has no {', '.join(missing)}"
                expected = f"{', '.join(map(repr, _ADAPTERS))}, or an object with name, version and async send(request)"
                raise ConfigError(f"{settings.model}: adapter: got {got}; wanted {expected}.")
            return choice
        if settings.api_base is None:
            check_text(settings.model)
        if choice is None and settings.provider == "embedded":
            name = settings.model.partition("/")[2]
            return embedded[leaves.check_choice(f"{settings.model}: the model", name, [*embedded], error=ConfigError)]()
        is_direct = settings.api_base is not None or settings.provider in ("anthropic", "openai", *options.LOCAL)
        kind = _ADAPTERS[choice or ("direct" if is_direct else "litellm")]
        if kind is DirectAdapter and settings.provider == "anthropic" and endpoint is CHAT:
            kind = MessagesAdapter
        return kind(settings, self.secrets, endpoint)

    def _with_jobs(self, adapter: Any, jobs: options.BatchJobs) -> BatchAdapter:
        """Return the adapter with batch jobs.

        Raises:
            ConfigError: The provider has no batch API that is known here.
        """
        has_api = self.settings.provider in ("anthropic", "openai") or self.settings.api_base is not None
        if not (isinstance(adapter, DirectAdapter) and has_api):
            who = "openai/*, anthropic/* and servers with OpenAI's batch API"
            raise ConfigError(f"{self.model}: batch= is for {who}.")
        api = AnthropicJobs if isinstance(adapter, MessagesAdapter) else OpenAIJobs
        return BatchAdapter(adapter, jobs, api(adapter, jobs.window))

    @property
    def model(self) -> str:
        """The model string, `provider/name`."""
        return self.settings.model

    @property
    def name(self) -> str:
        """The name in a saved file."""
        return self.settings.name

    @property
    def attempts(self) -> int:
        """How many requests one call may send in all."""
        return self.settings.attempts

    @property
    def limit(self) -> Limit | None:
        """The limit on its requests; None for no limit."""
        return self.settings.limit

    @property
    def cache(self) -> Cache | None:
        """The cache of its replies; None for no cache."""
        return self.settings.cache

    @property
    def fallback(self) -> tuple[Self, ...]:
        """The models that are tried after it; only language models have any."""
        return ()

    def with_fallbacks(self) -> list[Self]:
        """Return the models that a call tries in turn: this one, then its fallbacks, each followed by its own."""
        models, pending = dict[Self, None](), [self]
        while pending:  # iterative: a file may hold a long chain
            model = pending.pop()
            if model not in models:
                models[model] = None
                pending += reversed(model.fallback)
        return list(models)

    def all_secrets(self) -> frozenset[str]:
        """Return the texts that no file may show: keys and hidden headers, also of fallbacks and the environment."""
        return frozenset[str]().union(*(model.secrets.hidden_texts() for model in self.with_fallbacks()))

    async def price(self) -> Price | LiteLLMPrice | None:
        """Return the price of tokens: the one given, else the adapter's, else the list price; None if unknown."""
        if self._price is None:
            settings, price = self.settings, None
            if settings.price is not None:
                price = token_price(settings)
            elif settings.provider == "embedded":
                price = Price(0.0, 0.0, 0.0)
            elif (find := getattr(self.adapter, "price", None)) is not None:
                price = await find()
            elif settings.api_base is None and settings.provider not in ("testing", *options.LOCAL):
                price = await leaves.aio.to_thread(token_price, settings)
            self._price = (price,)
        return self._price[0]

    async def aclose(self) -> None:
        """Close the connections that this model holds in the running loop; the next call opens new ones.

        Example:
            >>> sm.run(sm.LanguageModel("embedded/nearest").aclose())

        Source: httpx clients.
        """
        if (close := getattr(self.adapter, "aclose", None)) is not None:
            await close()

    def __getattr__(self, name: str) -> Any:
        """Return a counter: `cumulated_calls`, `cumulated_cost_usd`, ...; of one phase: `reward_cumulated_calls`, ...

        Raises:
            AttributeError: The name is unknown ('Did you mean').
        """
        counter = COUNTER_ATTRIBUTES.get(name)
        if counter is None:
            hint = leaves.did_you_mean(name, COUNTER_ATTRIBUTES)
            raise AttributeError(f"{type(self).__name__} has no attribute {name!r}.{hint}")
        return self.counters.read(*counter)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *COUNTER_ATTRIBUTES})

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.model!r}, attempts={self.attempts})"

    def __copy__(self, memo: object = None) -> Self:
        """A model is held by reference: copies of a program share it."""
        return self

    __deepcopy__ = __copy__

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise TypeError(f"{self!r} cannot be pickled: it holds live connections. Save the program with sm.save.")


_BY_STRING: Final[dict[tuple[type, str], SharedModel]] = {}
_MAKING: Final = leaves.aio.lock()


class TextRules(Protocol):
    """What becomes of the texts that name models while code runs on the values of a file."""

    def stand_in(self, kind: type[Any], text: str) -> SharedModel | None:
        """Return the reader's model for a text; None without one."""
        ...

    def check(self, text: str) -> None:
        """Raise ConfigError for a text of the file that may not choose the connection."""
        ...


_TEXT_RULES: Final[ContextVar[TextRules | None]] = ContextVar("synmod_text_rules", default=None)


def text_rules(rules: TextRules | None) -> AbstractContextManager[None]:
    """Set the rules for model strings for a block; None for none."""
    return leaves.set_in_block(_TEXT_RULES, rules)


def check_text(text: str) -> None:
    """Raise ConfigError for a model string that the rules in force here refuse."""
    if (rules := _TEXT_RULES.get()) is not None:
        rules.check(text)


def model_of_kind(kind: Callable[[str], M], model: Any, where: str) -> M:
    """Return the model itself, or the one model of this kind and process that a string names.

    Args:
        kind: The class.
        model: A model or string.
        where: The receiver, for the message.

    Raises:
        ConfigError: It is neither, or the string is not `provider/name`, or it comes from a file that may not choose
            it. Begins with `where`.
    """
    cls: Any = kind
    if isinstance(model, cls):
        return model
    if not isinstance(model, str):
        raise ConfigError(f"{where}: got {type(model).__name__}, wanted {cls.__name__} or a string 'provider/name'.")
    rules = _TEXT_RULES.get()
    if rules is not None and (stand_in := rules.stand_in(cls, model)) is not None:
        return cast("Any", stand_in)
    check_text(model)
    with _MAKING:
        if (cls, model) not in _BY_STRING:
            _BY_STRING[cls, model] = kind(model)
        return cast("Any", _BY_STRING[cls, model])


def refuse_on_symbols(name: str) -> None:
    """Raise BuildError if a module is being built or traced, which must not cost tokens."""
    frame = current_call()
    if frame is not None and frame.symbolic:
        what = f"{frame.path or frame.name!r}: {name} was called while the module is built on symbols"
        remedy = "Call it in `call`, and declare its output (`-> Answer`), which is then known without a model"
        raise BuildError(f"{what}. {remedy}.")


# -- without a connection --------------------------------------------------------------------------------------------


class NoConnection(NamedTuple):
    """The adapter of a model that was loaded without its connection: every call raises.

    Attributes:
        message: Names what is missing, and the code that supplies it.
        record: The record in the file, which a save writes again.
    """

    message: str
    record: Mapping[str, leaves.Json]
    name: str = "unbound"
    version: int = 1

    def check(self, request: object) -> NoReturn:  # noqa: ARG002  # raises for every request
        """Raise.

        Raises:
            UnboundModelError: Always.
        """
        raise UnboundModelError(self.message)

    send = check


def unbound_model(
    kind: Callable[..., M], name: str, record: Mapping[str, leaves.Json], needs: Sequence[str], **settings: Any
) -> M:
    """Return a model without its connection: everything except a call works.

    Args:
        kind: The class.
        name: The name in the file.
        record: The record in the file.
        needs: Names of what the file lacks, such as `api_base`, never values; or a class that is not registered.
        **settings: What the file holds of its arguments, so that it compares equal to the model that was saved.

    Returns:
        A model whose calls raise UnboundModelError, with what is needed and the code that supplies it.

    Raises:
        ConfigError: `record` holds no usable model string, or a setting is wrong.

    Example:
        >>> unbound_model(sm.LanguageModel, "house", {"model": "openai/house"}, ["api_base"]).name
        'house'

    Source: unbound variables; differs: the rest of the program works.
    """
    cls: Any = kind
    what = f"the model {name!r} was loaded without its connection; it needs {', '.join(needs) or 'a live model'}"
    adapter = NoConnection(f"{what}. Write load(..., language_models={{{name!r}: {cls.__name__}(...)}}).", record)
    return kind(str(record.get("model")), name=name, adapter=adapter, **settings)


@register_own()
class LanguageModel(SharedModel):
    """A language model of any provider, shared by any number of modules, tasks, threads and event loops.

    Args:
        model: `provider/name`, such as "openai/gpt-4o-mini" or "embedded/nearest".
        api_key: A str, a SecretStr, or a callable, plain or async, called for each request. Without it the usual
            environment variable of the provider is read at each call.
        api_base: Address of an OpenAI-compatible server, `/v1` included; without it OPENAI_BASE_URL for `openai/*`,
            OLLAMA_HOST for `ollama/*`, HOSTED_VLLM_API_BASE, LM_STUDIO_API_BASE, ... if set. No key of the environment
            is sent to an `api_base`.
        attempts: How many requests one call may send in all, 1 to 100.
        timeout_s: Seconds for the whole call, including waits, retries and repairs; None for no limit.
        name: The name in a saved file; by default the model string.
        headers: Further HTTP headers; a value given as SecretStr is kept out of every error.
        extra_body: Provider-specific fields, sent in the body.
        structured: How to ask for a schema: "schema" (natively), "json" (JSON mode), "tool" (as a tool that must be
            called), "calls" (natively, with a call of each tool as an alternative), "prompt" (in the text alone); None
            for what the provider does best. Beside tools that is "tool" at an `api_base` and for local servers, whose
            grammar for a native schema allows no calls, and "calls" for one that drops the tools.
        repairs: How often an invalid reply is sent back to be corrected.
        allow_remote_media: Whether images and files may be sent as addresses, which the provider or its server, with
            litellm sometimes this host, fetches.
        attempt_timeout_s: Seconds for one request; None for no limit of its own.
        price: (USD per million prompt tokens, USD per million completion tokens), and perhaps those of prompt tokens
            read from and written to the provider's cache; None for the known list price.
        prompt_cache: Whether the provider shall cache the constant part of prompts: instructions, examples and tools.
            Models of Anthropic get marks, which expire after five minutes without use, or an hour with "1h"; OpenAI
            gets a `prompt_cache_key`; others ignore it.
        batch: How calls that wait at the same time become jobs of the provider's batch API, at half the price (that of
            `price=`, too): a `BatchJobs`, or True for one. OpenAI, Anthropic, and an `api_base` that has OpenAI's.
            `timeout_s`, `attempt_timeout_s` and `limit` do not apply to them; `sm.deadline` does.
        adapter: "direct", "litellm", "responses" (OpenAI's responses API), or a provider of your own (see `Adapter`).
            By default OpenAI, Anthropic, local servers and every model with an `api_base` are reached directly, the
            others through litellm.
        limit: How many requests, and tokens, may leave: a `Limit`, which several models may share, or an int, the
            number of requests at once.
        cache: Where replies are kept, so that equal calls need no request: a `Cache`, the path of one, or True for
            `.synmod/cache.db` of the working folder. None: equal calls are independent samples.
        fallback: A model or a string, or a list of them: who answers when this model is unavailable, too busy, too
            slow or too small, or has no valid reply. Each of them makes a call of its own.
        **defaults: Sampling parameters of every call.

    Raises:
        ConfigError: A keyword is unknown ('Did you mean'), or an argument is wrong; names it.
        DataError: A sampling parameter is not JSON.

    Example:
        >>> lm = LanguageModel("embedded/nearest", temperature=0)
        >>> lm
        LanguageModel('embedded/nearest', attempts=3)

    Source: DSPy and Synalinks (models, counters), httpx (transports); differs: one retry loop, no parameter is
    silently dropped.
    """

    __slots__ = ("_fallback",)

    def __init__(
        self,
        model: str,
        *,
        api_key: options.ApiKey | None = None,
        api_base: str | None = None,
        attempts: int = 3,
        timeout_s: float | None = 120,
        name: str | None = None,
        headers: Mapping[str, str | options.Secret] | None = None,
        extra_body: Mapping[str, leaves.Json] | None = None,
        structured: str | None = None,
        repairs: int = 1,
        allow_remote_media: bool = False,
        attempt_timeout_s: float | None = None,
        price: tuple[float, ...] | None = None,
        prompt_cache: bool | Literal["1h"] | None = None,
        batch: options.BatchJobs | bool | None = None,
        adapter: records.Adapter | str | None = None,
        limit: Limit | int | None = None,
        cache: options.CacheGiven | None = None,
        fallback: LanguageModel | str | Sequence[LanguageModel | str] | None = None,
        **defaults: leaves.Json,
    ) -> None:
        api_key, prompt_cache = options.hidden(api_key), prompt_cache or None
        settings = options.settings_for(locals())
        super().__init__(settings, CHAT, EmbeddedModels.instance.chat)
        self.fallback = fallback

    @overload
    async def __call__(
        self, messages: Any, schema: Any = None, tools: Any = None, stream: Literal[False] = False, **params: Any
    ) -> records.LMReply: ...
    @overload
    async def __call__(
        self, messages: Any, schema: Any = None, tools: Any = None, *, stream: Literal[True], **params: Any
    ) -> LMStream: ...
    async def __call__(
        self,
        messages: Any,
        schema: Any = None,
        tools: Sequence[Any] | None = None,
        stream: bool = False,
        *,
        sample: int | None = None,
        timeout_s: float | None = None,
        structured: str | None = None,
        reasoning_field: str | None = None,
        data_model: type[BaseModel] | None = None,
        **params: leaves.Json,
    ) -> records.LMReply | LMStream:
        """Call the model.

        Args:
            messages: A str (one user turn), ChatMessages, or a list of ChatMessages and dicts in the shape of chat
                completions.
            schema: A JSON schema or a data model that the reply must satisfy; None for text.
            tools: The tools that the model may call instead: `Tool`s, or function schemas such as `{"name": "search",
                "description": "...", "parameters": {"type": "object", ...}}`. Which it must call is set by the
                parameter `tool_choice`: "auto", "none", "required" or the name of a tool.
            stream: Whether to return a stream of pieces instead of the reply; entering it sends the request.
            sample: Number of this draw among independent draws of one request; never sent.
            timeout_s: Seconds for this call, instead of the model's.
            structured: How to ask for the schema in this call, instead of the model's.
            reasoning_field: The field of the schema that native reasoning fills if a reply lacks it. It is not
                requested at all if the provider is known to reason.
            data_model: The class whose validators the reply must pass in addition to the schema; by default
                `schema`, if it is a class.
            **params: Sampling parameters; they win over the model's.

        Returns:
            The reply; its `json` is present and valid exactly if a schema was given and no tool was called.
            `tool_calls` are valid calls of the tools, which have not been run. With `stream`, an `LMStream`.

        Raises:
            ConfigError: An unknown keyword ('Did you mean'), something that is not a tool, or a cost budget over a
                model without a known price.
            DataError: `messages` are not turns; names the index.
            SchemaError: `schema` cannot be used.
            AuthError: No key, or one that is refused.
            RequestError: The provider refuses the request.
            ContextWindowError: The prompt is too long.
            RateLimitError, UnavailableError: The last attempt failed too.
            ModelTimeout: `timeout_s` is over, or the last attempt had no reply in `attempt_timeout_s`.
            BadReplyError: The reply is refused, cut off or invalid, or calls a tool that is not on offer or with
                invalid arguments, also after repair.
            UnboundModelError: The model was loaded from a file, which holds no connection.
            BuildError: A module is being built or traced here, which must not cost tokens.
            DeadlineExceeded, BudgetExceeded: An enclosing `sm.deadline` or `sm.budget` ends the call.

        Example:
            >>> from synmod.testing import ScriptedLM
            >>> reply = sm.run(ScriptedLM(['{"answer": "Paris"}'])("Capital of France?", {"type": "object"}))
            >>> reply["answer"]
            'Paris'
        """
        stand_in = stand_in_for(self.name)
        name = (stand_in or self).model
        if stream and (stand_in or self).settings.batch is not None:
            raise ConfigError(f"{name}: a model with batch= has no streams; call it, or a model without batch=.")
        refuse_on_symbols(name)
        reply_schema = schema if schema is None or type(schema) is Schema else declare(schema, root="any")
        if reasoning_field is not None and (not isinstance(reasoning_field, str) or reply_schema is None):  # pyright: ignore[reportUnnecessaryIsInstance]  (users)
            raise ConfigError(f"{name}: reasoning_field: got {reasoning_field!r:.100}, wanted a field of the schema.")
        model_class = data_model or (None if type(schema) is Schema else model_of(schema))
        own = params and options.check_sampling(params, f"await LanguageModel({name!r})(...)", _CALL_KEYWORDS.split())
        draw = current_sample() if sample is None else check_sample(sample)
        level = None if structured is None else options.check_structured(structured, name)
        limit = None if timeout_s is None else leaves.check_seconds(f"{name}: timeout_s", timeout_s, error=ConfigError)
        turns, functions = records.turns(messages), function_schemas(tools, name)
        natives = tuple([tool for tool in tools if is_native_tool(tool)]) if tools else ()

        def request_to(model: LanguageModel) -> records.LMRequest:
            """Return the request for one of the models."""
            merged, choice = leaves.frozen_dict({**model.defaults, **own}) if own else model.defaults, None
            if functions is not None and "tool_choice" in merged:
                choice = normalize_tool_choice(merged["tool_choice"], functions, name)
                merged = leaves.frozen_dict({key: value for key, value in merged.items() if key != "tool_choice"})
            takes_media = getattr(model.adapter, "takes_media_in_results", False)
            return records.LMRequest(
                model.model,
                records.turns_for(turns, model.settings.server, servers, takes_media=takes_media),
                schema=reply_schema,
                tools=functions,
                tool_choice=choice,
                params=merged,
                sample=draw,
                structured=level or model.settings.structured,
                reasoning_field=reasoning_field,
                native_tools=natives,
                data_model=model_class,
            )

        models: list[LanguageModel] = [*(stand_in or self).with_fallbacks()]
        if stand_in is None and len(models) > 1:
            models = [stand_in_for(model.name) or model for model in models]
        servers = [model.settings.server for model in models]
        arguments = models, request_to, limit
        return LMStream(call_with_fallbacks, *arguments) if stream else await call_with_fallbacks(*arguments)

    def stream(self, messages: Any, schema: Any = None, tools: Sequence[Any] | None = None, **options: Any) -> LMStream:
        """Return a stream of the reply: the model is called when its block is entered.

        Args:
            messages: As for a call.
            schema: As for a call.
            tools: As for a call.
            **options: The other keywords of a call.

        Raises:
            SynmodError: As for a call; raised by the iterator.

        Example:
            >>> from synmod.testing import ScriptedLM
            >>> async def main():
            ...     async with ScriptedLM(["Paris"]).stream("Capital of France?") as s:
            ...         return "".join([chunk.text async for chunk in s])
            >>> sm.run(main)
            'Paris'

        Source: `client.chat.completions.stream` of the openai SDK.
        """
        return LMStream(self, messages, schema, tools, **options)

    @property
    def defaults(self) -> leaves.FrozenDict:
        """The sampling parameters of every call."""
        return self.settings.defaults

    @property
    def fallback(self) -> tuple[LanguageModel, ...]:
        """The models that are tried after it.

        Raises:
            ConfigError: When set: it holds something other than models and strings, or leads back to this model.
        """
        return self._fallback

    @fallback.setter
    def fallback(self, fallback: LanguageModel | str | Sequence[LanguageModel | str] | None) -> None:
        items: Any = fallback if isinstance(fallback, list | tuple) else () if fallback is None else (fallback,)
        where = f"{self.model}: fallback"
        models = tuple([model_from(item, where) for item in items])
        for item, model in zip(items, models, strict=True):
            if item == self.model or self in model.with_fallbacks():
                raise ConfigError(f"{where}: {item!r} leads back to this model: it would be tried again and again.")
        self._fallback = models

    def estimate_tokens(self, messages: Any) -> int:
        """Estimate, without waiting, how many tokens messages take.

        Args:
            messages: Messages, as for a call.

        Returns:
            A third of the characters, rounded up.

        Raises:
            DataError: They are not turns; names the index.

        Example:
            >>> LanguageModel("embedded/nearest").estimate_tokens("Hello you")
            3
        """
        return records.estimate_tokens(records.turns(messages))

    async def context_window(self) -> int | None:
        """Return how many tokens a prompt may have, by the price list of litellm; None if that is not known.

        Example:
            >>> sm.run(LanguageModel("openai/gpt-4o-mini").context_window())
            128000

        Source: litellm's model list.
        """
        if self.settings.api_base is not None or self.settings.provider in ("embedded", "testing", *options.LOCAL):
            return None
        entry = await leaves.aio.to_thread(list_entry, self.model)
        tokens = entry.get("max_input_tokens") or entry.get("max_tokens")
        return tokens if isinstance(tokens, int) else None

    async def count_tokens(self, messages: Any) -> records.TokenCount:
        """Count the tokens of messages with the tokenizer of the model if it is known; estimate them otherwise.

        For OpenAI and Azure the tokenizer is litellm's; a server of llama.cpp or vLLM counts with its own.

        Args:
            messages: Messages, as for a call.

        Returns:
            The tokens of the prompt, an int whose attribute `estimated` is True if no tokenizer was there to ask.

        Raises:
            DataError: They are not turns; names the index.
            UnavailableError: The tokenizer is litellm's, and litellm is missing.

        Example:
            >>> count = sm.run(LanguageModel("embedded/nearest").count_tokens("Hello you"))
            >>> count, count.estimated
            (3, True)
        """
        checked = records.turns(messages)
        adapter, settings = self.adapter, self.settings
        is_openai = settings.provider in ("azure", "openai") and settings.api_base is None
        if is_openai and isinstance(adapter, DirectAdapter | LiteLLMAdapter):
            return records.TokenCount(await count_tokens(self.model, checked))
        if isinstance(adapter, DirectAdapter) and (count := await adapter.count_tokens(checked)) is not None:
            return records.TokenCount(count)
        return records.TokenCount(records.estimate_tokens(checked), estimated=True)


# -- which model answers ---------------------------------------------------------------------------------------------


_OF_PROCESS: Final[list[LanguageModel | None]] = [None]
"""The default model of the process, shared by all tasks, threads and loops."""

_DEFAULT: Final[ContextVar[tuple[LanguageModel | None] | None]] = ContextVar("synmod_default_model", default=None)
"""The default of the innermost block, in a tuple; None outside any block."""

_STAND_INS: Final[ContextVar[tuple[Mapping[str | None, LanguageModel], ...]]] = ContextVar(
    "synmod_stand_ins", default=()
)
"""The blocks of stand-ins, innermost first: saved name -> model; the name None stands for every model."""

current_stand_ins = _STAND_INS.get
"""Return the blocks of stand-ins in force here, innermost first: saved name -> model; None stands for every model."""

_SAMPLE: Final[ContextVar[int]] = ContextVar("synmod_sample", default=0)

current_sample = _SAMPLE.get
"""Return the number of the current draw."""


def model_from(model: LanguageModel | str, where: str = "language_model") -> LanguageModel:
    """Return the model itself, or the one model of this process that a string names.

    Raises:
        ConfigError: It is neither, or the string is not `provider/name`. Begins with `where`.
    """
    return model_of_kind(LanguageModel, model, where)


def set_default_language_model(model: LanguageModel | str | None) -> None:
    """Set the model of the process for modules that have none of their own.

    It applies to all tasks, threads and loops; a `default_language_model` block takes precedence. It is never saved.

    Args:
        model: A model, a string such as "openai/gpt-4o-mini", or None for no default.

    Raises:
        ConfigError: It is neither a model nor such a string.

    Example:
        >>> set_default_language_model("embedded/nearest")
        >>> current_language_model()
        LanguageModel('embedded/nearest', attempts=3)
        >>> set_default_language_model(None)

    Source: DSPy's `configure`; differs: it reaches every task and thread.
    """
    _OF_PROCESS[0] = None if model is None else model_from(model, "set_default_language_model")


@contextmanager
def default_language_model(model: LanguageModel | str | None) -> Generator[LanguageModel | None]:
    """Set the model for modules that have none of their own, for a block and what the block starts.

    Args:
        model: A model, a string such as "openai/gpt-4o-mini", or None for no default in the block.

    Raises:
        ConfigError: It is neither a model nor such a string.

    Example:
        >>> with default_language_model("embedded/nearest") as lm:
        ...     lm.model
        'embedded/nearest'

    Source: DSPy's `context`.
    """
    chosen = None if model is None else model_from(model, "default_language_model")
    with leaves.set_in_block(_DEFAULT, (chosen,)):
        yield chosen


def current_language_model() -> LanguageModel | None:
    """Return the default model in force here: that of the innermost block, else that of the process, else None."""
    block = _DEFAULT.get()
    return _OF_PROCESS[0] if block is None else block[0]


def resolve_model(model: LanguageModel | str | None, where: str) -> LanguageModel:
    """Return the model that a module calls: its own, else the current default.

    Args:
        model: The model of the module, if it has one.
        where: Path of the module, for the message.

    Returns:
        A model; stand-ins are applied when it is called.

    Raises:
        ConfigError: The module has no model and no default is set, or the string names no model.

    Example:
        >>> resolve_model("embedded/nearest", "writer")
        LanguageModel('embedded/nearest', attempts=3)

    Source: DSPy's `settings.lm`.
    """
    if model is not None:
        return model_from(model, where)
    default = current_language_model() or stand_in_for(None)
    if default is None:
        ways = (
            "language_model=..., call sm.set_default_language_model(...), or open `with sm.default_language_model(...)`"
        )
        raise ConfigError(f"{where or 'The module'}: no language model. Pass {ways}.")
    return default


@contextmanager
def use_language_models(models: LanguageModel | str | Mapping[str, LanguageModel | str]) -> Generator[None]:
    """Replace the models that answer inside a block, without changing the program.

    Every model call begun in the block goes to the stand-ins; the innermost block wins. Use it to test a finished
    program, or to run it on another provider.

    Args:
        models: A model or string that replaces every model; or a mapping from saved names to stand-ins.

    Raises:
        ConfigError: Something in it is neither a model nor a string of the form `provider/name`.

    Example:
        >>> with use_language_models("embedded/nearest"):
        ...     pass

    Source: httpx's transports, pydantic-ai's `override`.
    """
    where = "use_language_models"
    block: dict[str | None, LanguageModel] = {}
    if isinstance(models, Mapping):
        block.update({str(name): model_from(model, f"{where}[{name!r}]") for name, model in models.items()})
    else:
        block[None] = model_from(models, where)
    with leaves.set_in_block(_STAND_INS, (block, *_STAND_INS.get())):
        yield


def stand_in_for(name: str | None) -> LanguageModel | None:
    """Return the stand-in for the model of this name; None without one."""
    keys = (None,) if name is None else (None, name, name.partition("#")[0])
    return next((block[key] for block in _STAND_INS.get() for key in keys if key in block), None)


def models_in_force() -> leaves.Json:
    """Return as JSON the default model and the stand-ins in force here.

    Source: part of the key of a memo, beside the module itself.
    """
    default = current_language_model()
    stand_ins: list[leaves.Json] = []
    for block in _STAND_INS.get():
        stand_ins += [[key, _identity(block[key])] for key in sorted(block, key=str)]
        if None in block:
            break
    return {"default": None if default is None else _identity(default), "stand_ins": stand_ins}


def _identity(model: LanguageModel) -> leaves.Json:
    """Return the part of a model that its replies depend on and that a file may hold."""
    return [model.name, model.model, model.defaults]


def check_sample(sample: object) -> int:
    """Return the number of a draw.

    Raises:
        ConfigError: It is not an int of at least 0.
    """
    return leaves.check_int("sample (the number of the draw)", sample, 0, error=ConfigError)


def sample_number(sample: int) -> AbstractContextManager[None]:
    """Make `sample` the draw number of the model calls in a block that pass none of their own.

    Args:
        sample: The number, from 0.

    Raises:
        ConfigError: It is not an int of at least 0.

    Example:
        >>> with sample_number(2):
        ...     current_sample()
        2

    Source: best-of-n sampling; DSPy's `rollout_id`.
    """
    return leaves.set_in_block(_SAMPLE, check_sample(sample))
