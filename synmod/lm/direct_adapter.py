"""The direct adapter: chat completions and embeddings over aiohttp, of OpenAI itself and every compatible server."""

from __future__ import annotations

import asyncio
import os
import re
import warnings
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, aclosing, suppress
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Final

from synmod import errors
from synmod.data import parse_json
from synmod.leaves import Json, aio, is_array
from synmod.wires import MESSAGES, PROVIDER_CONTENT, RESPONSES, Wire, an_object, count_of, is_in_grammar

from . import chat_completions as chat, options
from .failures import MOST_OF_ERROR, http_error, no_connection, permanent_error, with_hints
from .litellm_adapter import list_entry, token_price
from .records import LMReply, LMRequest, Message, Received
from .replies import answer_name
from .sessions import CONNECT_S, SESSIONS, load_roots, proxy_for
from .streaming import MOST_BODY, Assembly, read_json
from .text_calls import level_of, may_call
from .words import json_text

if TYPE_CHECKING:
    from aiohttp import ClientResponse
    from pydantic import SecretStr

OPENAI: Final = "https://api.openai.com/v1"
ANTHROPIC: Final = "https://api.anthropic.com/v1"

_PRIVATE: Final = re.compile(
    r"http://(\[.*\]|[^./:]+|(10|127|192\.168|172\.(1[6-9]|2\d|3[01]))\.[\d.]+|.*\.(internal|local|localhost|test))(:\d+)?/"
)
_JSON: Final = "application/json"
_LAST_PACKET_S: Final = 0.1
_BODY: Final = re.compile(rb"(\xef\xbb\xbf)?\s*[{\[<]")  # how JSON or a page begins; the content type may be wrong
_EVENTS: Final = re.compile(rb"(\xef\xbb\xbf)?\s*(data|event|id|retry)?:")
_LARGE: Final = 2**16  # bytes that are parsed in a worker thread
_SLICE: Final = 2**14  # bytes of a stream that are parsed without a pause


class DirectAdapter(chat.ProviderAdapter):
    """Sends requests to OpenAI or to an OpenAI-compatible server.

    Args:
        settings: The checked arguments of the model.
        secrets: Its key and headers.
        endpoint: Chat completions or embeddings.

    Raises:
        ConfigError: The provider's address is not known, and there is no `api_base`.
    """

    name: str = "direct"
    version: int = 1
    wire: Wire = Wire()
    _homes: ClassVar[Mapping[str, str]] = {"openai": OPENAI}  # provider -> its own address

    def __init__(self, settings: options.Settings, secrets: options.Secrets, endpoint: chat.Endpoint) -> None:
        if settings.provider not in self._homes and settings.base is None:
            raise errors.ConfigError(f"{settings.model}: adapter={self.name!r} needs api_base=..., an address.")
        super().__init__(settings, secrets, endpoint)
        self.drops_tools = False  # whether the server is known to: the template of its model has no place for them
        if settings.api_key is not None and self.url.startswith("http:") and not _PRIVATE.match(self.url):
            risk = f"{settings.model}: the key goes over plain http to a public host; use https."
            warnings.warn(risk, errors.SynmodWarning, stacklevel=4)

    @property
    def url(self) -> str:
        """The address of the endpoint."""
        return f"{self._root}{self.path}"

    @property
    def _root(self) -> str:
        """The address of the API."""
        return (self._settings.base or self._homes[self._settings.provider]).rstrip("/")

    @property
    def path(self) -> str:
        """The path of the endpoint, after the address of the API."""
        return self.wire.path or self._endpoint.path

    def check(self, request: LMRequest) -> None:
        """Raise at once if the request cannot succeed.

        Raises:
            AuthError, UnavailableError: As for every provider.
            RequestError: The API does not take a parameter, as OpenAI `top_k`; or the result of one would be lost.
        """
        super().check(request)
        refused = self.wire.refused or (("top_k",) if self._settings.base is None else ())
        if wrong := [name for name in request.params if name in refused]:
            message = f"this model does not take {', '.join(wrong)}; leave it out of the parameters."
            raise errors.RequestError(message, sent=False)

    async def prepare(self, request: LMRequest) -> None:  # noqa: ARG002  # the same for all requests
        """Load what the first request of a process needs.

        Raises:
            UnavailableError: SSL_CERT_FILE holds no certificates; not transient.
        """
        if load_roots.cache_info().currsize:
            return
        try:
            await aio.to_thread(load_roots)
        except OSError as error:  # SSLError is one
            why = f"SSL_CERT_FILE={os.environ.get('SSL_CERT_FILE')!r}: {error}"
            what = f"no trusted certificates can be read from {why}. Let it name a PEM file, or unset it."
            raise permanent_error(what) from None

    async def count_tokens(self, messages: Sequence[Message]) -> int | None:
        """Return how many tokens messages take by the tokenizer of the server, vLLM's or llama.cpp's; None without."""
        root = self._root.removesuffix("/v1")
        turns: dict[str, Any] = {"model": self._settings.model.partition("/")[2], "messages": list(messages)}

        async def ask(path: str, body: Mapping[str, Any]) -> Any:
            return an_object(parse_json(await self.fetch("POST", f"{root}{path}", body)))

        if aio.backend() == "asyncio":
            with aio.deadline_scope(CONNECT_S), suppress(errors.ModelError, ValueError):
                answer = await ask("/tokenize", turns)
                if "tokens" in answer and "count" not in answer:  # llama.cpp takes a text alone
                    prompt = await ask("/apply-template", turns)
                    answer = await ask("/tokenize", {"content": prompt.get("prompt"), "add_special": True})
                    return len(answer["tokens"]) if is_array(answer.get("tokens")) and prompt.get("prompt") else None
                return count_of(answer, "count") or None
        return None

    async def _open(
        self, url: str, body: bytes | Mapping[str, Any], key: SecretStr | None, method: str = "POST", kind: str = _JSON
    ) -> AbstractAsyncContextManager[ClientResponse]:
        """Return the context manager of a request."""
        session, users = await SESSIONS.get()
        users.add(self)
        data = body if isinstance(body, bytes) else json_text(body).encode()
        headers = {"content-type": kind, "user-agent": "synmod", **self.wire.headers}
        if key is not None:
            name, scheme = self.wire.key_header
            headers[name] = f"{scheme}{key.get_secret_value()}"
        headers |= {name.lower(): text for name, text in self._secrets.headers().items()}
        send = session.get if method == "GET" else session.post
        return send(url, data=data or None, headers=headers, allow_redirects=False, proxy=proxy_for(url))

    # -- for batch jobs -----------------------------------------------------------------------------------------------

    def line_of(self, request: LMRequest) -> dict[str, Any]:
        """Return the body of a request that is not streamed."""
        return self._body(request, streams=False)

    def read_line(self, status: int, answer: Json, request: LMRequest) -> LMReply | errors.ModelError:
        """Return the reply in an answer that came in a job, or the error that it states."""
        if status >= 300:
            return with_hints(http_error(status, {}, self._secrets.scrub(json_text(answer))), self._settings, request)
        return self._with_price(request, self._read(self.wire.answer(answer), request, {}))

    async def fetch(self, method: str, url: str, data: bytes | Mapping[str, Any] = b"", kind: str = _JSON) -> bytes:
        """Return the body of an answer of the server at another address, or path of the API.

        Raises:
            ModelError: There is none, or its status is not one of success.
        """
        import aiohttp

        url = f"{self._root}{url}" if url.startswith("/") else url

        async def send(key: SecretStr | None) -> AsyncGenerator[bytes | errors.ModelError]:
            try:
                async with await self._open(url, data, key, method, kind) as response:
                    content = await response.read()
                    text = self._secrets.scrub(content[:MOST_OF_ERROR].decode(errors="replace"))
                    is_error = response.status >= 300
                    yield http_error(response.status, _headers_of(response), text) if is_error else content
            except (aiohttp.ClientError, OSError) as error:
                yield _connection_error(error, self._secrets, self._settings.base)

        async with aclosing(chat.exchange(self._secrets, send)) as answers:
            return await anext(answers)

    async def aclose(self) -> None:
        """Close the connections of the running loop, unless another model uses them."""
        if (resource := SESSIONS.here()) is not None:
            _, users = resource
            users.discard(self)
            if not users:
                await SESSIONS.aclose()

    async def _request(self, request: LMRequest, key: SecretStr | None, *, streams: bool) -> Received:
        import aiohttp

        status, received, content = 0, dict[str, str](), bytearray()
        assembly: Assembly | None = None
        failure: errors.ModelError | None = None
        try:
            async with await self._open(self.url, self._body(request, streams=streams), key) as response:
                status, received = response.status, _headers_of(response)
                most = MOST_BODY if status < 300 else MOST_OF_ERROR
                async for packet in response.content.iter_any():
                    if not content and packet.isspace():  # keeps the connection alive
                        continue
                    if streams and status < 300 and not (assembly or content or _BODY.match(packet)):
                        assembly = Assembly(answer_name(request), self.wire.events())
                    if assembly is None:
                        content += packet
                        if len(content) > most:
                            break
                        continue
                    while packet:
                        part, packet = (packet, b"") if len(packet) <= _SLICE else (packet[:_SLICE], packet[_SLICE:])
                        for piece in assembly.read(part):
                            yield piece
                        if packet:  # others may go on between the parts of a large packet
                            await asyncio.sleep(0)
                    if assembly.has_ended:
                        if assembly.is_whole:
                            await _drain(response)
                        break
        except (aiohttp.ClientError, OSError) as error:
            failure = _connection_error(error, self._secrets, self._settings.base)
        for piece in () if assembly is None else assembly.end():
            yield piece
        if assembly is not None:
            size, work = assembly.size, partial(self._read_stream, assembly, request, received, failure)
        else:
            size, work = len(content), partial(self._read_content, request, status, received, content, failure)
        result = await aio.to_thread(work, abandon=True) if size > _LARGE else work()
        yield self._with_price(request, result)

    def _with_price(self, request: LMRequest, result: LMReply | errors.ModelError) -> LMReply | errors.ModelError:  # noqa: ARG002
        """Return a result with the price of what ran at the provider beside the model; as it is without such tools."""
        return result

    def _body(self, request: LMRequest, *, streams: bool) -> dict[str, Any]:
        """Return the body of a request."""
        body = {**self._request_body(request), **(chat.STREAMING if streams else {})}
        if self._settings.base is None and "max_tokens" in body:
            body["max_completion_tokens"] = body.pop("max_tokens")
        return {"model": self._settings.model.partition("/")[2], **body, **self._settings.extra_body}

    def _level(self, request: LMRequest) -> str:
        """Return how to request a schema, where the request leaves it open.

        That is natively of OpenAI, and of others beside tools as one more tool, or in text: they turn `response_format`
        into a grammar, which leaves the model no way to call a tool.
        """
        if (level := level_of(request)) is not None:
            return level
        if self._settings.base is None or not may_call(request):
            return "schema"
        return "calls" if self.drops_tools else "tool"

    def _read_content(
        self,
        request: LMRequest,
        status: int,
        received: Mapping[str, str],
        content: bytearray,
        failure: errors.ModelError | None,
    ) -> LMReply | errors.ModelError:
        """Return the reply in the content of an answer, or the error of the connection or that its status means."""
        if failure is not None:
            return failure
        if status < 300 and len(content) > MOST_BODY:
            return errors.BadReplyError("the reply is longer than 32 MiB", reason="not_json", status=status)
        if status < 300 and _EVENTS.match(content):  # some servers stream whatever the request wants
            assembly = Assembly(answer_name(request), self.wire.events())
            for _ in (*assembly.read(content), *assembly.end()):
                pass
            return self._read_stream(assembly, request, received)
        if status < 300:
            with suppress(ValueError):
                return self._read(self.wire.answer(read_json(content)), request, received)
            if received.get("content-encoding"):
                return errors.UnavailableError("the compressed body of the answer was cut, or is broken", status=status)
        error = http_error(status, received, self._secrets.scrub(content.decode(errors="replace")))
        return with_hints(error, self._settings, request)


# -- other APIs --------------------------------------------------------------------------------------------------------


class WireAdapter(DirectAdapter):
    """Sends requests in a form other than chat completions; what the price list knows of a model is heeded."""

    runs_native_tools = True
    takes_media_in_results = True
    _entry: Mapping[str, Any] | None = None  # of the model, in the price list; empty if it is not there

    async def prepare(self, request: LMRequest) -> None:
        """Load what the first request needs, and raise for what the model is known not to take.

        Raises:
            UnavailableError: SSL_CERT_FILE holds no certificates; not transient.
            RequestError: The model is known not to take tools, images, files, sampling parameters or an effort.
        """
        await super().prepare(request)
        if self._entry is None:
            self._entry = await aio.to_thread(list_entry, self._settings.model)
        for ability, uses in _ABILITIES.items():
            if self._entry.get(f"supports_{ability}") is False and (what := uses(request)):
                raise errors.RequestError(f"this model does not take {what}; leave it out.", sent=False)

    async def count_tokens(self, messages: Sequence[Message]) -> int | None:  # no tokenizer is public
        """Return None: the tokens are estimated."""

    def _knows(self, name: str, default: Any = None) -> Any:
        """Return what the price list has on the model; `default` where it has nothing."""
        return (self._entry or _NOTHING).get(name, default)

    def _with_price(self, request: LMRequest, result: LMReply | errors.ModelError) -> LMReply | errors.ModelError:
        message: Any = result.message if isinstance(result, LMReply) else None
        blocks = (message or _NOTHING).get(PROVIDER_CONTENT, ()) if request.native_tools else ()
        searches = sum(block.get("name") == "web_search" or block.get("type") == "web_search_call" for block in blocks)
        if not searches or isinstance(result, errors.ModelError) or (price := token_price(self._settings)) is None:
            return result
        usage, rates = result.usage, self._knows("search_context_cost_per_query", _NOTHING)
        tokens = usage.prompt_tokens, usage.completion_tokens, usage.cached_tokens, usage.cache_write_tokens
        cost = price.cost_usd(*tokens) + searches * rates.get("search_context_size_medium", 0.0)
        return replace(result, usage=replace(usage, cost_usd=cost))

    def _body(self, request: LMRequest, *, streams: bool) -> dict[str, Any]:
        body = {"model": self._settings.model.partition("/")[2], **self._request_body(request)}
        body["native_tools"] = request.native_tools
        return {**self.wire.body(body | ({"stream": True} if streams else {})), **self._settings.extra_body}


_NOTHING: Final[Mapping[str, Any]] = MappingProxyType({})


def _params_in(*names: str) -> Callable[[LMRequest], str]:
    """Return a function that returns which of these parameters a request has, as text."""
    return lambda request: ", ".join(name for name in names if name in request.params)


def _parts_in(kind: str, name: str) -> Callable[[LMRequest], str]:
    """Return a function that returns the name of a kind of parts, if a request has one."""

    def find(request: LMRequest) -> str:
        contents = [turn["content"] for turn in request.messages if is_array(turn["content"])]
        return name if any(part.get("type") == kind for content in contents for part in content) else ""

    return find


_ABILITIES: Final[Mapping[str, Callable[[LMRequest], str]]] = {
    "sampling_params": _params_in("temperature", "top_p", "top_k"),
    "reasoning": _params_in("reasoning_effort"),
    "function_calling": lambda request: "tools" if request.tools else "",
    "vision": _parts_in("image_url", "images"),
    "pdf_input": _parts_in("file", "files"),
}
"""Ability in the price list -> what of a request needs it."""


class MessagesAdapter(WireAdapter):
    """Sends requests to Anthropic's messages API."""

    name = "messages"
    wire = MESSAGES
    _homes: ClassVar[Mapping[str, str]] = {"anthropic": ANTHROPIC}

    def reasons(self, request: LMRequest) -> bool:
        """Whether the model reasons on a request, and returns its reasoning."""
        effort = request.params.get("reasoning_effort")
        return effort not in ("none", "disable") if effort else bool(self._knows("thinking_always_on"))

    def _level(self, request: LMRequest) -> str:
        """Return how to request a schema: natively if the API takes it, else as a tool if one may be forced."""
        if (level := level_of(request)) is not None or request.schema is None:
            return level or "schema"
        if self._knows("supports_native_structured_output", default=True) and is_in_grammar(request.schema):
            return "schema"
        is_free = self._knows("supports_forced_tool_use", default=True) and not self.reasons(request)
        return "tool" if is_free else "prompt"

    def _request_body(self, request: LMRequest) -> dict[str, Any]:
        """Return the body in the shape of chat completions, with the limit of tokens that the API wants."""
        body = {"max_tokens": self._knows("max_output_tokens", _MOST_TOKENS), **super()._request_body(request)}
        if self._knows("supports_reasoning") and not self._knows("supports_adaptive_thinking"):
            body["thinking"] = "budget"
        return body


_MOST_TOKENS: Final = 4_096  # of a reply of a model that is not in the price list; each takes that many


class ResponsesAdapter(WireAdapter):
    """Sends requests to OpenAI's responses API, or to a server that has it."""

    name = "responses"
    wire = RESPONSES

    def _level(self, request: LMRequest) -> str:
        """Return how to request a schema: natively, where the request leaves it open."""
        return level_of(request) or "schema"

    def _request_body(self, request: LMRequest) -> dict[str, Any]:
        """Return the body in the shape of chat completions, and whether the model may reason."""
        return {**super()._request_body(request), "reasons": not self._entry or self._knows("supports_reasoning")}


async def _drain(response: ClientResponse) -> None:
    """Read what is left of a body, if it comes at once: at its end the connection is free again."""
    with aio.deadline_scope(_LAST_PACKET_S):
        while await response.content.readany():
            pass


def _headers_of(response: ClientResponse) -> dict[str, str]:
    """Return the headers of an answer by lower-case name; bytes outside UTF-8 become question marks."""
    return {name.lower(): text.encode(errors="replace").decode() for name, text in response.headers.items()}


def _connection_error(error: Exception, secrets: options.Secrets, base: str | None) -> errors.ModelError:
    """Return the error for an exception of aiohttp."""
    import aiohttp

    if (failure := no_connection(error, base)) is not None:
        return failure
    if isinstance(error, aiohttp.ConnectionTimeoutError):
        return errors.UnavailableError(f"no connection within {CONNECT_S:g} s")
    if isinstance(error, aiohttp.ServerTimeoutError):
        return errors.ModelTimeout("the connection brought no answer in time")
    if isinstance(error, aiohttp.ClientResponseError):  # its status is not the server's
        why = " ".join(error.message.split())
        return errors.UnavailableError(secrets.scrub(f"the answer is not HTTP that can be read: {why}"))
    return errors.UnavailableError(secrets.scrub(f"{type(error).__name__}: {error}"))
