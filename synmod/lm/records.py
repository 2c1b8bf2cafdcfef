"""The frozen records of a model call: the turns that go in, request and reply, and the counters of a model."""

from __future__ import annotations

from collections.abc import Awaitable, Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any, Final, Protocol, runtime_checkable

from synmod.data import Schema
from synmod.errors import ConfigError, DataError, FieldError
from synmod.leaves.frozen import FrozenDict, Json, fill, frozen, frozen_dict, is_array, is_object
from synmod.leaves.names import did_you_mean
from synmod.scope import PHASES, PerPhase, Usage

_ROLES: Final = ("assistant", "developer", "system", "tool", "user")
_MEDIA: Final = ("image_url", "input_audio", "file")
_CHARACTERS_PER_TOKEN: Final = 3
_FORM: Final = '{"role": "user", "content": "..."}'


class Message(FrozenDict):
    """One checked turn: frozen JSON that also reads by attribute, like `sm.ChatMessage`."""

    __slots__ = ()

    def __getattr__(self, name: str) -> Any:
        """Return what stands under a key.

        Raises:
            AttributeError: The turn has no such key.
        """
        try:
            return self[name]
        except KeyError:
            raise AttributeError(f"This turn has no {name!r}; it has {', '.join(self)}.") from None


def message(role: str, content: str) -> Message:
    """Return a turn of text. Trusted: nothing is checked."""
    turn = Message.__new__(Message)
    fill(turn, {"role": role, "content": content})
    return turn


def turns(messages: Any) -> tuple[Message, ...]:
    """Return what a caller passed as checked turns.

    Args:
        messages: A str (one user turn), a ChatMessage, ChatMessages, or an iterable of ChatMessages and dicts in
            the shape of chat completions.

    Returns:
        At least one turn, frozen.

    Raises:
        DataError: Something in it is not a turn. Names its index, what was got and what was wanted.
        ConfigError: A turn holds an image, sound or a file, which no model is sent yet.

    Example:
        >>> turns("Hi")
        ({'role': 'user', 'content': 'Hi'},)

    Source: OpenAI's chat completions.
    """
    items: Any = messages
    if isinstance(messages, str):
        plain = messages.isascii()  # what is not may hold half a character, which the check of a turn finds
        items = [message("user", messages) if plain else {"role": "user", "content": messages}]
    elif (is_object(messages) and "role" not in messages) or hasattr(messages, "__synmod_json__"):
        json = frozen(messages)
        inner = json.get("messages") if is_object(json) else None
        items = inner if is_array(inner) else [json]
    elif is_object(messages):
        items = [messages]
    elif isinstance(messages, bytes) or not isinstance(messages, Iterable):
        got = type(messages).__name__
        raise DataError(f"messages: got {got}, wanted a str, ChatMessages, or a list of turns such as {_FORM}.")
    checked = tuple([item if type(item) is Message else _turn(item, index) for index, item in enumerate(items)])
    if not checked:
        raise DataError(f"messages: the list is empty, wanted at least one turn such as {_FORM}.")
    return checked


def _turn(item: Any, index: int) -> Message:
    """Check one turn: text, parts of text, or the tool calls of an assistant; keys that are null are left out."""
    where = f"messages[{index}]"
    try:
        json = frozen(item)
    except DataError as error:
        raise DataError(f"{where}: {error}") from None
    if not is_object(json):
        raise DataError(f"{where}: got {type(item).__name__}, wanted a turn such as {_FORM}.")
    role, content = json.get("role"), json.get("content")
    if role not in _ROLES:
        hint = did_you_mean(role, _ROLES)
        raise DataError(f"{where}: got role {role!r:.100}, wanted one of {', '.join(_ROLES)}.{hint}")
    calls_tools = content is None and role == "assistant" and json.get("tool_calls")
    if not (isinstance(content, str) or is_array(content) or calls_tools):
        got = "no content" if content is None else f"content of type {type(content).__name__}"
        raise DataError(f"{where}: got {got}, wanted a text.")
    for place, part in enumerate(content if is_array(content) else ()):
        kind = part.get("type") if is_object(part) else type(part).__name__
        if kind in _MEDIA:
            remedy = "images, sound and files cannot be sent to a model yet; describe them in text"
            raise ConfigError(f"{where}: content[{place}] is of kind {kind!r}: {remedy}.")
        if kind != "text" or not isinstance(part.get("text"), str):
            got = f"got content[{place}] of kind {kind!r:.100}"
            raise DataError(f'{where}: {got}, wanted parts {{"type": "text", "text": ...}} only.')
    turn = Message.__new__(Message)
    fill(turn, {"role": role, "content": None} | {key: value for key, value in json.items() if value is not None})
    return turn


def estimate_tokens(messages: Iterable[Message]) -> int:
    """Return an estimate of the tokens of turns: a third of their characters, rounded up, so rather too many."""
    contents = [turn["content"] or "" for turn in messages]
    texts = [each if isinstance(each, str) else "".join(part["text"] for part in each) for each in contents]
    return estimate_text(sum(map(len, texts)))


def estimate_text(characters: int) -> int:
    """Return an estimate of the tokens of a text of so many characters."""
    return -(-characters // _CHARACTERS_PER_TOKEN)


_NO_PARAMS: Final[Mapping[str, Json]] = frozen_dict({})
_NO_USAGE: Final = Usage()


@dataclass(frozen=True)
class LMRequest:
    """One request, as an adapter gets it: neutral, checked, without secrets.

    Attributes:
        model: The model string, `provider/name`.
        messages: The turns, frozen JSON in the shape of chat completions.
        schema: The schema that the reply must satisfy, or None for text.
        tools: Tools that the model may call; None.
        tool_choice: Which of them it must call; None.
        params: Sampling parameters, those of the call before those of the model.
        sample: The number of this draw among independent draws of one request; never sent.
        structured: How to ask for the schema: `schema`, `json`, `prompt`, or None for what the provider does best.
        reasoning_field: The field of the schema that native reasoning fills where a reply lacks it; or None.

    Source: OpenAI's chat completions, pydantic-ai's model requests.
    """

    model: str
    messages: tuple[Message, ...]
    schema: Schema | None = None
    tools: tuple[Json, ...] | None = None
    tool_choice: Json = None
    params: Mapping[str, Json] = _NO_PARAMS
    sample: int = 0
    structured: str | None = None
    reasoning_field: str | None = None


@dataclass(frozen=True, slots=True)
class Attempt:
    """One request that was sent.

    Attributes:
        status: HTTP status, or None where there was none.
        error: Class and message of what failed, without secrets, or None.
        elapsed_s: Seconds from sending to the reply or the failure.
        waited_s: Seconds waited before sending.
    """

    status: int | None = None
    error: str | None = None
    elapsed_s: float = 0.0
    waited_s: float = 0.0


@dataclass(frozen=True)
class LMReply:
    """What a model answered.

    An adapter fills in `text`, and what it knows of `reasoning`, `finish_reason`, `usage`, `model` and `request_id`;
    the call fills in the rest.

    Attributes:
        text: The raw text.
        json: The value read from the text: present and valid exactly if a schema was given.
        message: The reply as an assistant turn.
        tool_calls: Calls of tools; empty.
        reasoning: The reasoning of the model, where the provider returns it.
        finish_reason: `stop`, `length`, `content_filter`, ... as the provider returns it.
        usage: Tokens and cost of the whole call, repair included.
        model: The model that answered.
        request_id: The provider's id of the last request.
        cached: Whether no request was needed.
        attempts: One `Attempt` for each request sent.
        elapsed_s: Seconds of the whole call.
        first_chunk_s: Seconds to the first piece; None without streaming.

    Source: OpenAI's chat completions; differs: frozen, and valid or not there.
    """

    text: str = ""
    json: Json = None
    message: Message | None = None
    tool_calls: tuple[Json, ...] = ()
    reasoning: str | None = None
    finish_reason: str | None = "stop"
    usage: Usage = _NO_USAGE
    model: str = ""
    request_id: str | None = None
    cached: bool = False
    attempts: tuple[Attempt, ...] = ()
    elapsed_s: float = 0.0
    first_chunk_s: float | None = None

    def __getitem__(self, key: str | int) -> Any:
        """Return what stands under a key of `json`.

        Raises:
            DataError: The call had no schema, so the reply is text; or the value is not a container.
            FieldError: There is no such key ('Did you mean').
        """
        json = self._container(key)
        try:
            return json[key]
        except (KeyError, IndexError, TypeError):
            hint = did_you_mean(key, json) if is_object(json) else f" It is an array of {len(json)}."
            raise FieldError(f"The reply has no {key!r}.{hint}") from None

    def get(self, key: str, default: Any = None) -> Any:
        """Return what stands under a key of `json`, or `default` where it is missing.

        Raises:
            DataError: The call had no schema, so the reply is text; or the value is not an object.
        """
        json = self._container(key)
        if not is_object(json):
            raise DataError(f"reply.get({key!r}): the reply is an array; write reply[0].")
        return json.get(key, default)

    def _container(self, key: object) -> Any:
        """Return the JSON object or array of the reply."""
        if is_object(self.json) or is_array(self.json):
            return self.json
        found, remedy = f"the {type(self.json).__name__} {self.json!r:.80}", "read reply.json"
        if self.json is None:
            found, remedy = "text, since the call had no schema", "read reply.text, or write await lm(..., schema=...)"
        raise DataError(f"reply[{key!r}]: the reply is {found}: {remedy}.")


@runtime_checkable
class Adapter(Protocol):
    """A provider of the user's own: `LanguageModel(..., adapter=it)` adds checks, retries, budgets and events.

    Attributes:
        name: What the adapter is called.
        version: Changes when its replies would.

    What it may have besides: `check(request)`, a plain function that raises at once; `async prepare(request)`, for
    what it must load first, which does not count against `timeout_s`; `reasons(request)`, a plain function: whether
    the model reasons natively on a request and the reply will hold it; `async price()`: what tokens cost, an object
    with `cost_usd(prompt_tokens, completion_tokens, cached_tokens=0)`, or None; `async aclose()`.

    Source: httpx transports.
    """

    @property
    def name(self) -> str: ...

    @property
    def version(self) -> str | int: ...

    def send(self, request: LMRequest, /) -> Awaitable[LMReply] | LMReply:
        """Send one request and return its reply; raise a `ModelError` for a failure, with `sent=False` before sending.

        Write it as `async def`. A plain function may return the reply itself where nothing waits.
        """
        ...


@dataclass(frozen=True)
class ModelCounts:
    """What the calls of one model came to, in one phase or in all.

    Attributes:
        calls: Calls that ended, well or not.
        requests: Requests sent, those of cancelled calls too.
        failed_calls: Calls that raised.
        cached_calls: Calls that needed no request.
        unpriced_calls: Calls whose price is unknown.
        cancelled: Calls that were cancelled; they move nothing else but `requests`.
        prompt_tokens: Tokens sent.
        completion_tokens: Tokens received.
        cost_usd: What the priced calls cost.
    """

    calls: int = 0
    requests: int = 0
    failed_calls: int = 0
    cached_calls: int = 0
    unpriced_calls: int = 0
    cancelled: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost_usd: float = 0.0

    def __add__(self, other: ModelCounts) -> ModelCounts:
        return ModelCounts(*[getattr(self, name) + getattr(other, name) for name in _FIELDS])


_FIELDS: Final = tuple(field.name for field in fields(ModelCounts))

ATTRIBUTES: Final = {
    f"{prefix}cumulated_{name}": (phase, name)
    for prefix, phase in (("", None), *((f"{phase}_", phase) for phase in PHASES))
    for name in _FIELDS
    if name != "cancelled"
}
"""Attribute of a LanguageModel -> (phase or None for all, field)."""


class ModelCounters(PerPhase[ModelCounts]):
    """The counters of one model: `counters["reward"]` is one phase, an attribute is the sum of the three."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__(ModelCounts())

    def count(self, phase: str, usage: Usage, *, failed: bool) -> None:
        """Count one call at its end."""
        tokens, cached, cancelled = (usage.prompt_tokens, usage.completion_tokens), 0, 0
        kinds = (int(failed), cached, int(usage.cost_usd is None), cancelled)
        self.add(ModelCounts(1, usage.requests, *kinds, *tokens, usage.cost_usd or 0.0), phase)

    def count_cancelled(self, phase: str, requests: int) -> None:
        """Count one call that was cancelled."""
        self.add(ModelCounts(cancelled=1, requests=requests), phase)

    def read(self, phase: str | None, name: str) -> int | float:
        """Return one field, of one phase or summed over all."""
        return getattr(self.total() if phase is None else self[phase], name)
