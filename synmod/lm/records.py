"""The records of language models: turns, requests, replies, and their JSON for a cache."""

from __future__ import annotations

import typing
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from itertools import repeat
from math import inf
from operator import attrgetter
from types import NoneType
from typing import Any, ClassVar, Final, Protocol, Self, TypeAlias, TypeVar

from pydantic import BaseModel

from synmod.data import Audio, Image, Schema, ToolCall, content_part, dump_json
from synmod.errors import DataError, FieldError, ModelError
from synmod.leaves import FrozenDict, Json, did_you_mean, fill, frozen, frozen_dict, frozen_list, is_array, is_object
from synmod.scope import NO_USAGE, Usage

T = TypeVar("T")

Server: TypeAlias = tuple[str, str | None]  # its provider and address

_ROLES: Final = ("assistant", "developer", "system", "tool", "user")
_MEDIA: Final = ("image_url", "input_audio", "file")
_CHARACTERS_PER_TOKEN: Final = 3
_CHARACTERS_OF_MEDIA: Final = 3_000  # an image is a thousand tokens, more or less
_FIELDS: Final = {
    **dict.fromkeys(("name", "refusal", "reasoning_content", "tool_call_id"), (str, "a text")),
    **dict.fromkeys(("tool_calls", "thinking_blocks"), (list, "a list")),
}
_KNOWN: Final = frozenset({"role", "content", "name", "refusal", "tool_call_id", "tool_calls"})
_AUTHOR: Final = "written_by"
"""Key of a turn as JSON keeps it: the provider that wrote the keys beside the known ones; it is never sent."""
_CALL_FORM: Final = '{"id": ..., "type": "function", "function": {"name": ..., "arguments": "..."}}'
_FORM: Final = '{"role": "user", "content": "..."}'


class Message(FrozenDict):
    """One checked turn: frozen JSON that also reads by attribute, like `sm.ChatMessage`.

    Its JSON leaves out two attributes: `_author`, of the turn of a reply, is the server that wrote it; `_constant`, of
    the turn in which the constant part of a prompt ends, is how many characters of it are constant.
    """

    __slots__ = ("_author", "_constant")

    def __getattr__(self, name: str) -> Any:
        """Return the value of a key.

        Raises:
            AttributeError: The turn has no such key.
        """
        try:
            return self[name]
        except KeyError:
            raise AttributeError(f"This turn has no {name!r}; it has {', '.join(self)}.") from None


def message(role: str, content: Json, **fields: Json) -> Message:
    """Return a turn of frozen JSON, unchecked."""
    turn = Message.__new__(Message)
    fill(turn, {"role": role, "content": content, **fields})
    return turn


def with_system_text(messages: tuple[Message, ...], text: str) -> tuple[Message, ...]:
    """Return turns with a text at the end of the system turn, which is made if it is missing."""
    first = messages[0]
    if first["role"] == "system" and isinstance(first["content"], str):
        return (message("system", f"{first['content']}\n\n{text}"), *messages[1:])
    return (message("system", text), *messages)


def turns(messages: Any) -> tuple[Message, ...]:
    """Check the messages of a caller, and return them as turns.

    Args:
        messages: A str (one user turn), a ChatMessage, ChatMessages, or an iterable of ChatMessages and dicts in
            the shape of chat completions.

    Returns:
        At least one turn, frozen.

    Raises:
        DataError: An item is not a turn. Names its index, the actual value and the expected one.

    Example:
        >>> turns("Hi")
        ({'role': 'user', 'content': 'Hi'},)

    Source: OpenAI's chat completions.
    """
    items: Any = messages
    if isinstance(messages, str):
        plain = messages.isascii()  # other text may hold a lone surrogate, which the check of a turn finds
        items = [message("user", messages) if plain else {"role": "user", "content": messages}]
    elif (is_object(messages) and "role" not in messages) or hasattr(messages, "__synmod_json__"):
        json = frozen(messages)
        inner = json.get("messages") if is_object(json) else None
        items = inner if is_array(inner) else [json]
    elif is_object(messages):
        items = [messages]
    elif isinstance(messages, bytes) or not isinstance(messages, Iterable):
        raise DataError(f"messages: got {type(messages).__name__}, wanted a str, or a list of turns such as {_FORM}.")
    checked = tuple(items)
    if {*map(type, checked)} != {Message}:  # hot: many examples
        checked = tuple([item if type(item) is Message else _turn(item, index) for index, item in enumerate(checked)])
    if not checked:
        raise DataError(f"messages: the list is empty, wanted at least one turn such as {_FORM}.")
    return checked


def _turn(item: Any, index: int) -> Message:
    """Check one turn: text, parts, or the tool calls of an assistant; leave out keys that are null."""
    where = f"messages[{index}]"
    try:
        if is_object(item) and is_array(item.get("content")):
            item = {**item, "content": [content_part(part) for part in item["content"]]}
        json = frozen(item)
    except ValueError as error:  # DataError, or sound at an address
        raise DataError(f"{where}: {error}") from None
    if not is_object(json):
        raise DataError(f"{where}: got {type(item).__name__}, wanted a turn such as {_FORM}.")
    role, content = json.get("role"), json.get("content")
    if role not in _ROLES:
        hint = did_you_mean(role, _ROLES)
        raise DataError(f"{where}: got role {role!r:.100}, wanted one of {', '.join(_ROLES)}.{hint}")
    is_empty = content is None and not (role == "assistant" and any(map(json.get, json.keys() - {"role", "name"})))
    if is_empty or not (content is None or isinstance(content, str) or is_array(content)):
        kind = "object" if is_object(content) else type(content).__name__
        got = "no content" if content is None else f"content of type {kind}"
        raise DataError(f"{where}: got {got}, wanted a text.")
    for name, (kind, expected) in _FIELDS.items():
        if not isinstance(json.get(name), (kind, NoneType)):
            raise DataError(f"{where}: {name}: got {json[name]!r:.100}, wanted {expected}.")
    if role != "assistant" and json.get("tool_calls") is not None:
        raise DataError(f"{where}: only an assistant turn has tool_calls.")
    if (role == "tool") != isinstance(json.get("tool_call_id"), str):
        raise DataError(f"{where}: a tool turn, and no other, has the tool_call_id of the call that it answers.")
    for place, call in enumerate(json.get("tool_calls") or ()):
        function = call.get("function") if is_object(call) else None
        texts = (call.get("id"), *map(function.get, ("name", "arguments"))) if is_object(function) else (None,)
        if not all(isinstance(text, str) for text in texts):
            raise DataError(f"{where}: got tool_calls[{place}] {call!r:.100}, wanted {_CALL_FORM}.")
    turn: dict[str, Any] = {"role": role, "content": None}
    turn |= {key: value for key, value in json.items() if value is not None}
    if is_array(content):
        turn["content"] = frozen_list(_part(part, f"{where}: content[{place}]") for place, part in enumerate(content))
    if role == "assistant" and isinstance(turn.get(_AUTHOR), str):
        author = turn.pop(_AUTHOR)
        return set_author(message(**turn), (author, None))
    return message(**turn)


def set_author(turn: Message, author: Server) -> Message:
    """Return a new turn with its author: the provider and address of the server that wrote it."""
    turn._author = author
    return turn


def turn_to_keep(turn: Message) -> FrozenDict:
    """Return a turn as JSON keeps it: with the provider that wrote it, if it has keys for that provider alone."""
    author = getattr(turn, "_author", None)
    if author is None or turn["role"] != "assistant" or _portable_turn(turn) == turn:
        return turn
    return frozen_dict({**turn, _AUTHOR: author[0]})


def set_constant(turn: Message, characters: int) -> Message:
    """Return a new turn in which the constant part of a prompt ends, behind this many characters."""
    turn._constant = characters
    return turn


def places_of_examples(messages: Sequence[Message]) -> list[int]:
    """Return the places of the turns of examples: a layout marks the last one, the answer of the assistant."""
    marked = [at for at, turn in enumerate(messages) if getattr(turn, "_constant", None) is not None]
    ends = [at for at in marked if messages[at]["role"] == "assistant"]
    return [place for place in range(ends[-1] + 1 if ends else 0) if messages[place]["role"] in ("user", "assistant")]


def with_text(turn: Message, text: str) -> Message:
    """Return a turn with another text, in which the constant part of a prompt ends if it does in this one."""
    new = message(**{**turn, "content": text})
    characters = getattr(turn, "_constant", None)
    return new if characters is None else set_constant(new, max(0, characters + len(text) - len(turn["content"])))


def end_of_constant(messages: Sequence[Message]) -> tuple[int, int]:
    """Return where the constant part of a prompt ends, as (index of a turn, characters of it); else the system turn."""
    for index, turn in enumerate(messages):
        if (characters := getattr(turn, "_constant", None)) is not None:
            return index, characters
    first = messages[0]
    return (0, len(str(first["content"]))) if first["role"] in ("system", "developer") else (-1, 0)


def turns_for(
    messages: tuple[Message, ...], server: Server, servers: Sequence[Server], *, takes_media: bool = False
) -> tuple[Message, ...]:
    """Return turns as they are sent to a server, which only gets back what it wrote beside the known keys itself.

    Args:
        messages: The turns.
        server: Its provider and address.
        servers: All that the call may try; the first wrote the turns whose author is not known or has moved.
        takes_media: Whether it takes images and files in the result of a tool; if not, a turn of the user after the
            results has them.
    """

    def is_of_another(turn: Message) -> bool:
        author = getattr(turn, "_author", None)
        if author not in servers and (author is None or author[0] == server[0]):
            author = servers[0]
        return author != server

    if {*map(len, messages)} == {2}:  # hot: examples; role and content are for every provider
        return messages
    turns = [_portable_turn(turn) if turn["role"] == "assistant" and is_of_another(turn) else turn for turn in messages]
    if any(turn["role"] == "tool" and not isinstance(turn["content"], str) for turn in turns):
        turns = _with_media_after_results(turns, takes_media=takes_media)
    return tuple(turns)


def _with_media_after_results(turns: Sequence[Message], *, takes_media: bool) -> list[Message]:
    """Return turns with the media in results of tools in a turn of the user after them, unless they are taken there."""
    stays = ("text", "file", "image_url") if takes_media else ("text",)
    names, moved, sent = dict[str, str](), list[Json](), list[Message]()
    for turn in turns:
        content, call = turn["content"], str(turn.get("tool_call_id"))
        if turn["role"] != "tool":
            if moved:
                sent.append(message("user", frozen_list(moved)))
                moved = []
            names |= {call["id"]: call["function"]["name"] for call in turn.get("tool_calls") or ()}
        elif is_array(content) and (media := [part for part in content if part["type"] not in stays]):
            where = f"In the result of {names.get(call, 'a tool')}, call {call}:"
            moved += [frozen_dict({"type": "text", "text": where}), *media]
            left = [part for part in content if part["type"] in stays]
            is_text = all(part["type"] == "text" for part in left)
            rest: Json = "\n".join(part["text"] for part in left) if is_text else frozen_list(left)
            fields: dict[str, Any] = {**turn, "content": rest}
            turn = message(**fields)
        sent.append(turn)
    return [*sent, message("user", frozen_list(moved))] if moved else sent


def _portable_turn(turn: Message) -> Message:
    """Return an assistant turn without reasoning, signatures and what else is for the provider alone that wrote it."""
    fields = {name: value for name, value in turn.items() if name in _KNOWN}
    if calls := fields.get("tool_calls"):
        names = ("name", "arguments")
        fields["tool_calls"] = frozen([ToolCall(call["id"], *map(call["function"].get, names)) for call in calls])
    elif fields["content"] is None:
        fields["content"] = ""
    return message(**fields)


def _part(part: Json, where: str) -> Json:
    """Check one part of the content of a turn; leave out keys that are null."""
    kind = part.get("type") if is_object(part) else type(part).__name__
    inner: Json = part.get(str(kind)) if is_object(part) else None
    if kind == "text" and isinstance(inner, str):
        return part
    if kind in _MEDIA and is_object(inner):
        present = {key: value for key, value in inner.items() if value is not None}
        return frozen_dict({**part, kind: frozen_dict(present)})
    expected = 'a text, an sm.Image, sm.Audio or sm.File, or a part such as {"type": "text", "text": ...}'
    raise DataError(f"{where}: got a part of kind {kind!r:.100}, wanted {expected}.")


def remote_media(messages: Iterable[Message]) -> str:
    """Return the place of the first image, sound or file that messages give by its address; "" for none."""
    for index, turn in enumerate(messages):
        content = turn["content"]
        if isinstance(content, str):  # hot: nearly all
            continue
        for place, part in enumerate(content if is_array(content) else ()):
            image, file = part.get("image_url", {}).get("url"), part.get("file", {})
            texts = (part.get("input_audio", {}).get("data"), file.get("file_id"), file.get("file_data"))
            if (image is not None and not str(image).startswith("data:")) or any("://" in str(text) for text in texts):
                return f"messages[{index}]: content[{place}]"
    return ""


class TokenCount(int):
    """A number of tokens.

    Attributes:
        estimated: Whether it is an estimate, since no tokenizer of the model is known.
    """

    estimated: bool

    def __new__(cls, number: int, *, estimated: bool = False) -> Self:
        count = super().__new__(cls, number)
        count.estimated = estimated
        return count


def estimate_tokens(messages: Iterable[Message]) -> int:
    """Return an estimate of the tokens of turns, on the high side: a third of their characters, rounded up."""
    characters = 0
    for turn in messages:
        content = turn["content"]
        if isinstance(content, str):
            characters += len(content)
        else:
            characters += sum(len(part["text"]) if "text" in part else _CHARACTERS_OF_MEDIA for part in content or ())
        if "tool_calls" in turn:
            characters += sum(len(call["function"]["arguments"]) for call in turn["tool_calls"])
    return estimate_text(characters)


def most_tokens(request: AnyRequest) -> tuple[int, int]:
    """Return how many tokens a request may use: an estimate of its prompt, and `max_tokens` (0 if not set)."""
    most = request.params.get("max_tokens")
    functions = request.tools if isinstance(request, LMRequest) else None
    tools = estimate_text(len(dump_json(list(functions)))) if functions else 0
    return estimate_tokens(request.messages) + tools, most if isinstance(most, int) else 0


def estimate_text(characters: int) -> int:
    """Return an estimate of the tokens of a text of this length."""
    return -(-characters // _CHARACTERS_PER_TOKEN)


def estimate_usage(request: LMRequest, characters: int) -> Usage:
    """Return an estimate of the usage of a request whose reply has this many characters."""
    prompt, completion = estimate_tokens(request.messages), estimate_text(characters)
    return Usage(prompt_tokens=prompt, completion_tokens=completion, estimated=True)


_NO_PARAMS: Final[Mapping[str, Json]] = frozen_dict({})


@dataclass(frozen=True)
class LMRequest:
    """One request, as an adapter receives it: provider-neutral, checked, without secrets.

    Attributes:
        model: The model string, `provider/name`.
        messages: The turns, frozen JSON in the shape of chat completions.
        schema: The schema that the reply must satisfy, or None for text.
        tools: Function schemas of the tools that the model may call, in the shape of chat completions; or None.
        tool_choice: Which of them it must call: `auto`, `none`, `required`, one tool by name, or None.
        params: Sampling parameters; those of the call override those of the model.
        sample: The number of this draw among independent draws of one request; never sent.
        structured: How to ask for the schema: `schema`, `json`, `tool`, `calls`, `prompt`, or None for the best.
        reasoning_field: The field of the schema that native reasoning fills if a reply lacks it; or None.
        native_tools: Tools that run at the provider, as `native_tool` makes them.
        data_model: The class whose validators a reply must also pass; or None.

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
    native_tools: tuple[Json, ...] = ()
    data_model: type[BaseModel] | None = field(default=None, repr=False)

    def __deepcopy__(self, memo: object) -> Self:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        """Leave out the class, which another process may not find; the schema stays."""
        return LMRequest, tuple(getattr(self, field.name) for field in fields(self) if field.name != "data_model")


@dataclass(frozen=True)
class EmbeddingRequest:
    """One batch of texts to embed, as an adapter receives it.

    Attributes:
        model: The model string, `provider/name`.
        texts: The texts, each once.
        params: `dimensions`, if given.

    Source: OpenAI's embeddings.
    """

    model: str
    texts: tuple[str, ...]
    params: Mapping[str, Json] = _NO_PARAMS

    structured: ClassVar[str] = "none"
    """There is no schema to ask for."""

    @property
    def messages(self) -> tuple[Message, ...]:
        """The texts as turns, for code that shows requests of any kind or counts their tokens."""
        return tuple([message("user", text) for text in self.texts])


@dataclass(frozen=True)
class EmbeddingReply:
    """The vectors of some texts.

    Attributes:
        vectors: One for each text, in the order of the texts.
        usage: Tokens and cost.
        cached: Whether no request was needed.
        model: The model that answered.
        elapsed_s: Seconds of the whole call.

    Source: OpenAI's embeddings.
    """

    vectors: tuple[tuple[float, ...], ...]
    usage: Usage = NO_USAGE
    cached: bool = False
    model: str = ""
    elapsed_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Attempt:
    """One request that was sent.

    Attributes:
        status: HTTP status; None if there was none.
        error: Class and message of the failure, without secrets; or None.
        elapsed_s: Seconds from sending to the reply or the failure.
        waited_s: Seconds waited before sending.
    """

    status: int | None = None
    error: str | None = None
    elapsed_s: float = 0.0
    waited_s: float = 0.0


@dataclass(frozen=True, slots=True)
class TokenLogprob:
    """One token of a reply, with its log probability.

    Attributes:
        token: The text of the token.
        logprob: The natural logarithm of its probability.
        top: The most likely tokens in its place, by text, with theirs.

    Source: OpenAI's `logprobs`.
    """

    token: str
    logprob: float
    top: Mapping[str, float] = field(default_factory=dict[str, float])


@dataclass(frozen=True, slots=True)
class Citation:
    """A source that a reply cites.

    Attributes:
        text: The passage of the source, if the provider quotes it; else what the reply writes about it.
        url: Its address; None if it has none.
        title: Its title; None if it has none.
        start: Where the text that cites it begins in the text of the reply.
        end: Where that text ends.

    Source: the annotations of OpenAI, the citations of Anthropic.
    """

    text: str
    url: str | None = None
    title: str | None = None
    start: int = 0
    end: int = 0


@dataclass(frozen=True)
class LMReply:
    """The reply of a model.

    An adapter fills in `text`, `tool_calls` (as `ToolCall`s or as the provider sent them) and, if known, `reasoning`,
    `finish_reason`, `usage`, `model` and `request_id`; the call fills in the rest.

    Attributes:
        text: The raw text.
        json: The value read from the text: present and valid exactly if a schema was given and no tool was called.
        message: The reply as an assistant turn.
        tool_calls: The tool calls of the model, with arguments that satisfy their schemas.
        reasoning: The reasoning of the model, if the provider returns it.
        finish_reason: `stop`, `tool_calls`, `end_turn`, ... as the provider returns it, if the reply is whole;
            `length` if it was cut, whatever the provider calls that; None if it returns none. With any other word the
            call fails.
        usage: Tokens and cost of the whole call, repair included.
        model: The model that answered.
        request_id: The provider's id of the last request.
        cached: Whether no request was needed.
        attempts: One `Attempt` for each request sent.
        elapsed_s: Seconds of the whole call.
        first_chunk_s: Seconds to the first piece; None without streaming.
        logprobs: The tokens of the text with their log probabilities, if the parameter `logprobs` requested them.
        media: Images and sounds that the model made.
        citations: The sources that the text cites, such as pages that a native tool found.

    Source: OpenAI's chat completions; differs: frozen; `json` is valid or None.
    """

    text: str = ""
    json: Json = None
    message: Message | None = None
    tool_calls: tuple[ToolCall, ...] = ()
    reasoning: str | None = None
    finish_reason: str | None = "stop"
    usage: Usage = NO_USAGE
    model: str = ""
    request_id: str | None = None
    cached: bool = False
    attempts: tuple[Attempt, ...] = ()
    elapsed_s: float = 0.0
    first_chunk_s: float | None = None
    logprobs: tuple[TokenLogprob, ...] = ()
    media: tuple[Image | Audio, ...] = ()
    citations: tuple[Citation, ...] = ()

    def __getitem__(self, key: str | int) -> Any:
        """Return the value of a key of `json`.

        Raises:
            DataError: The call had no schema, so the reply is text; or the value is not a container.
            FieldError: The key is missing ('Did you mean').
        """
        json = self._container(key)
        try:
            return json[key]
        except (KeyError, IndexError, TypeError):
            hint = did_you_mean(key, json) if is_object(json) else f" It is an array of {len(json)}."
            raise FieldError(f"The reply has no {key!r}.{hint}") from None

    def get(self, key: str, default: Any = None) -> Any:
        """Return the value of a key of `json`, or `default` if it is missing.

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
        what = f"the {type(self.json).__name__} {self.json!r:.80}: read reply.json"
        if self.json is None:
            what = "text, since the call had no schema: read reply.text, or write await lm(..., schema=...)"
        raise DataError(f"reply[{key!r}]: the reply is {what}.")


@dataclass(frozen=True, slots=True)
class LMChunk:
    """A piece of a streamed reply.

    An adapter fills in `text`, `reasoning` and `tool_calls`; the call fills in the rest.

    Attributes:
        text: The added text.
        reasoning: The added reasoning.
        tool_calls: The complete tool calls, on the last piece.
        partial: If the call has a schema, the JSON value so far, frozen: strings as far as they have arrived, numbers
            once they are complete; None if nothing is known. On the last piece the valid value.
        done: Whether this is the last piece of its reply, which may add nothing.
        path: Path of the calling module, "" outside a module call.
        call_id: Id of the module call, None outside of one; concurrent calls of one module differ in it.

    Example:
        >>> "".join(chunk.text for chunk in (LMChunk("Par"), LMChunk("is", done=True)))
        'Paris'

    Source: OpenAI's chat completion chunks; differs: partial JSON.
    """

    text: str = ""
    reasoning: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    partial: Json = None
    done: bool = False
    path: str = ""
    call_id: str | None = None
    _partial: Callable[[], Json] | None = field(default=None, init=False, repr=False, compare=False)

    def __getattr__(self, name: str) -> Any:
        """Return `partial`, computed when it is first read.

        Raises:
            AttributeError: The name is unknown.
        """
        if name != "partial" or self._partial is None:
            raise AttributeError(f"'LMChunk' object has no attribute {name!r}")
        object.__setattr__(self, "partial", self._partial())
        object.__setattr__(self, "_partial", None)
        return self.partial


def with_partial(chunk: LMChunk, partial: Callable[[], Json]) -> LMChunk:
    """Return a new piece, whose `partial` is computed when it is first read."""
    object.__delattr__(chunk, "partial")
    object.__setattr__(chunk, "_partial", partial)
    return chunk


def with_fields(record: T, **fields: Any) -> T:
    """Return a frozen record with other values of some fields, in a fifth of the time of `replace`. Hot."""
    changed = object.__new__(type(record))
    vars(changed).update(vars(record), **fields)
    return changed


_ANY_REPLY: Final[Mapping[str, tuple[type, ...]]] = {"usage": (Usage,), "model": (str,), "cached": (bool,)}
_TEXT_REPLY: Final[Mapping[str, tuple[type, ...]]] = {
    **_ANY_REPLY,
    "text": (str,),
    "tool_calls": (tuple, list),
    "message": (dict, NoneType),
    **dict.fromkeys(("reasoning", "finish_reason", "request_id"), (str, NoneType)),
    **dict.fromkeys(("logprobs", "media", "citations"), (tuple,)),
}
_CHUNK: Final = {
    **dict.fromkeys(("text", "reasoning"), (str, 'a str, "" for nothing')),
    "tool_calls": ((tuple, list), "a tuple"),
}
_COUNTED: Final = ("prompt", "completion", "cached", "cache_write", "reasoning")
_COUNTS: Final = attrgetter(*(f"{kind}_tokens" for kind in _COUNTED))
_MOST_TOKENS: Final = 2**53


def check_reply(reply: LMReply | EmbeddingReply, where: str) -> None:
    """Check the fields of a reply that an adapter fills in. Hot.

    Raises:
        TypeError: One is of another type. Begins with `where`, and names it.
    """
    for name, kinds in (_TEXT_REPLY if isinstance(reply, LMReply) else _ANY_REPLY).items():
        if not isinstance(getattr(reply, name), kinds):
            expected = " or ".join("None" if kind is NoneType else kind.__name__ for kind in kinds)
            raise _wrong_field(reply, name, expected, where)
    counts = _COUNTS(reply.usage)
    if not all(map(isinstance, counts, repeat(int))) or min(counts) < 0 or max(counts) >= _MOST_TOKENS:
        raise _wrong_field(reply, "usage", "numbers of tokens", where)
    cost: Any = reply.usage.cost_usd
    if cost is not None and not (isinstance(cost, (int, float)) and 0 <= cost < inf):  # nan would exceed no budget
        raise _wrong_field(reply, "usage", "a cost from 0, or None", where)


def _wrong_field(reply: LMReply | EmbeddingReply, name: str, expected: str, where: str) -> TypeError:
    """Return the error for a field of another type."""
    kind, value = type(reply).__name__, getattr(reply, name)
    return TypeError(f"{where} an {kind} whose {name} is {value!r:.200}, wanted {expected}.")


def check_chunk(chunk: Any, where: str) -> None:
    """Check the fields of a piece that an adapter fills in. Hot.

    Raises:
        TypeError: It is not a piece, or a field is of another type. Begins with `where`, and names it.
    """
    if not isinstance(chunk, LMChunk):
        raise TypeError(f"{where} {chunk!r:.200}, wanted an LMChunk.")
    for name, (kind, expected) in _CHUNK.items():
        if not isinstance(value := getattr(chunk, name), kind):
            raise TypeError(f"{where} an LMChunk whose {name} is {value!r:.100}, wanted {expected}.")


@typing.runtime_checkable
class Adapter(Protocol):
    """A custom provider: `LanguageModel(..., adapter=it)` adds checks, retries, budgets and events.

    Attributes:
        name: The name of the adapter.
        version: Changed whenever its replies may change.

    Optional: `check(request)`, a function that raises at once; `async prepare(request)`, which loads what requests need
    and does not count against `timeout_s`; `stream(request)`, an async generator of `LMChunk`s and, for anything else
    (usage, finish reason), a final `LMReply`; `reasons(request)`, a plain function: whether the model reasons natively
    on a request and returns its reasoning; `takes_media_in_results`, True if results of tools may hold images and
    files; `runs_native_tools`, True if it sends the `native_tools` of a request; `async price()`, which returns the
    price of tokens, an object with `cost_usd(prompt_tokens, completion_tokens, cached_tokens=0)`, or None (where tokens
    were written to the provider's cache, their number is a fourth argument); `async aclose()`.

    Source: httpx transports.
    """

    @property
    def name(self) -> str: ...

    @property
    def version(self) -> str | int: ...

    def send(self, request: LMRequest, /) -> Awaitable[LMReply] | LMReply:
        """Send one request and return its reply; raise a `ModelError` on failure, with `sent=False` before sending.

        Write it as `async def`. A plain function that never waits may return the reply itself.
        """
        ...


AnyRequest: TypeAlias = LMRequest | EmbeddingRequest
Received: TypeAlias = AsyncGenerator[LMChunk | LMReply | ModelError]
"""The pieces of a reply as they arrive, last the reply; or a failure, which is not raised."""


# -- as JSON -----------------------------------------------------------------------------------------------------------


def request_content(request: LMRequest, adapter: Adapter) -> Json:
    """Return as JSON everything that the reply to a request depends on, except the endpoint.

    No key, header, address, timeout or limit is part of it. `key_of(request_content(...))` is the key of a cassette;
    `request_key` adds the endpoint.

    Args:
        request: The request.
        adapter: The adapter that sends it; its name and version are part of the content.

    Returns:
        A JSON object without null values.

    Example:
        >>> model = sm.LanguageModel("embedded/nearest")
        >>> request_content(LMRequest(model.model, turns("Hi"), sample=2), model.adapter)["sample"]
        2

    Source: DSPy's cache key; differs: includes the schema, the sample and the adapter's version.
    """
    content = {
        "adapter": frozen_list([adapter.name, adapter.version]),
        "model": request.model,
        "messages": frozen_list(request.messages),
        "schema": request.schema,
        "structured": request.structured,
        "reasoning_field": request.reasoning_field,
        "tools": None if request.tools is None else frozen_list(request.tools),
        "native_tools": frozen_list(request.native_tools) if request.native_tools else None,
        "tool_choice": request.tool_choice,
        "params": request.params or None,
        "sample": request.sample,
    }
    return frozen_dict({name: value for name, value in content.items() if value is not None})


_KEPT: Final = ("text", "json", "message", "tool_calls", "reasoning", "finish_reason", "model", "request_id")
_PLAIN: Final = LMReply()
_DEEPEST_ENTRY: Final = 100  # it holds the value of a reply, which has at most 50 levels


_KINDS_OF_MEDIA: Final[Mapping[str, type[Image | Audio]]] = {"image": Image, "audio": Audio}


def extras_of(reply: LMReply) -> dict[str, Any]:
    """Return as JSON the log probabilities, media and citations of a reply, without empty ones."""
    extras: dict[str, Any] = {"logprobs": reply.logprobs, "citations": reply.citations}
    extras = {name: [asdict(item) for item in items] for name, items in extras.items() if items}
    return extras | ({"media": [item.model_dump() for item in reply.media]} if reply.media else {})


def extras_from(json: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a reply in JSON of `extras_of`.

    Raises:
        ValueError, TypeError, KeyError: It is not such JSON.
    """
    makers: dict[str, Callable[[Any], Any]] = {
        "logprobs": lambda item: TokenLogprob(**item),
        "citations": lambda item: Citation(**item),
        "media": lambda item: _KINDS_OF_MEDIA[item["media_type"].partition("/")[0]](**item),
    }
    return {name: tuple([make(item) for item in json[name]]) for name, make in makers.items() if name in json}


def entry_of(reply: LMReply) -> Json:
    """Return the cache entry of a reply, without default values; None if it is not JSON (a lone surrogate)."""
    entry = {name: value for name in _KEPT if (value := getattr(reply, name)) != getattr(_PLAIN, name)}
    if reply.message == message("assistant", reply.text):
        del entry["message"]
    if reply.tool_calls:
        entry["tool_calls"] = list(reply.tool_calls)
    entry |= extras_of(reply)
    try:
        return frozen(entry, _DEEPEST_ENTRY)
    except DataError:
        return None


def reply_of_entry(entry: Mapping[str, Any], elapsed_s: float) -> LMReply | None:
    """Return the reply in a cache entry, marked as cached and without usage; None if it holds none."""
    fields: dict[str, Any] = {name: value for name, value in entry.items() if name in _KEPT}
    try:
        fields["message"] = message(**entry.get("message", {"role": "assistant", "content": entry.get("text", "")}))
        fields["tool_calls"] = tuple([ToolCall.model_validate(call) for call in entry.get("tool_calls", ())])
        reply = LMReply(**fields, **extras_from(entry), cached=True, elapsed_s=elapsed_s)
        check_reply(reply, "the cache holds")
    except (TypeError, ValueError, LookupError):  # of another program; pydantic's ValidationError is a ValueError
        return None
    return reply
