"""The adapter of litellm: one request out, one reply or one error of ours back."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from functools import partial
from typing import Any, Final

from synmod.errors import AuthError, ModelError, UnavailableError
from synmod.leaves import aio
from synmod.leaves.frozen import thaw
from synmod.lm.keys import ENVIRONMENT, find_key, known_secrets, missing_key, scrubbed
from synmod.lm.messages import Message
from synmod.lm.providers.client import Exchange, client_for, exchanging, leave_loop
from synmod.lm.providers.door import open_door, quiet
from synmod.lm.providers.errors import as_model_error, explained, unsent
from synmod.lm.providers.reasoning import tells_reasoning
from synmod.lm.providers.reply import reply_from
from synmod.lm.providers.request import asked, best_level, check_params
from synmod.lm.providers.route import route_for
from synmod.lm.records import LMReply, LMRequest
from synmod.lm.settings import Settings

__all__ = ["LiteLLMAdapter"]

CONNECT_S: Final = 10.0
_LONGEST_S: Final = 3_600.0  # the layers above end a request earlier
_NO_KEY: Final = "none"
_MOST_KEYS: Final = 256  # a rotating key may be another for each request in flight
_TOKENIZED: Final = frozenset({"azure", "openai"})


class LiteLLMAdapter:
    """Talks to a hundred providers through litellm; an OpenAI-compatible server is reached by our own client.

    Args:
        settings: What the model was made with.
        native: Whether the provider's own protocol is asked for, also at an `api_base`.
    """

    __slots__ = ("__weakref__", "_route", "_settings", "handed_out")

    name = "litellm"
    version = 1

    def __init__(self, settings: Settings, *, native: bool = False) -> None:
        self._settings = settings
        self._route = route_for(settings, native=native)
        self.handed_out: deque[str] = deque(maxlen=_MOST_KEYS)  # keys of the last requests, kept out of texts

    def check(self, request: LMRequest) -> None:  # noqa: ARG002  # what is wrong here is wrong for every request
        """Refuse at once what cannot work here.

        Raises:
            UnavailableError: trio runs this code.
            AuthError: There is no key where one is needed.
        """
        if aio.backend() == "trio":
            raise UnavailableError("litellm needs asyncio, and trio runs this code.")
        missing = missing_key(self._settings) if self._route.base is None else None
        if missing is not None:
            raise missing

    async def prepare(self, request: LMRequest) -> None:
        """Import litellm, and refuse what it knows that the model does not take.

        Raises:
            UnavailableError: litellm is not there.
            RequestError: A parameter that the model is known not to take.
        """
        check_params(await open_door(), self._route, request)

    def reasons(self, request: LMRequest) -> bool:
        """Tell whether the provider is known to reason on a request, and to tell it with the reply."""
        return tells_reasoning(self._route, request)

    async def send(self, request: LMRequest) -> LMReply:
        """Send one request."""
        outcome = await self._exchanged(await open_door(), request)
        if isinstance(outcome, LMReply):
            return outcome
        # Raised here, so that neither the original nor a frame that knows the key hangs on it.
        try:
            raise outcome
        finally:
            del outcome  # else the error and this frame would hold each other

    async def count_tokens(self, messages: Sequence[Message]) -> int | None:
        """Count with the tokenizer of the model, where litellm carries it; None where it is not known."""
        if self._settings.provider not in _TOKENIZED or self._route.base is not None:
            return None
        litellm = await open_door()
        plain = [thaw(dict(turn)) for turn in messages]
        return await aio.to_thread(partial(litellm.token_counter, model=self._route.model, messages=plain))

    async def aclose(self) -> None:
        """Close the connections of the running loop, unless another model uses them."""
        await leave_loop(self)

    async def _exchanged(self, litellm: Any, request: LMRequest) -> LMReply | ModelError:
        """Send one request with its key; a failure is given back, not raised."""
        key = ((await find_key(self._settings)) or "").strip() or None  # a key that is read from a file ends its line
        fault = self._fault_of(key)
        if fault is not None:
            return fault
        if key is not None and key not in self.handed_out:
            self.handed_out.append(key)
        arguments = await self._arguments(litellm, request, key)
        exchange = Exchange(key or _NO_KEY, self._settings.headers, to_base=self._route.base is not None)
        try:
            with exchanging(exchange), quiet():
                response = await litellm.acompletion(**arguments)
        except Exception as error:  # noqa: BLE001  # a provider's door: what it raises becomes ours
            failure = as_model_error(error, exchange.heard, lambda text: self._scrubbed(text, key))
            return explained(failure, litellm, self._route, asked_for_schema="response_format" in arguments)
        return reply_from(response, request, exchange.heard)

    def _fault_of(self, key: str | None) -> AuthError | None:
        """Say why a request cannot even be sent with this key."""
        if key is None and self._route.base is None and self._settings.provider in ENVIRONMENT:
            return unsent(AuthError("no API key: what was passed as api_key=... gave none."))
        if key is not None and not (key.isascii() and key.isprintable()):
            return unsent(AuthError("the API key cannot be sent: it must be ASCII text on one line."))
        return None

    def _scrubbed(self, text: str, key: str | None) -> str:
        """Take the key of this request, and every other secret, out of what a provider said."""
        keys = self.handed_out if key is None else (*self.handed_out, key)
        return scrubbed(text, known_secrets(self._settings, keys))

    async def _arguments(self, litellm: Any, request: LMRequest, key: str | None) -> dict[str, Any]:
        """Everything that litellm is called with."""
        import httpx

        settings, route = self._settings, self._route
        level = request.structured or best_level(litellm, route)
        limit = settings.attempt_timeout_s or _LONGEST_S
        arguments = asked(request, level)
        arguments |= {
            "model": route.model,
            "timeout": httpx.Timeout(limit, connect=min(CONNECT_S, limit)),
            "max_retries": 0,
            "num_retries": 0,
            "drop_params": False,
        }
        if settings.extra_body:
            arguments["extra_body"] = thaw(settings.extra_body)
        if route.base is not None:
            arguments |= {"api_base": route.base, "allowed_openai_params": list(request.params)}
        if key is not None or route.base is not None:
            arguments["api_key"] = key or _NO_KEY
        if route.own_client:
            arguments["client"] = await client_for(self, route.base)
        elif settings.headers:
            arguments["extra_headers"] = dict(settings.headers)
        return arguments
