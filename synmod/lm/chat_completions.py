"""Chat completions: the direct adapter, for OpenAI itself and every server that is compatible with it, over aiohttp.

One session per event loop; no redirects, no `.netrc`, nothing from the environment but proxies and trusted roots. The
litellm adapter shares the second half: per-loop resources, the body of a request, the reply in an answer, the error for
a failure.
"""

from __future__ import annotations

import asyncio
import atexit
import os
import re
import socket
import ssl
import traceback
import warnings
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from contextlib import aclosing, suppress
from functools import cache, partial
from typing import TYPE_CHECKING, Any, Final, Generic, NamedTuple, TypeAlias, TypeVar, cast
from urllib.parse import urlsplit
from weakref import WeakSet

from synmod import errors
from synmod.data import parse_json
from synmod.leaves import Json, aio, is_array, is_object, mend, wall_time
from synmod.scope import Usage

from . import options, records
from .prompt import json_text, schema_text
from .records import LMChunk, LMReply, LMRequest, Message, message
from .replies import answer_name, end_of, schema_name, sent_back, tool_fields
from .streaming import MOST_BODY, Assembly, Thinking, error_in, read_json, reasoning_of, text_of
from .text_calls import may_call, read_in_text, structured_of, with_tools_in_text

if TYPE_CHECKING:
    from aiohttp import ClientResponse, ClientSession
    from pydantic import SecretStr

T = TypeVar("T")
Loop: TypeAlias = asyncio.AbstractEventLoop

OPENAI: Final = "https://api.openai.com/v1"

_PRIVATE: Final = re.compile(
    r"http://(\[.*\]|[^./:]+|(10|127|192\.168|172\.(1[6-9]|2\d|3[01]))\.[\d.]+|.*\.(internal|local|localhost|test))(:\d+)?/"
)
_CONNECT_S: Final = 10.0
_LAST_PACKET_S: Final = 0.1
_BODY: Final = re.compile(rb"(\xef\xbb\xbf)?\s*[{\[<]")  # how JSON or a page begins; the content type may be wrong
_EVENTS: Final = re.compile(rb"(\xef\xbb\xbf)?\s*(data|event|id|retry)?:")
_LARGE: Final = 2**16  # bytes that are parsed in a worker thread
_SLICE: Final = 2**14  # bytes of a stream that are parsed without a pause
_MOST_OF_ERROR: Final = 2**16  # bytes of the body of an error that are read
STREAMING: Final[Mapping[str, Any]] = {"stream": True, "stream_options": {"include_usage": True}}


class Endpoint(NamedTuple):
    """An endpoint of a provider: chat completions or embeddings.

    Attributes:
        path: The path after the base address of a server.
        function: The name of the litellm function.
        body: `body(request, level)` returns the body of the request, without the model.
        read: `read(json, request, headers)` returns the reply, None if there is none, or an error if it is unusable.
    """

    path: str
    function: str
    body: Callable[[Any, str], dict[str, Any]]
    read: Callable[[Json, Any, Mapping[str, str]], Any]


class DirectAdapter:
    """Sends requests to OpenAI or to an OpenAI-compatible server.

    Args:
        settings: The checked arguments of the model.
        secrets: Its key and headers.
        endpoint: Chat completions or embeddings.

    Raises:
        ConfigError: The provider's address is not known, and there is no `api_base`.
    """

    name = "direct"
    version = 1

    def __init__(self, settings: options.Settings, secrets: options.Secrets, endpoint: Endpoint) -> None:
        if settings.provider != "openai" and settings.base is None:
            raise errors.ConfigError(f"{settings.model}: adapter='direct' needs api_base=..., the server's address.")
        self._settings = settings
        self._secrets = secrets
        self._endpoint = endpoint
        self.drops_tools = False  # whether the server is known to: the template of its model has no place for them
        if settings.api_key is not None and self._url.startswith("http:") and not _PRIVATE.match(self._url):
            risk = f"{settings.model}: the key goes over plain http to a public host; use https."
            warnings.warn(risk, errors.SynmodWarning, stacklevel=4)

    @property
    def _base(self) -> str | None:
        """The address of the server; None for OpenAI itself."""
        return self._settings.base

    @property
    def _url(self) -> str:
        """The address of the endpoint."""
        return f"{(self._base or OPENAI).rstrip('/')}{self._endpoint.path}"

    def check(self, request: LMRequest) -> None:
        """Raise at once if the request cannot succeed.

        Raises:
            UnavailableError: trio runs this code.
            AuthError: There is no key where one is needed.
            RequestError: OpenAI does not take `top_k`; or the result of a parameter would be lost.
        """
        refuse_trio("the direct adapter")
        refuse_lost_results(request, self._settings)
        if self._base is None and (missing := self._secrets.missing()):
            raise missing
        if self._base is None and "top_k" in request.params:
            raise errors.RequestError("this model does not take top_k; leave it out of the parameters.", sent=False)

    async def prepare(self, request: LMRequest) -> None:  # noqa: ARG002  # the same for all requests
        """Load what the first request of a process needs.

        Raises:
            UnavailableError: SSL_CERT_FILE holds no certificates; not transient.
        """
        if not _roots.cache_info().currsize:
            try:
                await aio.to_thread(_roots)
            except OSError as error:  # SSLError is one
                why = f"SSL_CERT_FILE={os.environ.get('SSL_CERT_FILE')!r}: {error}"
            else:
                return
            raise _permanent(f"no trusted certificates can be read from {why}. Let it name a PEM file, or unset it.")

    async def send(self, request: LMRequest) -> LMReply:
        """Send one request."""
        async with aclosing(self._exchange(request, streams=False)) as received:
            return cast("LMReply", await anext(received))  # its only item

    def stream(self, request: LMRequest) -> AsyncGenerator[LMChunk | LMReply]:
        """Send one request, and yield the pieces of the reply as they arrive, last the reply itself."""
        return self._exchange(request, streams=True)

    def _exchange(self, request: LMRequest, *, streams: bool) -> AsyncGenerator[LMChunk | LMReply]:
        """Send one request with its key, and yield what is received."""
        if self._level(request) == "calls":
            asked = with_tools_in_text(request)
            return exchange(
                self._secrets, lambda key: read_in_text(self._received(asked, key, streams=streams), request)
            )
        return exchange(self._secrets, lambda key: self._received(request, key, streams=streams))

    async def count_tokens(self, messages: Sequence[Message]) -> int | None:
        """Return how many tokens messages take by the tokenizer of the server, vLLM's or llama.cpp's; None without."""
        root = (self._base or OPENAI).rstrip("/").removesuffix("/v1")
        turns: dict[str, Any] = {"model": self._settings.model.partition("/")[2], "messages": list(messages)}
        answer = await self._answer_at(f"{root}/tokenize", turns)
        if is_object(answer) and "count" not in answer and "tokens" in answer:  # llama.cpp takes a text alone
            prompt = await self._answer_at(f"{root}/apply-template", turns)
            text = prompt.get("prompt") if is_object(prompt) else None
            answer = await self._answer_at(f"{root}/tokenize", {"content": text, "add_special": True})
            if text and is_object(answer) and is_array(answer.get("tokens")):
                return len(answer["tokens"])
        return count_in(answer, "count") or None

    async def _answer_at(self, url: str, body: Mapping[str, Any]) -> Json:
        """Return the JSON that the server answers at another address of its own; None for any failure."""
        import aiohttp

        async def send(key: SecretStr | None) -> AsyncGenerator[Json | errors.ModelError]:
            (session, users), content = await _SESSIONS.get(), bytearray()
            users.add(self)
            data = json_text(body).encode()
            try:
                async with session.post(
                    url, data=data, headers=self._headers(key), allow_redirects=False, proxy=_proxy(url)
                ) as response:
                    async for packet in response.content.iter_any():
                        content += packet
                        if response.status >= 300 or len(content) > MOST_BODY:
                            break
                    yield parse_json(bytes(content)) if response.status < 300 else None
            except (aiohttp.ClientError, OSError, ValueError):
                yield None

        if aio.backend() == "asyncio":
            with aio.deadline_scope(_CONNECT_S), suppress(errors.ModelError):
                async with aclosing(exchange(self._secrets, send)) as answers:
                    return await anext(answers)
        return None

    async def aclose(self) -> None:
        """Close the connections of the running loop, unless another model uses them."""
        if held := _SESSIONS.here():
            held[1].discard(self)
            if not held[1]:
                await _SESSIONS.aclose()

    async def _received(
        self, request: LMRequest, key: SecretStr | None, *, streams: bool
    ) -> AsyncGenerator[LMChunk | LMReply | errors.ModelError]:
        """Send one request with its key; yield the pieces as they arrive, last the reply; a failure is not raised."""
        import aiohttp

        url, body = self._url, self._body(request, streams=streams)
        session, users = await _SESSIONS.get()
        users.add(self)
        data = json_text(body).encode()
        status, received, content = 0, dict[str, str](), bytearray()
        assembly: Assembly | None = None
        failure: errors.ModelError | None = None
        try:
            async with session.post(
                url, data=data, headers=self._headers(key), allow_redirects=False, proxy=_proxy(url)
            ) as response:
                status, received = response.status, _headers_of(response)
                most = MOST_BODY if status < 300 else _MOST_OF_ERROR
                async for packet in response.content.iter_any():
                    if not content and packet.isspace():  # keeps the connection alive
                        continue
                    if streams and status < 300 and not (assembly or content or _BODY.match(packet)):
                        assembly = Assembly(answer_name(request))
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
            failure = _broken(error, self._secrets, self._base)
        for piece in () if assembly is None else assembly.end():
            yield piece
        yield await self._result(request, status, received, assembly or content, failure)

    async def _result(
        self,
        request: LMRequest,
        status: int,
        received: Mapping[str, str],
        content: Assembly | bytearray,
        failure: errors.ModelError | None,
    ) -> LMReply | errors.ModelError:
        """Return the reply in what came, read in a worker thread if it is large, or the error."""
        if isinstance(content, Assembly):
            size = content.size
            work = partial(streamed_reply, content, self._endpoint, request, received, self._secrets, failure)
        elif failure is not None:
            return failure
        else:
            size, work = len(content), partial(self._outcome, request, status, received, content)
        return await aio.to_thread(work, abandon=True) if size > _LARGE else work()

    def _body(self, request: LMRequest, *, streams: bool) -> dict[str, Any]:
        """Return the body of a request."""
        body = self._endpoint.body(request, self._level(request)) | (STREAMING if streams else {})
        if self._base is None and "max_tokens" in body:
            body["max_completion_tokens"] = body.pop("max_tokens")
        return {"model": self._settings.model.partition("/")[2], **body, **self._settings.extra_body}

    def _level(self, request: LMRequest) -> str:
        """Return how to request a schema, where the request leaves it open.

        That is natively of OpenAI, and of others beside tools as one more tool, or in text: they turn `response_format`
        into a grammar, which leaves the model no way to call a tool.
        """
        if (level := structured_of(request)) is not None:
            return level
        if self._base is None or not may_call(request):
            return "schema"
        return "calls" if self.drops_tools else "tool"

    def _headers(self, key: SecretStr | None) -> dict[str, str]:
        """Return the headers of a request."""
        headers = {"content-type": "application/json", "user-agent": "synmod"}
        if key is not None:
            headers["authorization"] = f"Bearer {key.get_secret_value()}"
        return headers | {name.lower(): text for name, text in self._secrets.headers().items()}

    def _outcome(
        self, request: LMRequest, status: int, received: Mapping[str, str], content: bytearray
    ) -> LMReply | errors.ModelError:
        """Return the reply in the content of an answer, or the error that its status stands for."""
        if status < 300 and len(content) > MOST_BODY:
            return errors.BadReplyError("the reply is longer than 32 MiB", reason="not_json", status=status)
        if status < 300 and _EVENTS.match(content):  # some servers stream whatever the request wants
            assembly = Assembly()
            for _ in (*assembly.read(content), *assembly.end()):
                pass
            return streamed_reply(assembly, self._endpoint, request, received, self._secrets)
        if status < 300:
            with suppress(ValueError):
                return read_reply(self._endpoint, read_json(content), request, received, self._secrets)
            if received.get("content-encoding"):
                return errors.UnavailableError("the compressed body of the answer was cut, or is broken", status=status)
        error = http_error(status, received, self._secrets.scrub(content.decode(errors="replace")))
        return with_hints(error, self._settings, request)


async def _drain(response: ClientResponse) -> None:
    """Read what is left of a body, if it comes at once: at its end the connection is free again."""
    with aio.deadline_scope(_LAST_PACKET_S):
        while await response.content.readany():
            pass


def _headers_of(response: ClientResponse) -> dict[str, str]:
    """Return the headers of an answer by lower-case name; bytes outside UTF-8 become question marks."""
    return {name.lower(): text.encode(errors="replace").decode() for name, text in response.headers.items()}


def _broken(error: Exception, secrets: options.Secrets, base: str | None) -> errors.ModelError:
    """Return the error for an exception of aiohttp."""
    import aiohttp

    if (failure := no_connection(error, base)) is not None:
        return failure
    if isinstance(error, aiohttp.ConnectionTimeoutError):
        return errors.UnavailableError(f"no connection within {_CONNECT_S:g} s")
    if isinstance(error, aiohttp.ServerTimeoutError):
        return errors.ModelTimeout("the connection brought no answer in time")
    if isinstance(error, aiohttp.ClientResponseError):  # its status is not the server's
        why = " ".join(error.message.split())
        return errors.UnavailableError(secrets.scrub(f"the answer is not HTTP that can be read: {why}"))
    return errors.UnavailableError(secrets.scrub(f"{type(error).__name__}: {error}"))


@cache
def _proxy(url: str) -> str | None:
    """Return the proxy for an address, from the usual environment variables as they are at the first request."""
    from urllib.request import getproxies, proxy_bypass

    parts = urlsplit(url)
    return None if proxy_bypass(parts.hostname or "") else getproxies().get(parts.scheme)


@cache
def _roots() -> ssl.SSLContext:
    """Import aiohttp and read the trusted roots, certifi's or those of SSL_CERT_FILE; both take a while."""
    import aiohttp  # noqa: F401  # pyright: ignore[reportUnusedImport]  # so that later imports are immediate
    import certifi

    return ssl.create_default_context(cafile=os.environ.get("SSL_CERT_FILE") or certifi.where())


def _opened() -> tuple[ClientSession, WeakSet[DirectAdapter]]:
    """Open a session that adds nothing to a request; return it with the set of adapters that use it."""
    import aiohttp

    try:
        import resource

        most = max(100, resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 2)
    except ImportError:  # Windows
        most = 1_000
    session = aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=most, ssl=_roots()),
        timeout=aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT_S),
        cookie_jar=aiohttp.DummyCookieJar(),
    )
    return session, WeakSet()


# -- resources per event loop ----------------------------------------------------------------------------------------


class PerLoop(Generic[T]):
    """A resource per event loop of asyncio: opened when first needed, closed when the loop ends.

    Args:
        opened: Opens a resource.
        close: Closes it, in its loop.
        drop: Frees it where its loop was closed before, or belongs to the parent of this forked process.
    """

    def __init__(
        self,
        opened: Callable[[], T],
        close: Callable[[Loop, T], Coroutine[Any, Any, None]],
        drop: Callable[[T], object] = lambda _: None,
    ) -> None:
        self._opened = opened
        self._close = close
        self._drop = drop
        self._held: dict[Loop, tuple[T, AsyncGenerator[None]]] = {}
        atexit.register(self._close_all)
        aio.in_forked_child(lambda: self._abandon(self._held))

    async def get(self) -> T:
        """Return the resource of the running loop."""
        loop = asyncio.get_running_loop()
        if loop not in self._held:
            self._abandon([each for each in list(self._held) if each.is_closed()])
            held = self._opened()
            ending = self._until_the_loop_ends(loop)
            self._held[loop] = held, ending
            await anext(ending)  # the loop now tracks the generator, and closes it when it ends
        return self._held[loop][0]

    def here(self) -> T | None:
        """Return the resource of the running loop; None if there is none."""
        found = self._held.get(asyncio.get_running_loop())
        return found and found[0]

    async def aclose(self) -> None:
        """Close the resource of the running loop."""
        if found := self._held.get(asyncio.get_running_loop()):
            await found[1].aclose()

    async def _until_the_loop_ends(self, loop: Loop) -> AsyncGenerator[None]:
        """Wait to be closed, by `aclose` or by the end of the loop."""
        try:
            yield
        finally:
            if found := self._held.pop(loop, None):
                await self._close(loop, found[0])

    def _abandon(self, loops: Iterable[Loop]) -> None:
        """Drop the resources of loops that cannot close them."""
        for loop in list(loops):
            if found := self._held.pop(loop, None):  # else another thread has dropped it
                self._drop(found[0])
                aio.drive(found[1].aclose())  # ends at once, since nothing is held

    def _close_all(self) -> None:
        """Close the resources of the loops that do not run, at the end of the process."""
        self._abandon([loop for loop in list(self._held) if loop.is_closed()])
        for loop, (_, ending) in list(self._held.items()):
            if not loop.is_running():
                loop.run_until_complete(ending.aclose())


def _drop_session(held: tuple[ClientSession, WeakSet[DirectAdapter]]) -> None:
    """Close the sockets of a session one by one.

    Neither aiohttp nor asyncio has a public way to do so without their loop. The selector, which a forked child shares
    with its parent, is not touched.
    """
    session = held[0]
    connector: Any = session.connector
    idle = [protocol for connections in connector._conns.values() for protocol, *_ in connections]
    for protocol in (*idle, *connector._acquired):
        tls: Any = getattr(protocol.transport, "_ssl_protocol", None)
        transport: Any = protocol.transport if tls is None else tls._transport
        close = getattr(transport, "_call_connection_lost", None)
        if close is not None:  # uvloop closes its sockets with the loop
            with suppress(RuntimeError):  # a closed loop schedules no callbacks
                close(None)
    connector._conns.clear()
    connector._acquired.clear()
    connector._closed = True
    session.detach()


_SESSIONS: Final = PerLoop(_opened, lambda _, held: held[0].close(), _drop_session)


# -- bodies and replies ----------------------------------------------------------------------------------------------

_STRICT_KEYWORDS: Final = frozenset({
    "$defs", "$ref", "additionalProperties", "anyOf", "const", "description", "enum", "exclusiveMaximum",
    "exclusiveMinimum", "format", "items", "maxItems", "maximum", "minItems", "minimum", "multipleOf", "pattern",
    "properties", "required", "title", "type",
})  # fmt: skip
_STRICT_FORMATS: Final = frozenset(
    {"date", "date-time", "duration", "email", "hostname", "ipv4", "ipv6", "time", "uuid"}
)
_STRICT_MOST: Final = {"properties": 100, "values": 1_000, "characters": 120_000}
_DEEPEST_STRICT, _LONG_ENUM, _MOST_OF_LONG_ENUM = 5, 250, 15_000


def refuse_trio(who: str) -> None:
    """Raise UnavailableError, which is not transient, where trio runs this code."""
    if aio.backend() == "trio":
        raise _permanent(f"{who} needs asyncio, and trio runs this code.")


_WITHOUT_RESULT: Final[Mapping[str, tuple[Json, ...]]] = {
    "audio": (), "best_of": (1,), "echo": (False,), "logprobs": (False, 0), "modalities": (["text"],), "n": (1,),
    "n_probs": (0,), "prompt_logprobs": (0, False), "return_token_ids": (False,), "top_logprobs": (0,),
}  # fmt: skip
"""Field of a body whose result no reply can hold yet -> the values that request none."""


def refuse_lost_results(request: LMRequest, settings: options.Settings) -> None:
    """Raise RequestError for a parameter that would be paid for, and whose result would be lost."""
    for name, value in (*request.params.items(), *settings.extra_body.items()):
        if name in _WITHOUT_RESULT and value is not None and value not in _WITHOUT_RESULT[name]:
            lost = f"{name}={value!r:.100}: the reply cannot hold its result yet; leave it out."
            raise errors.RequestError(lost, sent=False)


def chat_body(request: LMRequest, level: str) -> dict[str, Any]:
    """Return messages, parameters and response format of a request, as chat completions take them."""
    body: dict[str, Any] = dict(request.params)
    messages, schema = request.messages, request.schema
    answer = None  # fields of the tool that carries the schema
    if schema is not None:
        strict = {"strict": True} if level in ("schema", "tool") and is_strict(schema) else {}
        if level == "schema":
            form = {"name": schema_name(schema), "schema": schema, **strict}
            body["response_format"] = {"type": "json_schema", "json_schema": form}
        elif level == "tool" and schema.get("type") == "object":
            answer = strict
        else:
            messages = _with_schema(messages, schema)
        if level == "json":
            body["response_format"] = {"type": "json_object"}
    body |= tool_fields(request, answer=answer)
    body["messages"] = list(messages)
    return body


def _with_schema(messages: tuple[Message, ...], schema: Json) -> tuple[Message, ...]:
    """Write a schema that is not sent as a field into the system turn, unless a turn already shows it."""
    if any("<output_schema>" in str(turn["content"]) for turn in messages):
        return messages
    shown = schema_text(schema)
    first = messages[0]
    if first["role"] == "system" and isinstance(first["content"], str):
        return (message("system", f"{first['content']}\n{shown}"), *messages[1:])
    return (message("system", shown), *messages)


def is_strict(schema: Json) -> bool:
    """Whether a schema lies in the strict subset of OpenAI and Azure, the lower limit of both counting.

    Every part has a type, every object is closed and requires all its fields, and only the keywords and formats of the
    tables above occur; the root is an object. Depth, properties, values of enums and their characters are limited.
    """
    if not is_object(schema) or schema.get("type") != "object" or "anyOf" in schema:
        return False
    sums = dict.fromkeys(_STRICT_MOST, 0)
    pending: list[tuple[Any, int]] = [(schema, 0)]
    while pending:
        part, depth = pending.pop()
        if not is_object(part) or depth > _DEEPEST_STRICT or not part.keys() <= _STRICT_KEYWORDS:
            return False
        if ("$ref" in part and len(part) > 1) or not part.keys() & {"$ref", "anyOf", "type"}:
            return False
        kinds = part.get("type", ())
        kinds = (kinds,) if isinstance(kinds, str) else kinds
        if part.get("format", "date") not in _STRICT_FORMATS or ("array" in kinds and "items" not in part):
            return False
        if "(?" in part.get("pattern", ""):  # looks around, which no grammar can
            return False
        named, defined = part.get("properties", {}), part.get("$defs", {})
        is_closed = part.get("additionalProperties") is False and set(part.get("required", ())) == set(named)
        if ("properties" in part or "object" in kinds) and not is_closed:
            return False
        values = part.get("enum", ())
        length = sum(len(str(value)) for value in values)
        if len(values) > _LONG_ENUM and length > _MOST_OF_LONG_ENUM:
            return False
        sums["properties"] += len(named)
        sums["values"] += len(values)
        sums["characters"] += length + len(str(part.get("const", ""))) + sum(map(len, (*named, *defined)))
        deeper = [*named.values(), *([part["items"]] if "items" in part else [])]
        pending += [(inner, depth + 1) for inner in deeper]
        pending += [(inner, depth) for inner in (*defined.values(), *part.get("anyOf", ()))]
    return all(sums[name] <= most for name, most in _STRICT_MOST.items())


def read_reply(
    endpoint: Endpoint, json: Json, request: Any, headers: Mapping[str, str], secrets: options.Secrets
) -> Any:
    """Return the reply in the body of a successful answer, or the error that it states."""
    if (error := _error_of(json)) is None and (reply := endpoint.read(json, request, headers)) is not None:
        return reply
    return _stated(error, json, headers, secrets)


def reply_of(response: Json, request: LMRequest, headers: Mapping[str, str]) -> LMReply | errors.ModelError | None:
    """Return the first choice of a chat completion as a reply; None if there is none."""
    choices = response.get("choices") if is_object(response) else None
    choice = choices[0] if is_array(choices) and choices else None
    answer = choice.get("message") if is_object(choice) else None
    if not is_object(response) or not is_object(choice) or not is_object(answer):
        return None
    specific: Json = answer.get("provider_specific_fields")
    refusal = text_of(answer.get("refusal")) or text_of(specific.get("refusal") if is_object(specific) else None)
    thought, text = Thinking().part(text_of(answer.get("content")), is_last=True)
    text, calls = refusal or text, answer.get("tool_calls")
    if not calls and is_object(answer.get("function_call")):
        calls = [{"function": answer["function_call"]}]
    calls: Any = tuple(calls) if is_array(calls) else ()  # read and checked by the call
    request_id = headers.get("x-request-id") or headers.get("request-id") or response.get("id")
    try:
        before = sent_back(answer, text)
    except errors.DataError as error:  # a stream may nest deeper than a body
        return errors.BadReplyError(
            f"the reasoning in the reply cannot be read: {error}", reason="not_json", status=200
        )
    return LMReply(
        text,
        message=before,
        tool_calls=calls,
        reasoning=reasoning_of(answer) or thought or None,
        finish_reason="refusal" if refusal else text_of(choice.get("finish_reason")) or None,
        usage=_usage(response, request, len(text)),
        model=request.model,
        request_id=text_of(request_id) or None,
    )


CHAT: Final = Endpoint("/chat/completions", "acompletion", chat_body, reply_of)
"""Chat completions."""


async def exchange(
    secrets: options.Secrets, send: Callable[[SecretStr | None], AsyncGenerator[T | errors.ModelError]]
) -> AsyncGenerator[T]:
    """Yield the items of `send(key)`, and raise an error among them, so that no frame of a traceback holds the key.

    Reporters of errors print the values in the frames of a traceback, so whatever `send` raises, such as a
    cancellation, is raised again here without its frames; those of a fault in our code are listed in a note.
    """
    key = await secrets.key()  # outside, so that what a callable of the user raises keeps its frames
    failure: BaseException | None = key if isinstance(key, errors.AuthError) else None
    try:
        if not isinstance(key, errors.AuthError):
            async with aclosing(send(key)) as items:
                async for item in items:
                    if isinstance(item, errors.ModelError):
                        failure = item
                        del item
                        break
                    yield item
    except BaseException as error:  # noqa: BLE001  # raised below
        if isinstance(error, Exception):
            errors.add_note(error, "".join(traceback.format_tb(error.__traceback__)))
        error.__context__ = error.__cause__ = None
        failure = error.with_traceback(None)
    if failure is not None:
        try:
            raise failure
        finally:
            del failure  # else the error and this frame would hold each other


def streamed_reply(
    assembly: Assembly,
    endpoint: Endpoint,
    request: Any,
    headers: Mapping[str, str],
    secrets: options.Secrets,
    failure: errors.ModelError | None = None,
) -> Any:
    """Return the streamed reply; an error if the stream held one or ended early."""
    if assembly.error is not None:
        return _stated(assembly.error, assembly.error, headers, secrets)
    if assembly.fault:
        fault = options.shortened(secrets.scrub(assembly.fault), 300)
        return errors.BadReplyError(fault, reason="not_json", status=200)
    if assembly.is_whole:
        return read_reply(endpoint, assembly.response(), request, headers, secrets)
    return failure or errors.UnavailableError("the stream ended before the reply did")


_PROMPT: Final = ("prompt_tokens", "input_tokens", "prompt_n")
_COMPLETION: Final = ("completion_tokens", "output_tokens", "predicted_n")
_CACHED: Final = ("cached_tokens", "prompt_cache_hit_tokens", "cache_read_input_tokens", "cache_n")
_DETAILS: Final = (
    "prompt_tokens_details",
    "completion_tokens_details",
    "input_tokens_details",
    "output_tokens_details",
)
_MOST_TOKENS: Final = 2**53


def _usage(response: dict[str, Json], request: LMRequest, characters: int) -> Usage:
    """Return the tokens that the provider counted, under whatever name, else an estimate."""
    own: Json = response.get("x_groq")
    sources = (response.get("usage"), own.get("usage") if is_object(own) else None, response.get("timings"))
    usage: Any = next(filter(is_object, sources), None) or {}
    counts: dict[str, Json] = {**usage}
    for name in _DETAILS:
        counts |= usage[name] if is_object(usage.get(name)) else {}
    prompt, completion, cached = (
        next(filter(None, (count_in(counts, name) for name in names)), 0) for names in (_PROMPT, _COMPLETION, _CACHED)
    )
    if not prompt and not completion:
        return records.estimated_usage(request, characters)
    reasoning = count_in(counts, "reasoning_tokens")
    return Usage(prompt_tokens=prompt, completion_tokens=completion, cached_tokens=cached, reasoning_tokens=reasoning)


def count_in(counts: Json, name: str) -> int:
    """Return a number of tokens by name; 0 if it is missing, or no such number."""
    count = counts.get(name) if is_object(counts) else None
    try:
        number = float(count) if isinstance(count, int | float | str) and count is not True else 0.0
    except (OverflowError, ValueError):
        return 0
    return int(number) if 0 < number < _MOST_TOKENS else 0


# -- failures --------------------------------------------------------------------------------------------------------

Kind: TypeAlias = type[errors.ModelError] | str
"""A class of ours, or the reason of a `BadReplyError`."""

_REFUSED, _UNREADABLE = "refused", "not_json"

_BY_CLASS: Final[Mapping[str, Kind]] = {
    "APIResponseValidationError": _UNREADABLE,
    "ContentPolicyViolationError": _REFUSED,
    "ContextWindowExceededError": errors.ContextWindowError,
    "Timeout": errors.ModelTimeout,
}
"""Exception classes of litellm whose status is not specific."""

_NOT_SENT: Final = frozenset({"LiteLLMUnknownProvider", "ModelNotMappedError", "UnsupportedParamsError"})
_NO_ANSWER: Final = frozenset({"ReadTimeout", "WriteTimeout", "ServerTimeoutError", "SocketTimeoutError"})
_BROKEN: Final = frozenset({"TransportError", "ClientError", "ConnectionError", "APIConnectionError"})

_PREFIX: Final = re.compile(r"^(?:(?:litellm\.)?(?:\w+ )?\w*(?:Error|Exception|Timeout)(?: - |: ))+")
_NO_CREDENTIALS: Final = ("missing credentials", "unable to locate credentials", "no key is set", "api key not found")
_UNSET: Final = re.compile(r"missing|must provide|required|provide an|(not|base was) set|not provided|pip install")
_LOADING: Final = re.compile(r"loading|warming up|starting")
_TOO_LONG: Final = (
    "context_length", "context length", "context limit", "context size", "context window", "exceed_context_size",
    "exceed the configured limit", "exceeds max length", "exceeds the maximum number of tokens", "input is too long",
    "length of all messages", "longer than the maximum model length", "max_new_tokens` must be", "maximum context",
    "maximum prompt length", "model token limit", "must have less than", "prompt is too long", "prompt too long",
    "range of input length", "reduce the length of", "reduce your message size", "string_above_max_length",
    "too large for model", "too large to process", "too many input tokens", "too many tokens",
)  # fmt: skip
_NO_QUOTA: Final = ("insufficient_quota", "billing_hard_limit", "billing_not_active", "credit balance")
_QUOTA_TEXT: Final = "exceeded your current quota"  # an empty account, or a rate limit if the text mentions a retry
_UNABLE: Final = ("not supported", "does not support", "not implemented")  # llama.cpp refuses images by 500
_FILTERED: Final = ("content_filter", "content_policy_violation", "content management policy")
_STATUS_OF_WORD: Final = {
    "ratelimit": 429, "toomanyrequests": 429, "resourceexhausted": 429, "throttl": 429, "quota": 429,
    "authentication": 401, "unauthenticated": 401, "unauthorized": 401, "apikey": 401, "permission": 403,
    "forbidden": 403, "payment": 402, "credit": 402, "notfound": 404, "badrequest": 400, "invalidrequest": 400,
    "invalidargument": 400, "contextlength": 400, "contextsize": 400, "contentfilter": 400, "contentpolicy": 400,
    "timeout": 504, "deadlineexceeded": 504, "overloaded": 503, "unavailable": 503,
}  # fmt: skip
"""Word in the code or type of an error that has no status of its own -> the status that it stands for."""

_STATUS_KEYS: Final = ("code", "status", "status_code", "type")
_MOST_QUOTED: Final = 1_500  # bytes of the provider's text, so that our own hints have room behind it


def http_error(status: int, headers: Mapping[str, str], body: str) -> errors.ModelError:
    """Return the error for an unsuccessful answer, or for one without a reply.

    Args:
        status: HTTP status.
        headers: Headers of the answer, by lower-case name.
        body: Its text, scrubbed of secrets.
    """
    quoted = ""
    with suppress(ValueError):
        quoted = message_in(parse_json(body))
    quoted = quoted or body.strip() or ("an empty body" if status < 300 else f"HTTP status {status}")
    return _made(_kind(status, body.casefold()), status, headers, quoted)


def _error_of(json: Json) -> Json:
    """Return the error that a successful answer states, for itself or for its first choice; None if there is none."""
    json = _only_item(json)
    if not is_object(json):
        return None
    choices = json.get("choices")
    choice = choices[0] if is_array(choices) and choices else None
    if (error := error_in(json)) or not is_object(choice):
        return error or None
    is_limited = end_of(choice.get("finish_reason")) in ("length", "content_filter")  # which is no error of the server
    return None if is_limited else choice.get("error") or None


def _only_item(json: Json) -> Json:
    """Return what is inside an array of one: Gemini puts one around its errors."""
    return json[0] if is_array(json) and len(json) == 1 else json


def _stated(error: Json, json: Json, headers: Mapping[str, str], secrets: options.Secrets) -> errors.ModelError:
    """Return the error for a successful answer without a reply: the one that it states, else that it has none."""
    text = secrets.scrub(json_text(json if error is None else {"error": error})[:_MOST_OF_ERROR])
    stated = [error.get(key) for key in _STATUS_KEYS] if is_object(error) else [error]
    status = next((int(code) for code in map(str, stated) if re.fullmatch("[45][0-9][0-9]", code)), None)
    if status is None and error is not None:
        words = re.sub(r"[^a-z]", "", " ".join(map(str, stated)).casefold())
        known = (status for word, status in _STATUS_OF_WORD.items() if word in words)
        status = 400 if any(word in text.casefold() for word in _TOO_LONG) else next(known, 500)
    return http_error(status or 200, headers, text)


def litellm_error(error: Exception, text: str, base: str | None = None) -> errors.ModelError:
    """Return the error for an exception of litellm; only the text of the original is kept.

    Args:
        error: The exception.
        text: Its message, scrubbed of secrets.
        base: The address of the server; None for the provider's own endpoint.
    """
    if (failure := no_connection(error, base)) is not None:
        return failure
    text = text.partition("\nTraceback (most recent call last)")[0]
    low = f"{text} {getattr(error, 'code', '')} {getattr(error, 'type', '')}".casefold()
    quoted = _PREFIX.sub("", text).strip() or type(error).__name__
    if any(words in low for words in _NO_CREDENTIALS) or ("missing" in low and "api key" in low):
        return _made(errors.AuthError, None, {}, quoted)
    own = {kind.__name__ for kind in type(error).__mro__}
    if own & _NOT_SENT or "llm provider not provided" in low:
        return _made(errors.RequestError, None, {}, quoted)
    others = [type(one).__mro__ for one in _chain(error) if "litellm" not in type(one).__module__]
    broken = {kind.__name__ for kinds in others for kind in kinds}
    if broken & _NO_ANSWER or broken & _BROKEN:  # litellm invents a status for these
        return _made(errors.ModelTimeout if broken & _NO_ANSWER else errors.UnavailableError, None, {}, quoted)
    status = getattr(error, "status_code", None)
    status = status if isinstance(status, int) and not isinstance(error, TimeoutError) else None
    if (status or 500) >= 500 and _UNSET.search(low) and {kinds[0].__module__ for kinds in others} <= {"builtins"}:
        return _made(errors.RequestError, None, {}, quoted)  # found by litellm's own code, which invents a status
    usual = errors.RequestError if status is None else _kind(status, low)
    kind = next((kind for name, kind in _BY_CLASS.items() if name in own), usual)
    held = getattr(error, "litellm_response_headers", None) or getattr(getattr(error, "response", None), "headers", {})
    return _made(kind, status, {str(name).casefold(): str(value) for name, value in dict(held).items()}, quoted)


def _chain(error: BaseException) -> list[BaseException]:
    """Return an exception and what it was raised from, outermost first."""
    chain = [error]
    while (cause := chain[-1].__cause__ or chain[-1].__context__) is not None and cause not in chain:
        chain.append(cause)
    return chain


_CERTIFICATES: Final = {
    10: "renew the certificate of the server, or correct the clock of this host",
    62: "write the host name that the certificate is for into the address",
    64: "write the host name that the certificate is for into the address",
}
"""OpenSSL's number of a fault of a certificate -> what to do."""


def no_connection(error: BaseException, base: str | None) -> errors.ModelError | None:
    """Return the error for a connection that could not be made, with what to do; None for any other failure.

    Args:
        error: The exception of a client, with its causes.
        base: The address of the server; None for the provider's own endpoint.
    """
    chain = _chain(error)
    client: Any = next((one for one in chain if hasattr(one, "port")), None)
    host, where = (client.host, f"{client.host}:{client.port}") if client is not None else ("the server", "the address")
    for one in chain:
        if isinstance(one, ssl.SSLCertVerificationError) and hasattr(one, "verify_code"):
            remedy = _CERTIFICATES.get(
                one.verify_code, "if you trust it, let SSL_CERT_FILE name a PEM file with its root"
            )
            why = one.verify_message.rstrip(".")
            return _permanent(f"the certificate of {where} cannot be verified: {why}; {remedy}.")
        if isinstance(one, ssl.SSLError) and getattr(one, "reason", "") in ("HTTP_REQUEST", "WRONG_VERSION_NUMBER"):
            return _permanent(f"{where} does not speak TLS; write http:// for a server without it.")
        if isinstance(one, ConnectionRefusedError):
            if type(client).__name__ == "ClientProxyConnectionError":
                remedy = "start it, or correct http_proxy and https_proxy in the environment"
                return errors.UnavailableError(f"the proxy at {where} refuses connections; {remedy}")
            remedy = "start the server, or correct its address" if base else "something on the way may block it"
            refused = errors.UnavailableError(f"nothing listens at {where} (connection refused); {remedy}")
            refused.starting = base is not None
            return refused
        if isinstance(one, socket.gaierror):
            return errors.UnavailableError(f"the host name {host} cannot be resolved ({one.strerror}); check it")
    return None


def _permanent(text: str) -> errors.UnavailableError:
    """Return the error for a server that cannot be reached until somebody mends something; nothing was sent."""
    error = errors.UnavailableError(text, sent=False)
    error.transient = False
    return error


_ABOUT_SCHEMAS: Final = ("response_format", "schema", "structured", "extra", "json mode", "response mime type")
"""Words in the message of a server that rejected the form in which a schema was requested."""

_UNKNOWN: Final = re.compile(r"support|unknown|unrecogni[sz]ed|unexpected|not (permitted|allowed)|extra")
"""In the message of a server that rejects a parameter."""

_NO_SYSTEM_TURN: Final = re.compile(r"system role|role.{1,30}support.{1,10}system|roles must alternate")
"""In the message of a model whose template or provider takes none."""

_ENDPOINT: Final = re.compile(r"/(chat/completions|completions|embeddings|responses|models)/?$")


def with_hints(
    error: errors.ModelError, settings: options.Settings, request: LMRequest | records.EmbeddingRequest
) -> errors.ModelError:
    """Add to an error of a server what the user can do: the one way out, where there is one."""
    error.args = ("\n  ".join([str(error), *_hints(error, settings, request)]),)
    return error


def _hints(
    error: errors.ModelError, settings: options.Settings, request: LMRequest | records.EmbeddingRequest
) -> Iterator[str]:
    """Yield what the user can do about an error of a server."""
    refused = error.provider_message.casefold() if isinstance(error, errors.RequestError) else ""
    schema, tools = getattr(request, "schema", None), getattr(request, "tools", None)  # a batch of texts has neither
    if schema is not None and any(word in refused for word in ("tool_choice", *_ABOUT_SCHEMAS)):
        others = 'structured="tool" or ' if tools and request.structured != "tool" else ""
        way = f'LanguageModel(..., {others}structured="prompt")'
        yield f"If the server does not take a schema in this form, pass {way}."
    if tools and "tool_choice" in refused and is_object(getattr(request, "tool_choice", None)):
        yield 'If the server takes no tool by name, offer that tool alone, with tool_choice="required".'
    most = request.params.get("max_tokens")
    if most is not None and "max_completion_tokens" in refused:
        yield f"Leave max_tokens out, and pass LanguageModel(..., extra_body={{'max_completion_tokens': {most}}})."
    elif _UNKNOWN.search(refused):
        for name in [name for name in request.params if re.search(rf"\b{name}\b", refused)]:
            yield f"If the model does not take this {name}, leave it out of the parameters."
    if _NO_SYSTEM_TURN.search(refused):
        template = "{'user': '{instructions}\\n{output_schema}\\n{examples}\\n{inputs}'}"
        yield f"If the model takes no system turn, write all into the user's: Generator(..., template={template})."
    if "stream_options" in error.provider_message:
        yield "If the server does not know stream_options, pass extra_body={'stream_options': None}."
    is_bare = settings.api_key is None and all(isinstance(value, str) for value in settings.headers.values())
    if error.status in (401, 403) and settings.api_base is not None and is_bare:
        name = options.ENVIRONMENT.get(settings.provider, ("MY_API_KEY",))[0]
        what = "No key was sent: one of the environment is never sent to an api_base."
        yield f"{what} Pass api_key=os.environ[{name!r}], or the like."
    if error.status in (200, 404, 405) and (base := settings.base) is not None:
        if known := _ENDPOINT.search(base):
            yield f"The api_base ends with {known[0]}, which is added to it: pass {base[: known.start()]!r}."
        elif not base.rstrip("/").endswith("/v1"):
            yield f"The api_base {base!r} lacks /v1, which most servers want."


def _made(kind: Kind, status: int | None, headers: Mapping[str, str], quoted: str) -> errors.ModelError:
    """Make the error of a kind."""
    quoted = mend(quoted)  # litellm passes half a character on
    text = options.shortened(quoted, _MOST_QUOTED)
    answered = "200 without a reply" if status == 200 else status
    message = text if status is None else f"the provider answered {answered}: {text}"
    details: dict[str, Any] = {
        "status": status,
        "request_id": headers.get("x-request-id") or headers.get("request-id"),
        "provider_message": options.shortened(quoted),
    }
    if isinstance(kind, str):
        what = "the provider refused to answer" if kind == _REFUSED else "the reply cannot be read"
        return errors.BadReplyError(f"{what}: {message}", text=details["provider_message"], reason=kind, **details)
    sent = status is not None or kind not in (errors.AuthError, errors.RequestError)
    error = kind(message, retry_after_s=_retry_after(headers.get("retry-after", "")), sent=sent, **details)
    error.starting = status == 503 and _LOADING.search(quoted.casefold()) is not None
    return error


def _kind(status: int, low: str) -> Kind:
    """Return the kind of error that a status stands for; the provider's text decides between several."""
    if (status in (400, 413, 422) or status >= 500) and any(words in low for words in _TOO_LONG):
        return errors.ContextWindowError
    if status in (400, 403) and any(words in low for words in _FILTERED):
        return _REFUSED
    if status == 429:
        empty = any(words in low for words in _NO_QUOTA) or (_QUOTA_TEXT in low and "retry" not in low)
        return errors.AuthError if empty else errors.RateLimitError
    if status in (401, 402, 403):
        return errors.AuthError
    if status in (500, 501) and any(words in low for words in _UNABLE):
        return errors.RequestError
    return (
        errors.UnavailableError if status < 300 or status in (408, 409, 425) or status >= 500 else errors.RequestError
    )


def message_in(json: Json) -> str:
    """Return the message in the JSON of a failure: `error.message` or `detail`; "" where there is none."""
    json = _only_item(json)
    error = json.get("error") or json if is_object(json) else None
    found = next((error[key] for key in ("message", "detail") if error.get(key)), "") if is_object(error) else error
    return str(found or "").strip()


def _retry_after(value: str) -> float | None:
    """Read a Retry-After header: seconds, or a date."""
    from email.utils import mktime_tz, parsedate_tz

    date = parsedate_tz(value)
    try:
        seconds = float(value) if date is None else mktime_tz(date) - wall_time()
    except (ValueError, OverflowError):
        return None
    return max(0.0, seconds) if seconds < float("inf") else None
