"""Chat completions as JSON: the body of a request, and the reply in an answer.

Both adapters share them, and the exchange that keeps keys out of errors.
"""

from __future__ import annotations

import traceback
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping
from contextlib import aclosing
from functools import partial
from itertools import pairwise
from math import inf
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar, cast

from synmod import errors
from synmod.cache import key_of
from synmod.data import Audio, Image
from synmod.leaves import Json, aio, is_array, is_object
from synmod.scope import Usage
from synmod.wires import an_object, count_of, first_choice, objects_in

from . import options, records
from .failures import body_error, error_of, permanent_error
from .records import Citation, LMChunk, LMReply, LMRequest, Message, Received, TokenLogprob, with_system_text
from .replies import schema_name, tool_fields, turn_with_reasoning
from .streaming import Assembly, ThinkingSplitter, read_reasoning, text_of
from .text_calls import call_in_text
from .words import schema_text

if TYPE_CHECKING:
    from pydantic import SecretStr

T = TypeVar("T")

_NO_HEADERS: Final[Mapping[str, str]] = {}
STREAMING: Final[Mapping[str, Any]] = {"stream": True, "stream_options": {"include_usage": True}}


class Endpoint(NamedTuple):
    """An endpoint of a provider: chat completions or embeddings.

    Attributes:
        path: The path after the base address of a server.
        function: The name of the litellm function.
        body: `body(request, level)` returns the body of the request, without the model.
        read: `read(json, request, headers)` returns the reply, None without one, or an error if it is unusable.
    """

    path: str
    function: str
    body: Callable[[Any, str], dict[str, Any]]
    read: Callable[[Json, Any, Mapping[str, str]], Any]


# -- bodies ------------------------------------------------------------------------------------------------------------

_STRICT: Final = (
    "$defs $ref additionalProperties anyOf const description enum exclusiveMaximum exclusiveMinimum format items "
    "maxItems maximum minItems minimum multipleOf pattern properties required title type"
)
_STRICT_KEYWORDS: Final = frozenset(_STRICT.split())
_STRICT_FORMATS: Final = frozenset(
    {"date", "date-time", "duration", "email", "hostname", "ipv4", "ipv6", "time", "uuid"}
)
_STRICT_MOST: Final = {"properties": 100, "values": 1_000, "characters": 120_000}
_DEEPEST_STRICT, _LONG_ENUM, _MOST_OF_LONG_ENUM = 5, 250, 15_000


_WITHOUT_RESULT: Final = "best_of echo n n_probs prompt_logprobs return_token_ids"
"""Fields of a body whose result no reply can hold yet."""

_USUAL: Final[Mapping[str, Json]] = {"best_of": 1, "n": 1}
"""Field -> the value that, like 0, False and None, requests no such result."""


def chat_body(request: LMRequest, level: str = "schema") -> dict[str, Any]:
    """Return messages, parameters, tools and response format of a request, as chat completions take them.

    Args:
        request: The request.
        level: How the server is asked for JSON: "schema", "json", "tool" or "prompt", as `structured` of a model.

    Example:
        >>> from synmod.lm import turns
        >>> chat_body(LMRequest("gateway/small", turns("Hi"), params={"temperature": 0}))
        {'temperature': 0, 'messages': [{'role': 'user', 'content': 'Hi'}]}

    Source: OpenAI's chat completions; differs: the name of the model is left to the caller.
    """
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
    text = schema_text(schema)
    return messages if any(text in str(turn["content"]) for turn in messages) else with_system_text(messages, text)


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
        fields, defined = part.get("properties", {}), part.get("$defs", {})
        is_closed = part.get("additionalProperties") is False and set(part.get("required", ())) == set(fields)
        if ("properties" in part or "object" in kinds) and not is_closed:
            return False
        values = part.get("enum", ())
        length = sum(len(str(value)) for value in values)
        if len(values) > _LONG_ENUM and length > _MOST_OF_LONG_ENUM:
            return False
        sums["properties"] += len(fields)
        sums["values"] += len(values)
        sums["characters"] += length + len(str(part.get("const", ""))) + sum(map(len, (*fields, *defined)))
        deeper = [*fields.values(), *([part["items"]] if "items" in part else [])]
        pending += [(inner, depth + 1) for inner in deeper]
        pending += [(inner, depth) for inner in (*defined.values(), *part.get("anyOf", ()))]
    return all(sums[name] <= most for name, most in _STRICT_MOST.items())


def with_prompt_cache(body: dict[str, Any], settings: options.Settings) -> dict[str, Any]:
    """Return a body of which the provider caches the constant part: system turn, examples, tools and schema.

    For a model of Anthropic that is marks behind the system turn and behind the examples; in a conversation that goes
    on also behind its last turn, and where the request before ended, since a provider looks for what it has cached at
    marks. For OpenAI it is a key that is the same for requests with the same constant part.
    """
    messages: list[Message] = body["messages"]
    last, characters = records.end_of_constant(messages)
    if settings.provider == "openai":
        constant = [*messages[:last], str(messages[last]["content"])[:characters]] if last >= 0 else []
        fields = [body.get(name) for name in ("tools", "response_format")]
        return body | {"prompt_cache_key": key_of([settings.model, constant, *fields])[:32]}
    if settings.provider != "anthropic" and "claude" not in settings.model.lower():
        return body
    marks: list[tuple[int, float]] = [(last, characters)]  # place of a turn, end of the text before the mark
    if messages[0]["role"] == "system":
        marks.append((0, inf))
    answers = [index for index, turn in enumerate(messages) if index > last and turn["role"] == "assistant"]
    if answers or body.get("tools"):
        marks.append((len(messages) - 1, inf))
    if answers:
        marks.append((answers[-1] - 1, inf))
    mark: Json = {"type": "ephemeral", **({"ttl": "1h"} if settings.prompt_cache == "1h" else {})}
    for place in {at for at, _ in marks if at >= 0}:
        messages[place] = _marked(messages[place], [end for at, end in marks if at == place], mark)
    return body


def _marked(turn: Message, ends: list[float], mark: Json) -> Message:
    """Return a turn with marks in its text behind these numbers of characters; one that holds media, behind it all."""
    content = turn["content"]
    if is_array(content):
        parts: list[Any] = list(content)
        if parts and inf in ends:
            parts[-1] = {**parts[-1], "cache_control": mark}
    else:
        text = content or ""
        cuts = sorted({int(min(end, len(text))) for end in ends} - {0})
        spans = pairwise([0, *cuts])
        parts = [{"type": "text", "text": text[start:end], "cache_control": mark} for start, end in spans]
        if rest := text[cuts[-1] if cuts else 0 :]:
            parts.append({"type": "text", "text": rest})
    fields: dict[str, Any] = {**turn, "content": parts}
    return records.message(**fields) if parts else turn


def reply_of(
    response: Json, request: LMRequest, headers: Mapping[str, str] = _NO_HEADERS
) -> LMReply | errors.ModelError | None:
    """Return the first choice of a chat completion as a reply.

    Args:
        response: The JSON of the answer.
        request: The request that it answers.
        headers: Headers of the answer, by lower-case name, for its request id.

    Returns:
        The reply, with the usage that the answer states, else an estimate; an error, not raised, if its reasoning
        cannot be read; None without a choice that has a message.

    Example:
        >>> from synmod.lm import turns
        >>> answer = {"choices": [{"message": {"role": "assistant", "content": "Hello."}}]}
        >>> reply_of(answer, LMRequest("gateway/small", turns("Hi"))).text
        'Hello.'

    Source: OpenAI's chat completions, and what other servers make of them.
    """
    choice = first_choice(response)
    answer = choice.get("message")
    if not is_object(response) or not is_object(answer):
        return None
    specific = an_object(answer.get("provider_specific_fields"))
    refusal = text_of(answer.get("refusal")) or text_of(specific.get("refusal"))
    thought, text = ThinkingSplitter().part(text_of(answer.get("content")), is_last=True)
    text, calls = refusal or text, answer.get("tool_calls")
    if not calls and is_object(answer.get("function_call")):
        calls = [{"function": answer["function_call"]}]
    sent_calls: Any = tuple(calls) if is_array(calls) else ()  # read and checked by the call
    request_id = headers.get("x-request-id") or headers.get("request-id") or response.get("id")
    try:
        media = read_media(answer)
        text = text or text_of(an_object(answer.get("audio")).get("transcript"))
        before = turn_with_reasoning(_without_sound(answer), text)
    except ValueError as error:  # a stream may nest deeper than a body; media may be broken
        what = f"the reasoning or the media in the reply cannot be read: {error}"
        return errors.BadReplyError(what, reason="not_json", status=200)
    tokens = [
        TokenLogprob(token, logprob, {other: likely for other, likely, _ in _logprobs(top)})
        for token, logprob, top in _logprobs(an_object(choice.get("logprobs")).get("content"))
    ]
    return LMReply(
        text,
        message=before,
        tool_calls=sent_calls,
        reasoning=read_reasoning(answer) or thought or None,
        finish_reason="refusal" if refusal else text_of(choice.get("finish_reason")) or None,
        usage=_usage(response, request, len(text)),
        model=request.model,
        request_id=text_of(request_id) or None,
        logprobs=tuple(tokens),
        media=media,
        citations=_citations(answer.get("annotations"), text),
    )


def _logprobs(tokens: Json) -> Iterator[tuple[str, float, Json]]:
    """Yield the text and the log probability of tokens, and the most likely ones in the place of each."""
    for token in objects_in(tokens):
        logprob = token.get("logprob")
        number = float(logprob) if isinstance(logprob, int | float) else _LOWEST
        yield text_of(token.get("token")), number, token.get("top_logprobs")


def _citations(json: Json, text: str) -> tuple[Citation, ...]:
    """Return the sources that annotations name."""
    citations: list[Citation] = []
    for note in objects_in(json):
        if source := an_object(note.get("url_citation")):
            start, end = count_of(source, "start_index"), count_of(source, "end_index")
            url, title = (text_of(source.get(key)) or None for key in ("url", "title"))
            citations.append(Citation(text_of(source.get("text")) or text[start:end], url, title, start, end))
    return tuple(citations)


def read_media(answer: Mapping[str, Json]) -> tuple[Image | Audio, ...]:
    """Return the images and the sound in a message.

    Raises:
        ValueError: One cannot be read.
    """
    media: list[Image | Audio] = []
    for part in objects_in(answer.get("images")):
        address = part.get("image_url")
        media.append(Image.from_url(text_of(address.get("url") if is_object(address) else address)))
    sound = an_object(answer.get("audio"))
    if data := text_of(sound.get("data")):
        media.append(Audio(media_type=f"audio/{sound.get('format') or 'wav'}", data=data, url=None))
    return tuple(media)


def _without_sound(answer: dict[str, Json]) -> dict[str, Json]:
    """Return a message as a conversation holds it: with the id of its sound alone, and without its images."""
    if "audio" not in answer and "images" not in answer:
        return answer
    key = an_object(answer.get("audio")).get("id")
    own: Json = {"id": key} if key else None
    return {**answer, "audio": own, "images": None}


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
    failures: list[BaseException] = [key] if isinstance(key, errors.AuthError) else []  # one at most
    try:
        if not isinstance(key, errors.AuthError):
            async with aclosing(send(key)) as items:
                async for item in items:
                    if isinstance(item, errors.ModelError):
                        failures.append(item)
                        del item
                        break
                    yield item
    except BaseException as error:  # noqa: BLE001  # raised below
        if isinstance(error, Exception):
            errors.add_note(error, "".join(traceback.format_tb(error.__traceback__)))
        error.__context__ = error.__cause__ = None
        failures.append(error.with_traceback(None))
    if failures:
        raise failures.pop()  # so that the error and this frame do not hold each other


class ProviderAdapter(ABC):
    """Sends requests with the key of a model, and reads the replies.

    Args:
        settings: The checked arguments of the model.
        secrets: Its key and headers.
        endpoint: Chat completions or embeddings.
    """

    name: str

    def __init__(self, settings: options.Settings, secrets: options.Secrets, endpoint: Endpoint) -> None:
        self._settings, self._secrets, self._endpoint = settings, secrets, endpoint

    def check(self, request: LMRequest) -> None:
        """Raise at once if the request cannot succeed.

        Raises:
            UnavailableError: trio runs this code; not transient.
            RequestError: A parameter would be paid for, and its result would be lost.
            AuthError: A key is needed and missing.
        """
        if aio.backend() == "trio":
            raise permanent_error(f"the {self.name} adapter needs asyncio, and trio runs this code.")
        for name, value in (*request.params.items(), *self._settings.extra_body.items()):
            if value and name in _WITHOUT_RESULT.split() and value != _USUAL.get(name):
                lost = f"{name}={value!r:.100}: the reply cannot hold its result yet; leave it out."
                raise errors.RequestError(lost, sent=False)
        if missing := self._secrets.missing():
            raise missing

    async def send(self, request: LMRequest) -> LMReply:
        """Send one request."""
        async with aclosing(self._exchange(request, streams=False)) as items:
            return cast("LMReply", await anext(items))  # its only item

    def stream(self, request: LMRequest) -> AsyncGenerator[LMChunk | LMReply]:
        """Send one request, and yield the pieces of the reply as they arrive, last the reply itself."""
        return self._exchange(request, streams=True)

    def _exchange(self, request: LMRequest, *, streams: bool) -> AsyncGenerator[LMChunk | LMReply]:
        """Send one request with its key, and yield what is received."""

        def send_with_key(key: SecretStr | None) -> Received:
            send = partial(self._request, key=key, streams=streams)
            return call_in_text(send, request) if self._level(request) == "calls" else send(request)

        return exchange(self._secrets, send_with_key)

    def _request_body(self, request: LMRequest) -> dict[str, Any]:
        """Return the body of a request, without the model; with what makes the provider cache its constant part."""
        body = self._endpoint.body(request, self._level(request))
        return with_prompt_cache(body, self._settings) if self._settings.prompt_cache else body

    def _read(self, json: Json, request: Any, headers: Mapping[str, str]) -> Any:
        """Return the reply in the body of a successful answer, or the error that it states."""
        if (error := error_of(json)) is None and (reply := self._endpoint.read(json, request, headers)) is not None:
            return reply
        return body_error(error, json, headers, self._secrets)

    def _read_stream(
        self, assembly: Assembly, request: Any, headers: Mapping[str, str], failure: errors.ModelError | None = None
    ) -> Any:
        """Return the streamed reply; an error if the stream held one or ended early."""
        if assembly.error is not None:
            return body_error(assembly.error, assembly.error, headers, self._secrets)
        if assembly.fault:
            fault = options.shorten(self._secrets.scrub(assembly.fault), 300)
            return errors.BadReplyError(fault, reason="not_json", status=200)
        if assembly.is_whole:
            return self._read(assembly.response(), request, headers)
        return failure or errors.UnavailableError("the stream ended before the reply did")

    @abstractmethod
    def _level(self, request: LMRequest) -> str:
        """Return how to request a schema."""

    @abstractmethod
    def _request(self, request: LMRequest, key: SecretStr | None, *, streams: bool) -> Received:
        """Send one request with its key; yield the pieces as they arrive, last the reply; a failure is not raised."""


_LOWEST: Final = -9999.0  # for minus infinity, which no JSON holds
_PROMPT: Final = ("prompt_tokens", "input_tokens", "prompt_n")
_COMPLETION: Final = ("completion_tokens", "output_tokens", "predicted_n")
_CACHED: Final = ("cached_tokens", "prompt_cache_hit_tokens", "cache_read_input_tokens", "cache_n")
_WRITTEN: Final = ("cache_write_tokens", "cache_creation_input_tokens", "cache_creation_tokens")
_DETAILS: Final = tuple(f"{kind}_tokens_details" for kind in ("prompt", "completion", "input", "output"))


def _usage(response: dict[str, Json], request: LMRequest, characters: int) -> Usage:
    """Return the tokens that the provider counted, under whatever name, else an estimate."""
    sources = (response.get("usage"), an_object(response.get("x_groq")).get("usage"), response.get("timings"))
    counts: dict[str, Json] = {**an_object(next(filter(is_object, sources), None))}
    for name in _DETAILS:
        counts |= an_object(counts.get(name))
    prompt, completion = count_of(counts, *_PROMPT), count_of(counts, *_COMPLETION)
    if not prompt and not completion:
        return records.estimate_usage(request, characters)
    return Usage(
        prompt_tokens=prompt,
        completion_tokens=completion,
        cached_tokens=count_of(counts, *_CACHED),
        cache_write_tokens=count_of(counts, *_WRITTEN),
        reasoning_tokens=count_of(counts, "reasoning_tokens"),
    )
