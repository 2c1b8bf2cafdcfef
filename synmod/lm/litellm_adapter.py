"""The adapter of litellm: one request out, one reply or one error of ours back, for the providers it alone serves."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Any, Final

from synmod.errors import AuthError, ModelError, RequestError
from synmod.leaves.frozen import thaw

from .chat_completions import chat_body, refuse_trio, reply_of, reply_or_raise
from .litellm_door import LiteLLMPrice, close_leftovers, counted_tokens, open_litellm
from .messages import Message
from .provider_errors import litellm_error, with_hints
from .records import LMReply, LMRequest
from .secrets import Secrets
from .settings import Settings

__all__ = ["LiteLLMAdapter"]

_CONNECT_S: Final = 10.0
_LONGEST_S: Final = 3_600.0  # the call ends a request earlier
# Outside the chat-completions shape, so no list of litellm's names it; these providers are known to refuse it.
_UNLISTED: Final = "top_k"
_WITHOUT_TOP_K: Final = frozenset({"azure", "azure_ai", "groq", "mistral", "openai", "xai"})
_TOKENIZED: Final = frozenset({"azure", "openai"})
_ALWAYS_REASON: Final = ("deepseek-reasoner", "deepseek-r1", "kimi-k2-thinking", "magistral", "qwq", "sonar-reasoning")
_RETURNS_REASONING: Final = frozenset({"anthropic", "bedrock", "deepseek", "gemini", "openrouter", "vertex_ai"})


class LiteLLMAdapter:
    """Sends requests through litellm, in the provider's own protocol.

    Args:
        settings: What the model was made with.
        secrets: Its key and headers.
    """

    name = "litellm"
    version = 2

    def __init__(self, settings: Settings, secrets: Secrets) -> None:
        self._settings = settings
        self._secrets = secrets
        self._litellm: Any = None  # known once a request was prepared

    def check(self, request: LMRequest) -> None:  # noqa: ARG002  # what is wrong here is wrong for every request
        """Raise at once for what cannot work here.

        Raises:
            UnavailableError: trio runs this code.
            AuthError: There is no key where one is needed.
        """
        refuse_trio("litellm")
        missing = self._secrets.missing()
        if missing is not None:
            raise missing

    async def prepare(self, request: LMRequest) -> None:
        """Import litellm, and raise for what it knows that the model does not take.

        Raises:
            UnavailableError: litellm is missing.
            RequestError: A parameter that the model is known not to take.
        """
        self._litellm = await open_litellm()
        known = self._supported() if request.params and self._settings.api_base is None else None
        if known is not None:
            takes_top_k = self._settings.provider not in _WITHOUT_TOP_K
            wrong = [name for name in request.params if name not in known and not (name == _UNLISTED and takes_top_k)]
            if wrong:
                message = f"this model does not take {', '.join(wrong)}; leave it out of the parameters."
                raise RequestError(message, sent=False)

    def reasons(self, request: LMRequest) -> bool:
        """Whether the provider is known to reason on a request, and to return its reasoning with the reply."""
        model, effort = self._settings.model, request.params.get("reasoning_effort")
        if any(name in model.lower() for name in _ALWAYS_REASON) and self._settings.api_base is None:
            return True
        wanted = effort not in (None, "none", "disable") and self._settings.provider in _RETURNS_REASONING
        return wanted and bool(self._litellm.supports_reasoning(model=model))

    async def send(self, request: LMRequest) -> LMReply:
        """Send one request."""
        return reply_or_raise(await self._exchanged(request))

    async def price(self) -> LiteLLMPrice | None:
        """Return what litellm computes; None where it does not know the model, or a server of the user's answers."""
        if self._settings.api_base is not None:
            return None
        price = LiteLLMPrice(await open_litellm(), self._settings.model)
        try:
            price.cost_usd(1, 1)
        except Exception:  # noqa: BLE001  # litellm raises many classes for a model that it does not know
            return None
        return price

    async def count_tokens(self, messages: Sequence[Message]) -> int | None:
        """Count with the tokenizer of the model, where litellm carries it; None where it is not known."""
        known = self._settings.provider in _TOKENIZED and self._settings.api_base is None
        return await counted_tokens(self._settings.model, messages) if known else None

    async def aclose(self) -> None:
        """Close what litellm holds in the running loop."""
        ending = _ENDINGS.get(asyncio.get_running_loop())
        if ending is not None:
            await ending.aclose()

    def _supported(self) -> Sequence[str] | None:
        """Return the parameters that litellm knows the model to take; None where it knows nothing."""
        provider, _, name = self._settings.model.partition("/")
        return self._litellm.get_supported_openai_params(model=name, custom_llm_provider=provider)

    def _level(self) -> str:
        """Return the best way to ask the provider for a schema, as far as litellm knows it."""
        if self._settings.api_base is not None or self._litellm.supports_response_schema(model=self._settings.model):
            return "schema"
        return "json" if "response_format" in (self._supported() or ()) else "prompt"

    async def _exchanged(self, request: LMRequest) -> LMReply | ModelError:
        """Send one request with its key; a failure is returned, not raised."""
        import httpx

        await _end_with_the_loop()
        settings = self._settings
        limit = settings.attempt_timeout_s or _LONGEST_S
        body = chat_body(request, request.structured or self._level())
        arguments = thaw(body) | {
            "model": settings.model,
            "timeout": httpx.Timeout(limit, connect=min(_CONNECT_S, limit)),
            "max_retries": 0,
            "num_retries": 0,
            "drop_params": False,
        }
        if settings.extra_body:
            arguments["extra_body"] = thaw(settings.extra_body)
        if settings.headers:
            arguments["extra_headers"] = self._secrets.headers()
        key = await self._secrets.key()
        if isinstance(key, AuthError):
            return key
        if settings.api_base is not None:
            arguments |= {"api_base": settings.api_base, "allowed_openai_params": list(request.params)}
            key = key or "none"  # else litellm would send one of the environment
        if key is not None:
            arguments["api_key"] = key
        try:
            response = await self._litellm.acompletion(**arguments)
        except Exception as error:  # noqa: BLE001  # a provider's door: what it raises becomes ours
            failure = litellm_error(error, self._secrets.scrubbed(str(getattr(error, "message", None) or error)))
            if isinstance(failure, AuthError) and failure.status is None:
                missing = self._litellm.validate_environment(settings.model).get("missing_keys")
                names = f" litellm looks for {', '.join(missing)} in the environment." if missing else ""
                failure.args = (f"{failure}{names}",)
            return with_hints(failure, settings.api_base, asked_for_schema="response_format" in body)
        received: Mapping[str, str] = getattr(response, "_response_headers", None) or {}
        return reply_of(response.model_dump(), request, {name.lower(): text for name, text in received.items()})


_ENDINGS: Final[dict[asyncio.AbstractEventLoop, AsyncGenerator[None]]] = {}


async def _end_with_the_loop() -> None:
    """See to it that what litellm leaves in the running loop ends with it."""
    loop = asyncio.get_running_loop()
    if loop not in _ENDINGS:
        for closed in [other for other in _ENDINGS if other.is_closed()]:
            _ENDINGS.pop(closed, None)
        _ENDINGS[loop] = _until_the_loop_ends(loop)
        await anext(_ENDINGS[loop])


async def _until_the_loop_ends(loop: asyncio.AbstractEventLoop) -> AsyncGenerator[None]:
    """Wait to be closed, by `aclose` or by the end of the loop; then close what litellm left."""
    try:
        yield
    finally:
        _ENDINGS.pop(loop, None)
        await close_leftovers()
