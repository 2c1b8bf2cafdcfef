"""litellm, for the providers that are not served directly: the adapter, the late import, and prices.

Importing litellm takes seconds; by default it also fetches prices from the network and reads the `.env` of the project,
so both are switched off first. Its price list is read without importing it.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import re
import sys
import warnings
from collections.abc import Mapping, Sequence
from contextlib import aclosing
from functools import cache, partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final, NamedTuple, cast

from pydantic import SecretStr

from synmod.errors import AuthError, ModelError, RequestError, UnavailableError
from synmod.leaves import aio, did_you_mean, remember_secrets, thaw

from . import chat_completions as chat, options
from .failures import litellm_error, with_hints
from .records import LMRequest, Message, Received
from .replies import answer_name
from .sessions import CONNECT_S, PerLoop
from .streaming import Assembly, whole_texts
from .text_calls import level_of

_LONGEST_S: Final = 3_600.0  # the timeout of the call ends a request earlier
# top_k is outside the chat-completions shape, so no list of litellm's names it; these providers are known to refuse it.
_WITHOUT_TOP_K: Final = frozenset({"azure", "azure_ai", "groq", "mistral", "openai", "xai"})
_ALWAYS_REASON: Final = ("deepseek-reasoner", "deepseek-r1", "kimi-k2-thinking", "magistral", "qwq", "sonar-reasoning")
_RETURNS_REASONING: Final = frozenset({"anthropic", "bedrock", "deepseek", "gemini", "openrouter", "vertex_ai"})


class _Zero(int):
    """A zero that is true: for embeddings litellm evaluates `max_retries or 2`."""

    def __bool__(self) -> bool:
        return True


class LiteLLMAdapter(chat.ProviderAdapter):
    """Sends requests through litellm, in the provider's own protocol.

    Args:
        settings: The checked arguments of the model.
        secrets: Its key and headers.
        endpoint: Chat completions or embeddings.
    """

    name: str = "litellm"
    version = 2

    def __init__(self, settings: options.Settings, secrets: options.Secrets, endpoint: chat.Endpoint) -> None:
        super().__init__(settings, secrets, endpoint)
        self._litellm: Any = None  # set by the first `prepare`

    @property
    def takes_media_in_results(self) -> bool:
        """Whether litellm passes images and files in the result of a tool on to the provider."""
        return self._settings.provider in ("anthropic", "bedrock")

    async def prepare(self, request: LMRequest) -> None:
        """Import litellm, and raise for parameters that the model is known not to take.

        Raises:
            UnavailableError: litellm is missing.
            RequestError: The model is known not to take a parameter.
        """
        self._litellm = await open_litellm()
        remember_secrets(options.environment_secrets())  # litellm reads some credentials itself
        chats = self._endpoint is chat.CHAT and self._settings.api_base is None
        allowed = self._params_of_model() if request.params and chats else None
        unlisted = () if self._settings.provider in _WITHOUT_TOP_K else ("top_k",)
        wrong = [name for name in request.params if allowed is not None and name not in (*allowed, *unlisted)]
        if wrong:
            message = f"this model does not take {', '.join(wrong)}; leave it out of the parameters."
            raise RequestError(message, sent=False)

    def reasons(self, request: LMRequest) -> bool:
        """Whether the provider is known to reason on a request, and to return its reasoning with the reply."""
        model, effort = self._settings.model, request.params.get("reasoning_effort")
        if any(name in model.lower() for name in _ALWAYS_REASON) and self._settings.api_base is None:
            return True
        may_reason = effort not in (None, "none", "disable") and self._settings.provider in _RETURNS_REASONING
        return may_reason and bool(self._litellm.supports_reasoning(model=model))

    async def price(self) -> LiteLLMPrice | None:
        """Return the price by litellm; None if it does not know the model, or with an `api_base`."""
        if self._settings.api_base is not None:
            return None
        price = LiteLLMPrice(await open_litellm(), self._settings.model)
        try:
            price.cost_usd(1, 1)
        except Exception:  # noqa: BLE001  # litellm raises many classes for a model that it does not know
            return None
        return price

    async def aclose(self) -> None:
        """Close the resources of litellm in the running loop."""
        await _LEFTOVERS.aclose()

    def _params_of_model(self) -> Sequence[str] | None:
        """Return the parameters that the model takes according to litellm; None if it has no record."""
        provider, _, name = self._settings.model.partition("/")
        return self._litellm.get_supported_openai_params(model=name, custom_llm_provider=provider)

    def _level(self, request: LMRequest) -> str:
        """Return how to request a schema: where the request leaves it open, the best way according to litellm."""
        if (level := level_of(request)) is not None:
            return level
        provider, has_base = self._settings.provider, self._settings.api_base is not None
        if request.tools and provider != "azure" and (has_base or provider != "openai"):
            compatible = ("openai", *self._litellm.openai_compatible_providers)
            is_grammar = provider in options.LOCAL or (has_base and provider in compatible)
            return "tool" if is_grammar else "prompt"  # others refuse it, or litellm makes a tool of the schema
        if has_base or self._litellm.supports_response_schema(model=self._settings.model):
            return "schema"
        return "json" if "response_format" in (self._params_of_model() or ()) else "prompt"

    async def _request(self, request: LMRequest, key: SecretStr | None, *, streams: bool) -> Received:
        import httpx

        await _LEFTOVERS.get()
        settings = self._settings
        limit = settings.attempt_timeout_s or _LONGEST_S
        body = self._request_body(request)
        arguments = thaw(body) | {
            "model": settings.model,
            "timeout": httpx.Timeout(limit, connect=min(CONNECT_S, limit)),
            "max_retries": _Zero(),
            "num_retries": 0,
            "drop_params": False,
            "extra_body": thaw(settings.extra_body) or None,
        }
        if settings.api_base is not None:
            allowed = [*request.params, "tools", "tool_choice", "prompt_cache_key"]
            arguments |= {"api_base": settings.api_base, "allowed_openai_params": allowed}
            key = key or SecretStr("none")  # else litellm would send a key from the environment
        assembly = Assembly(answer_name(request)) if streams else None
        failure, response = None, cast("Any", None)
        try:
            function = getattr(self._litellm, self._endpoint.function)
            arguments |= chat.STREAMING if streams else {}
            response = await function(
                **arguments,
                extra_headers=self._secrets.headers() or None,
                api_key=None if key is None else key.get_secret_value(),
            )
            if assembly is not None:
                async with aclosing(response):
                    chunks: Any = getattr(response, "chunks", None)  # as the provider sent them
                    async for record in response:
                        fields = record.model_dump()
                        sent = chunks or [record]
                        if fields.get("usage") and not any(getattr(chunk, "usage", None) for chunk in sent):
                            fields["usage"] = None  # it is litellm's own estimate
                        if piece := assembly.add(fields):
                            yield piece
                    for piece in assembly.end():
                        yield piece
                if chunks == []:  # litellm invents the end of an empty stream
                    failure = UnavailableError("the stream ended before the reply did")
        except Exception as error:  # noqa: BLE001  # litellm may raise anything; all of it is translated
            failure = self._failure(error, request)
        headers: Mapping[str, str] = getattr(response, "_response_headers", None) or {}
        headers = {name.lower(): str(text) for name, text in headers.items()}
        if failure is not None:
            yield failure
        elif assembly is not None:
            yield self._read_stream(assembly, request, headers)
        else:
            yield self._read(whole_texts(response.model_dump()), request, headers)

    def _failure(self, error: Exception, request: LMRequest) -> ModelError:
        """Return the error for an exception of litellm."""
        text = self._secrets.scrub(str(getattr(error, "message", None) or error))
        failure = litellm_error(error, text, self._settings.base)
        if isinstance(failure, AuthError | RequestError) and failure.status is None:
            missing = self._litellm.validate_environment(self._settings.model).get("missing_keys")
            names = f"\n  litellm looks for {', '.join(missing)} in the environment." if missing else ""
            failure.args = (f"{failure}{names}",)
        if "LLM Provider NOT provided" in str(failure):
            providers = [str(provider.value) for provider in self._litellm.provider_list]
            hint = did_you_mean(self._settings.provider, providers)
            failure.args = (f"litellm has no provider {self._settings.provider!r}.{hint}",)
        return with_hints(failure, self._settings, request)


# -- the package -----------------------------------------------------------------------------------------------------

_INSTALL: Final = 'install it: pip install "litellm>=1.84,<2"'
_SET_BEFORE_IMPORT: Final = {"LITELLM_LOCAL_MODEL_COST_MAP": "True", "LITELLM_MODE": "PRODUCTION"}
_IGNORED: Final[tuple[dict[str, Any], ...]] = (
    {"module": r"litellm(\.|$)"},
    # It makes its coroutine in a worker thread; a request cancelled meanwhile leaves it without an await, and the
    # warning names whatever code the collector interrupted.
    {"message": r"coroutine '\w+\.\w*completion\w*' was never awaited", "category": RuntimeWarning},
    {"message": r"Pydantic serializer warnings:[\s\S]*(Message|Choices|ModelResponse|Usage)"},
    {"message": r"Items? .* on TypedDict class .* using the `ReadOnly` qualifier"},  # of its classes, by pydantic
)


async def open_litellm() -> Any:
    """Wait until litellm is imported, and return it; a cancelled waiter leaves the import running.

    Raises:
        UnavailableError: It is missing, or cannot be imported. A later request tries again.
    """
    for ignored in _IGNORED:  # each time, since a test may have replaced the filters
        warnings.filterwarnings("ignore", **ignored)  # Python moves an existing one to the front
    has_come = _import_litellm.cache_info().currsize
    return _import_litellm() if has_come else await aio.to_thread(_import_litellm, abandon=True)


@cache
def _import_litellm() -> Any:
    """Import litellm, and silence its log."""
    for name, value in _SET_BEFORE_IMPORT.items():
        os.environ.setdefault(name, value)
    try:
        import litellm
    except ImportError as error:
        missing = f"litellm, which this model needs, cannot be imported ({error}); {_INSTALL}."
        raise UnavailableError(missing, sent=False) from None
    litellm.suppress_debug_info = True
    for name in ("LiteLLM", "LiteLLM Router", "LiteLLM Proxy"):
        logger = logging.getLogger(name)
        silent = [handler for handler in logger.handlers if not hasattr(handler, "stream")]
        logger.handlers = silent or [logging.NullHandler()]
    return litellm


async def _close_leftovers(loop: asyncio.AbstractEventLoop, _held: None) -> None:
    """Stop the logging task that litellm left in a loop, and close the clients that it keeps for it."""
    for _ in range(10):  # litellm's background tasks need some turns until its worker knows this loop
        await asyncio.sleep(0)
    worker = getattr(sys.modules.get("litellm.litellm_core_utils.logging_worker"), "GLOBAL_LOGGING_WORKER", None)
    if worker is not None and getattr(worker, "_bound_loop", None) is loop:  # not public; a test covers it
        await worker.stop()
    clients: Any = getattr(getattr(_import_litellm(), "in_memory_llm_clients_cache", None), "cache_dict", {})
    for key in [key for key in list(clients) if str(key).endswith(f"-{id(loop)}")]:
        client = clients.pop(key, None)
        close = getattr(client, "aclose", None) or getattr(client, "close", None)
        closing: Any = close() if close is not None else None
        if hasattr(closing, "__await__"):
            await closing
    # Some streams use one client per process, which opens a session for each loop and does not close it.
    names: Any = getattr(_import_litellm(), "__dict__", {})  # not by attribute, which would create the client
    client = getattr(names.get("module_level_aclient"), "client", None)
    session: Any = getattr(getattr(client, "_transport", None), "client", None)
    if getattr(session, "_loop", None) is loop:
        await session.close()


_LEFTOVERS: Final = PerLoop(lambda: None, _close_leftovers)


async def count_tokens(model: str, messages: Sequence[Message]) -> int:
    """Count the tokens of messages with the tokenizer in litellm.

    Raises:
        UnavailableError: litellm is missing.
    """
    litellm = await open_litellm()
    plain = [thaw(dict(turn)) for turn in messages]
    return await aio.to_thread(partial(litellm.token_counter, model=model, messages=plain))


# -- prices ----------------------------------------------------------------------------------------------------------

_PRICES: Final = "model_prices_and_context_window_backup.json"
_WRITTEN: Final = "cache_creation_input_token_cost"
_ABOVE: Final = re.compile(r"\w+_above_(\d+)k_tokens")


class Price(NamedTuple):
    """What the tokens of one model cost, in USD per token.

    Attributes:
        prompt: A prompt token.
        completion: A completion token.
        cached: A prompt token in the provider's cache.
        written: A prompt token written to it; None for the price of any prompt token.
        above: (prompt length, price) for prompts longer than that length, the longest first.
    """

    prompt: float
    completion: float
    cached: float
    written: float | None = None
    above: tuple[tuple[int, Price], ...] = ()

    def half(self) -> Price:
        """Return half of the price."""
        rates = [None if rate is None else rate / 2 for rate in self[:4]]
        return self._make([*rates, tuple((length, price.half()) for length, price in self.above)])

    def cost_usd(
        self, prompt_tokens: int, completion_tokens: int, cached_tokens: int = 0, cache_write_tokens: int = 0
    ) -> float:
        """Return the cost of one request; cached and written tokens are part of the prompt."""
        price = next((price for length, price in self.above if prompt_tokens > length), self)
        cached = min(cached_tokens, prompt_tokens)
        cost = (prompt_tokens - cached) * price.prompt + cached * price.cached + completion_tokens * price.completion
        if cache_write_tokens and price.written is not None:
            cost += min(cache_write_tokens, prompt_tokens - cached) * (price.written - price.prompt)
        return cost


class LiteLLMPrice(NamedTuple):
    """What the tokens of one model cost, as litellm computes it."""

    litellm: Any
    model: str

    def cost_usd(
        self, prompt_tokens: int, completion_tokens: int, cached_tokens: int = 0, cache_write_tokens: int = 0
    ) -> float:
        """Return the cost of one request; raise if litellm does not know the model."""
        cached = {"cache_read_input_tokens": cached_tokens, "cache_creation_input_tokens": cache_write_tokens}
        return sum(self.litellm.cost_per_token(self.model, prompt_tokens, completion_tokens, **cached))


def token_price(settings: options.Settings) -> Price | None:
    """Return the price of tokens that was given, else the list price, half of it in batch jobs; None if not known."""
    if settings.price is None:
        price = list_price(settings.model, settings.prompt_cache)
    else:
        prompt, completion, *cache = (rate / 1_000_000 for rate in settings.price)
        price = Price(prompt, completion, cache[0] if cache else prompt, cache[1] if cache[1:] else None)
    return price if price is None or settings.batch is None else price.half()


def list_price(model: str, ttl: object = None) -> Price | None:
    """Return the price of a model in litellm's list; that of writes to a cache for an hour if `ttl` is "1h"."""
    entry = list_entry(model)
    name = f"{_WRITTEN}_above_1hr"
    if ttl == "1h" and name in entry:
        entry = {**entry, **{key.replace(name, _WRITTEN): value for key, value in entry.items() if name in key}}
    lengths = sorted({int(match[1]) for key in entry if (match := _ABOVE.fullmatch(key))}, reverse=True)
    above = [(length * 1000, _rates(entry, f"_above_{length}k_tokens")) for length in lengths]
    usual = _rates(entry)
    return usual and usual._replace(above=tuple((length, price) for length, price in above if price))


def list_entry(model: str) -> Mapping[str, Any]:
    """Return the entry of a model in litellm's list, found by the whole string, else by name and provider."""
    with _READING:  # many calls that come first together would each read it
        prices = _price_list()
    provider, _, name = model.partition("/")
    entry: dict[str, Any] = prices.get(model) or prices.get(name) or {}
    return entry if model in prices or entry.get("litellm_provider") == provider else {}


_READING: Final = aio.lock()


@cache
def _price_list() -> Mapping[str, Any]:
    """Return the list in litellm's folder; an empty one if litellm is not installed."""
    spec = find_spec("litellm")
    try:
        return json.loads(Path(str(spec and spec.origin)).with_name(_PRICES).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}


def _rates(entry: Mapping[str, Any], suffix: str = "") -> Price | None:
    """Return one set of rates; missing ones default to the usual ones, and that of cached input to that of input."""
    names = ("input_cost_per_token", "output_cost_per_token", "cache_read_input_token_cost", _WRITTEN)
    prompt, completion, cached, written = (entry.get(f"{name}{suffix}", entry.get(name)) for name in names)
    if not isinstance(prompt, (int, float)) or not isinstance(completion, (int, float)):
        return None
    cached = float(cached if isinstance(cached, (int, float)) else prompt)
    return Price(float(prompt), float(completion), cached, written if isinstance(written, (int, float)) else None)
