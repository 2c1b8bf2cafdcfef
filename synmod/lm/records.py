"""The records of language models: sampling parameters, settings, keys; turns, request, reply; counters.

A key is read for each request, from the argument or from the usual environment variable; `Secrets` takes it out of
every error.
"""

from __future__ import annotations

import inspect
import os
import re
import typing
from collections import deque
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import add
from typing import Annotated, Any, ClassVar, Final, Literal, NamedTuple, Protocol, TypeAlias, TypedDict

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from synmod.cache import Cache
from synmod.data import Schema, ToolCall, content_part, dump_json
from synmod.errors import AuthError, ConfigError, DataError, FieldError
from synmod.leaves import FrozenDict, Json, did_you_mean, fill, frozen, frozen_dict, frozen_list, is_array, is_object
from synmod.scope import PHASES, PerPhase, Usage

from .limits import Limit, limit_from


class Sampling(TypedDict, total=False):
    """The sampling parameters that a model or a call may set; no other name is accepted."""

    temperature: float | None
    top_p: float | None
    top_k: int | None
    max_tokens: int | None
    stop: str | Sequence[str] | None
    seed: int | None
    presence_penalty: float | None
    frequency_penalty: float | None
    logit_bias: Mapping[str, float] | None
    logprobs: bool | None
    top_logprobs: int | None
    reasoning_effort: str | None
    verbosity: str | None
    parallel_tool_calls: bool | None
    tool_choice: Json
    modalities: Sequence[str] | None
    service_tier: str | None


SAMPLING: Final = tuple(Sampling.__annotations__)
"""Every sampling parameter, in the order in which a saved file writes them."""

# What people write who come from other libraries, and what it is called here.
_ELSEWHERE: Final = {
    "retries": "attempts", "max_retries": "attempts", "num_retries": "attempts", "timeout": "timeout_s",
    "request_timeout": "timeout_s", "base_url": "api_base", "key": "api_key", "max_completion_tokens": "max_tokens",
    "max_output_tokens": "max_tokens", "stop_sequences": "stop", "response_format": "structured",
}  # fmt: skip


def sampling_params(given: Mapping[str, Any], where: str, others: Collection[str] = ()) -> FrozenDict:
    """Check sampling parameters and freeze them.

    Args:
        given: Name to value; a value of None counts as not given.
        where: What receives them, for the message.
        others: Further keywords that `where` accepts, so that a suggestion may name them.

    Returns:
        The parameters that were given.

    Raises:
        ConfigError: A name is not a sampling parameter ('Did you mean').
        DataError: A value is not JSON; names the parameter.

    Example:
        >>> sampling_params({"temperature": 0, "seed": None}, "Generator")
        {'temperature': 0}

    Source: DSPy's `LM(**kwargs)`; differs: nothing unknown is passed on.
    """
    for name in given:
        if name not in SAMPLING:
            raise _unknown_keyword(name, where, others)
    try:
        return frozen_dict({name: frozen(value) for name, value in given.items() if value is not None})
    except DataError as error:
        raise DataError(f"{where}: a sampling parameter must be JSON: {error}") from None


def _unknown_keyword(name: str, where: str, others: Collection[str]) -> ConfigError:
    """Return the error for an unknown keyword, with the word that was probably meant."""
    known = (*others, *SAMPLING)
    meant = name if name in _KEYWORDS else _ELSEWHERE.get(name)
    hint = did_you_mean(name, known)
    if meant is not None:
        hint = f" Did you mean {meant!r}{'' if meant in known else ' of the LanguageModel'}?"
    takes = f" It takes {', '.join(others)}, and sampling parameters." if others else ""
    return ConfigError(
        f"{where}: unknown keyword {name!r}.{hint}{takes} Sampling parameters are {', '.join(SAMPLING)};"
        f" a parameter that only one provider knows goes into extra_body={{{name!r}: ...}} of the LanguageModel."
    )


class Secret(Protocol):
    """A text that does not show itself, such as pydantic's SecretStr."""

    def get_secret_value(self) -> str: ...


ApiKey: TypeAlias = str | Secret | Callable[[], str | Secret | Awaitable[str | Secret]]
Structured: TypeAlias = Literal["schema", "json", "tool", "prompt"]

STRUCTURED: Final[tuple[str, ...]] = typing.get_args(Structured)
"""How a schema may be asked for: native schema, JSON mode, one forced tool, text only."""

_MODEL: Final = re.compile(r"[^\s/]+(/[^\s/]+)+")
_ADDRESS: Final = re.compile(
    r"https?://(\[[0-9a-z:.%]+\]|[^\s/?#@:\[\]\x00-\x20\x7f]+)(:0*[1-9]\d{0,4})?(/[^\s?#\x00-\x20\x7f]*)?",
    re.IGNORECASE,
)
_HEADER: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")  # a token of RFC 9110
_HIDDEN: Final = frozenset({"api_key", "api_base", "headers"})  # never shown, also not in an error


def plain(text: Any) -> str:
    """Return a text, also one that hides itself; anything else as text."""
    reveal = getattr(text, "get_secret_value", None)
    return str(text if reveal is None else reveal())


def _is_text(value: object) -> bool:
    """Whether a value is a text, or one that hides itself."""
    return isinstance(value, str) or hasattr(value, "get_secret_value")


def _key(key: Any) -> Any:
    """Check a key: a text, something that holds one, or something that returns one."""
    if key == "":  # what os.environ.get(name, "") returns where there is none
        return None
    if _is_text(key) or callable(key):
        return key
    raise ValueError(f"got {type(key).__name__}, wanted a str, a SecretStr, or a callable")


def _base(base: str) -> str:
    """Check an endpoint: http or https, without user, query or fragment."""
    if _ADDRESS.fullmatch(base):
        return base
    raise ValueError("must be an http(s) address without user, query or fragment, such as 'http://localhost:8000/v1'")


def _headers(headers: Mapping[Any, Any]) -> Mapping[str, str | Secret]:
    """Check headers: names and texts on one line in ASCII; a value may hide itself."""
    for name, value in headers.items():
        named = isinstance(name, str) and _HEADER.fullmatch(name)
        text = plain(value) if _is_text(value) else "\n"
        if not named or not text.isascii() or any(sign in text for sign in "\r\n\0"):
            raise ValueError(f"{name!r:.100} must be a name of letters, digits and hyphens, with a line of ASCII text")
    return headers


def cache_from(given: Any) -> Cache | None:
    """Return the cache of a model: True is `.synmod/cache.db` of the working folder, a path a file, False none.

    Raises:
        ConfigError: It is none of these.
    """
    if given is None or given is False or isinstance(given, Cache):
        return given or None
    if given is True:
        return Cache(os.path.join(".synmod", "cache.db"))
    if isinstance(given, str) or hasattr(given, "__fspath__"):
        return Cache(given)
    raise ConfigError(f"cache is {given!r:.100}; write True, the path of a file, or a Cache, sm.Cache(...).")


Seconds: TypeAlias = Annotated[float, Field(strict=True, gt=0, allow_inf_nan=False)]
Rate: TypeAlias = Annotated[float, Field(strict=True, ge=0, allow_inf_nan=False)]


class Settings(BaseModel):
    """The checked arguments of a model."""

    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True, defer_build=True)

    model: str
    name: Annotated[str, Field(strict=True, min_length=1)]
    api_key: Annotated[Any, BeforeValidator(_key)] = None
    api_base: Annotated[str, AfterValidator(_base)] | None = None
    headers: Annotated[Mapping[Any, Any], AfterValidator(_headers)] = {}
    extra_body: Annotated[Mapping[Any, Any], AfterValidator(lambda body: frozen(dict(body)))] = {}
    attempts: Annotated[int, Field(strict=True, ge=1, le=100)] = 3
    timeout_s: Seconds | None = 120
    attempt_timeout_s: Seconds | None = None
    repairs: Annotated[int, Field(strict=True, ge=0)] = 1
    allow_remote_media: Annotated[bool, Field(strict=True)] = False
    structured: Structured | None = None
    price: tuple[Rate, Rate] | None = None
    adapter: Any = None
    limit: Annotated[Limit | None, BeforeValidator(limit_from)] = None
    cache: Annotated[Cache | None, BeforeValidator(cache_from)] = None
    defaults: Annotated[Any, Field(default=frozen_dict({}))]
    batch_size: Annotated[int, Field(strict=True, ge=1)] = 64
    dimensions: Annotated[int, Field(strict=True, ge=1)] | None = None

    @property
    def supply(self) -> tuple[str, ...]:
        """The arguments that no file holds and that a load must supply."""
        return tuple(
            name for name in ("api_base", "headers", "extra_body", "adapter") if getattr(self, name) not in (None, {})
        )

    @property
    def provider(self) -> str:
        """The part of the model string before the first slash."""
        return self.model.partition("/")[0]

    def __repr__(self) -> str:
        """Nothing of the connection, which may be secret."""
        return f"Settings(model={self.model!r}, attempts={self.attempts})"

    __str__ = __repr__


_NO_SETTINGS: Final = ("__class__", "fallback", "model", "self")  # among the locals of a constructor
_KEYWORDS: Final = (
    *(name for name in Settings.model_fields if name not in ("model", "defaults", "batch_size", "dimensions")),
    "fallback",
)


def settings_for(model: object, given: Mapping[str, Any]) -> Settings:
    """Return the settings of a model.

    Args:
        model: The model string, `provider/name`.
        given: The locals of the constructor: the other fields of `Settings`, None for those that were not given.
            `defaults` are not yet checked.

    Raises:
        ConfigError: An argument is wrong; names it and what was wanted.
    """
    if not isinstance(model, str) or not _MODEL.fullmatch(model):
        raise ConfigError(f"model: got {model!r:.200}, wanted 'provider/name', such as 'openai/gpt-4o-mini'.")
    named = {name: value for name, value in given.items() if name not in _NO_SETTINGS}
    known = {name: value for name, value in named.items() if value is not None or name.endswith("timeout_s")}
    known["defaults"] = sampling_params(given.get("defaults", {}), f"LanguageModel({model!r})", _KEYWORDS)
    try:
        return Settings.model_validate({"model": model, "name": model, **known})
    except ValidationError as error:
        fault = error.errors(include_url=False, include_context=False)[0]
        what = str(fault["loc"][0])
        wanted = fault["msg"].removeprefix("Value error, ")
        got = "" if what in _HIDDEN else f" Got {given.get(what)!r:.100}.{did_you_mean(given.get(what), STRUCTURED)}"
        raise ConfigError(f"{model}: {what}: {wanted}.{got}") from None


def check_structured(level: str | None, where: str) -> str | None:
    """Return how to ask for a schema.

    Raises:
        ConfigError: There is no such way ('Did you mean').
    """
    if level is None or level in STRUCTURED:
        return level
    raise ConfigError(
        f"{where}: structured: got {level!r:.100}, wanted one of {', '.join(map(repr, STRUCTURED))}, or None for what"
        f" the provider does best.{did_you_mean(level, STRUCTURED)}"
    )


def check_seconds(where: str, what: str, seconds: float) -> float:
    """Return a time limit.

    Raises:
        ConfigError: It is not a positive, finite number.
    """
    if isinstance(seconds, (int, float)) and not isinstance(seconds, bool) and 0 < seconds < float("inf"):  # pyright: ignore[reportUnnecessaryIsInstance]  (users)
        return seconds
    raise ConfigError(f"{where}: {what}: got {seconds!r:.100}, wanted a positive number of seconds.")


_LISTED: Final = (
    "ai21", "anthropic", "cerebras", "cohere", "dashscope", "deepinfra", "deepseek", "fireworks_ai", "gemini", "groq",
    "huggingface", "mistral", "moonshot", "nvidia_nim", "openai", "openrouter", "replicate", "sambanova", "voyage",
    "xai",
)  # fmt: skip
_FURTHER_NAMES: Final = {
    "cohere": "CO_API_KEY", "fireworks_ai": "FIREWORKS_API_KEY", "gemini": "GOOGLE_API_KEY",
    "huggingface": "HF_TOKEN", "replicate": "REPLICATE_API_TOKEN",
}  # fmt: skip
ENVIRONMENT: Final[Mapping[str, tuple[str, ...]]] = {
    **{name: (f"{name.upper()}_API_KEY", *filter(None, [_FURTHER_NAMES.get(name)])) for name in _LISTED},
    "cohere_chat": ("COHERE_API_KEY", "CO_API_KEY"),
    "perplexity": ("PERPLEXITYAI_API_KEY", "PERPLEXITY_API_KEY"),
    "together_ai": ("TOGETHERAI_API_KEY", "TOGETHER_API_KEY"),
}
"""Provider -> the environment variables that may hold its key, the usual one first. No file can add to it."""

# Credentials that litellm finds by itself: never read, only kept out of texts.
_OTHERS: Final = (
    "AWS_ACCESS_KEY_ID", "AWS_BEARER_TOKEN_BEDROCK", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AZURE_AD_TOKEN",
    "AZURE_AI_API_KEY", "AZURE_API_KEY", "AZURE_CLIENT_SECRET", "DATABRICKS_API_KEY", "VERTEXAI_CREDENTIALS",
    "WATSONX_APIKEY", "WATSONX_API_KEY", "WATSONX_TOKEN",
)  # fmt: skip

_SHORTEST: Final = 8
_MOST_KEYS: Final = 256  # a rotating key may be another for each request in flight


class Secrets:
    """The key and the secret headers of one model: found for a request, and taken out of every error.

    Example:
        >>> from synmod.lm import LanguageModel
        >>> LanguageModel("openai/x", api_key="sk-12345678").secrets.scrubbed("wrong key sk-12345678")
        'wrong key ***'
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._given: deque[str] = deque(maxlen=_MOST_KEYS)  # keys of the last requests

    def missing(self) -> AuthError | None:
        """Return the error for a missing key, if that is known at once; litellm looks after unlisted providers."""
        settings, names = self._settings, ENVIRONMENT.get(self._settings.provider)
        if names is None or settings.api_key is not None or settings.api_base is not None or _first_of(names):
            return None
        return AuthError(f"no API key. Set {' or '.join(names)}, or pass api_key=... to the model.")

    async def key(self) -> str | AuthError | None:
        """Return the key for one request: that of the argument, else the usual one of the environment, else None.

        With an `api_base` the environment is not read: its keys belong to the provider's own endpoint. Where
        `api_key` returned nothing though a key is needed, or a text that cannot stand in a header, the error is
        returned, not raised, so that no frame of its traceback holds the key.
        """
        settings = self._settings
        names = ENVIRONMENT.get(settings.provider, ()) if settings.api_base is None else ()
        key: Any = _first_of(names) if settings.api_key is None else settings.api_key
        if not _is_text(key):
            key = key()
            if inspect.isawaitable(key):
                key = await key
            if key is not None and not _is_text(key):
                what = f"returned {type(key).__name__}, wanted a str or SecretStr"
                return AuthError(f"what was passed as api_key=... {what}.", sent=False)
        found = plain(key or "").strip()  # a key that is read from a file ends its line
        if not found:
            missing = AuthError("no API key: what was passed as api_key=... returned none.", sent=False)
            return missing if names else None
        if not (found.isascii() and found.isprintable()):
            return AuthError("the API key cannot be sent: it must be ASCII text on one line.", sent=False)
        if found not in self._given:
            self._given.append(found)
        return found

    def headers(self) -> dict[str, str]:
        """Return the headers of the caller, as they are sent."""
        return {name: plain(value) for name, value in self._settings.headers.items()}

    def known(self) -> frozenset[str]:
        """Return every text of eight characters and more that no error may show."""
        return self.own() | environment_secrets()

    def own(self) -> frozenset[str]:
        """Return those that belong to this model, and not to the environment."""
        key, headers = self._settings.api_key, self._settings.headers.values()
        hidden = [plain(value) for value in headers if not isinstance(value, str)]
        words = [word for text in hidden for word in text.split()]  # of `Bearer <token>` the token alone may come back
        found = {*self._given, *([plain(key)] if _is_text(key) else ()), *hidden, *words}
        return frozenset(secret for secret in found if len(secret) >= _SHORTEST)

    def scrubbed(self, text: str) -> str:
        """Return a text with `***` for every secret; the longest first, since one may hold another."""
        for secret in sorted(self.known(), key=len, reverse=True):
            text = text.replace(secret, "***")
        return text


def _first_of(names: Iterable[str]) -> str:
    """Return the first value that these environment variables hold, else ""."""
    return next((text for name in names if (text := os.environ.get(name, "").strip())), "")


def environment_secrets() -> frozenset[str]:
    """Return the credentials that the environment holds, of every provider in the table."""
    names = (*_OTHERS, *(name for names in ENVIRONMENT.values() for name in names))
    return frozenset(value for name in names if len(value := os.environ.get(name, "")) >= _SHORTEST)


def shortened(text: str, most: int = 2_000) -> str:
    """Return the beginning of a text, as many bytes as an error may hold; scrub it first, or half a secret may stay."""
    raw = text.encode(errors="replace")
    return text if len(raw) <= most else raw[:most].decode(errors="ignore")


_ROLES: Final = ("assistant", "developer", "system", "tool", "user")
_MEDIA: Final = ("image_url", "input_audio", "file")
_CHARACTERS_PER_TOKEN: Final = 3
_CHARACTERS_OF_MEDIA: Final = 3_000  # an image is a thousand tokens, more or less
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
    """Check one turn: text, parts, or the tool calls of an assistant; keys that are null are left out."""
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
    calls_tools = content is None and role == "assistant" and json.get("tool_calls")
    if not (isinstance(content, str) or is_array(content) or calls_tools):
        got = "no content" if content is None else f"content of type {type(content).__name__}"
        raise DataError(f"{where}: got {got}, wanted a text.")
    if (role == "tool") != isinstance(json.get("tool_call_id"), str):
        raise DataError(f"{where}: a tool turn, and no other, has the tool_call_id of the call that it answers.")
    for place, call in enumerate(json.get("tool_calls") or ()):
        function = call.get("function") if is_object(call) else None
        if not is_object(function) or {type(function.get("name")), type(function.get("arguments"))} != {str}:
            form = '{"id": ..., "type": "function", "function": {"name": ..., "arguments": "..."}}'
            raise DataError(f"{where}: got tool_calls[{place}] {call!r:.100}, wanted {form}.")
    given = {key: value for key, value in json.items() if value is not None}
    if is_array(content):
        parts = [_part(part, f"{where}: content[{place}]") for place, part in enumerate(content)]
        given["content"] = frozen_list(parts)
    turn = Message.__new__(Message)
    fill(turn, {"role": role, "content": None} | given)
    return turn


def _part(part: Json, where: str) -> Json:
    """Return a part of the content of a turn, without keys that are null."""
    kind = part.get("type") if is_object(part) else type(part).__name__
    inner: Json = part.get(str(kind)) if is_object(part) else None
    if kind == "text" and isinstance(inner, str):
        return part
    if kind in _MEDIA and is_object(inner):
        return frozen_dict({**part, kind: frozen_dict({key: one for key, one in inner.items() if one is not None})})
    wanted = 'a text, an sm.Image, sm.Audio or sm.File, or a part such as {"type": "text", "text": ...}'
    raise DataError(f"{where}: got a part of kind {kind!r:.100}, wanted {wanted}.")


def estimate_tokens(messages: Iterable[Message]) -> int:
    """Return an estimate of the tokens of turns: a third of their characters, rounded up, so rather too many."""
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


def most_tokens(request: LMRequest | EmbeddingRequest) -> tuple[int, int]:
    """Return how many tokens a request may use: an estimate of its prompt, and `max_tokens` (0 where not set)."""
    most = request.params.get("max_tokens")
    offered = request.tools if isinstance(request, LMRequest) else None
    tools = estimate_text(len(dump_json(list(offered)))) if offered else 0
    return estimate_tokens(request.messages) + tools, most if isinstance(most, int) else 0


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
        tools: Function schemas of the tools that the model may call, in the shape of chat completions; or None.
        tool_choice: Which of them it must call: `auto`, `none`, `required`, one tool by name, or None.
        params: Sampling parameters, those of the call before those of the model.
        sample: The number of this draw among independent draws of one request; never sent.
        structured: How to ask for the schema: `schema`, `json`, `tool`, `prompt`, or None for the best of it.
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


@dataclass(frozen=True)
class EmbeddingRequest:
    """One batch of texts to embed, as an adapter gets it.

    Attributes:
        model: The model string, `provider/name`.
        texts: The texts, each once.
        params: `dimensions`, where it was given.

    Source: OpenAI's embeddings.
    """

    model: str
    texts: tuple[str, ...]
    params: Mapping[str, Json] = _NO_PARAMS

    structured: ClassVar[str] = "none"
    """Nothing is asked for by a schema."""

    @property
    def messages(self) -> tuple[Message, ...]:
        """The texts as turns, for whoever shows requests of any kind or counts their tokens."""
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
    usage: Usage = _NO_USAGE
    cached: bool = False
    model: str = ""
    elapsed_s: float = 0.0


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

    An adapter fills in `text`, `tool_calls` (as `ToolCall`s or as they stand on the wire), and what it knows of
    `reasoning`, `finish_reason`, `usage`, `model` and `request_id`; the call fills in the rest.

    Attributes:
        text: The raw text.
        json: The value read from the text: present and valid exactly if a schema was given and no tool was called.
        message: The reply as an assistant turn.
        tool_calls: What tools the model calls, with arguments that satisfy their schemas.
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
    tool_calls: tuple[ToolCall, ...] = ()
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


@dataclass(frozen=True, slots=True)
class LMChunk:
    """A piece of a reply that is streamed.

    An adapter fills in `text`, `reasoning` and `tool_calls`; the call fills in the rest.

    Attributes:
        text: What was added to the text.
        reasoning: What was added to the reasoning.
        tool_calls: The calls of tools: whole, on the last piece.
        partial: Where the call has a schema, what is known of the JSON value so far: all but a number whose end has
            not arrived, strings as far as they have come; None where nothing is known. On the last piece the valid
            value.
        done: Whether this is the last piece of its reply; that one may add nothing.
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


@typing.runtime_checkable
class Adapter(Protocol):
    """A provider of the user's own: `LanguageModel(..., adapter=it)` adds checks, retries, budgets and events.

    Attributes:
        name: What the adapter is called.
        version: Changes when its replies would.

    What it may have besides: `check(request)`, a plain function that raises at once; `async prepare(request)`, for
    what it must load first, which does not count against `timeout_s`; `stream(request)`, an async generator of
    `LMChunk`s and last, where it knows more than they hold (usage, finish reason), an `LMReply`; `reasons(request)`,
    a plain function: whether the model reasons natively on a request and the reply will hold it; `async price()`: what
    tokens cost, an object with `cost_usd(prompt_tokens, completion_tokens, cached_tokens=0)`, or None; `async
    aclose()`.

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


class ModelCounts(NamedTuple):
    """What the calls of one model came to, in one phase or in all.

    Attributes:
        calls: Calls that ended, well or not.
        requests: Requests sent, those of cancelled calls too.
        failed_calls: Calls that raised.
        cached_calls: Calls that needed no request.
        unpriced_calls: Calls whose price is unknown.
        cancelled: Calls that were cancelled; they move nothing else but `requests`, and what had come of a stream.
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

    def __add__(self, other: ModelCounts) -> ModelCounts:  # pyright: ignore[reportIncompatibleMethodOverride]  (a sum)
        return ModelCounts._make(map(add, self, other))


ATTRIBUTES: Final = {
    f"{prefix}cumulated_{name}": (phase, name)
    for prefix, phase in (("", None), *((f"{phase}_", phase) for phase in PHASES))
    for name in ModelCounts._fields
    if name != "cancelled"
}
"""Attribute of a LanguageModel -> (phase or None for all, field)."""


class ModelCounters(PerPhase[ModelCounts]):
    """The counters of one model: `counters["reward"]` is one phase, an attribute is the sum of the three."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__(ModelCounts())

    def count(self, phase: str, usage: Usage, *, failed: bool, cached: bool = False) -> None:
        """Count one call at its end."""
        tokens, cancelled = (usage.prompt_tokens, usage.completion_tokens), 0
        kinds = (int(failed), int(cached), int(usage.cost_usd is None), cancelled)
        self.add(ModelCounts(1, usage.requests, *kinds, *tokens, usage.cost_usd or 0.0), phase)

    def count_cancelled(self, phase: str, requests: int, came: Usage = _NO_USAGE) -> None:
        """Count one call that was cancelled, and what had come of a streamed one."""
        tokens = {"prompt_tokens": came.prompt_tokens, "completion_tokens": came.completion_tokens}
        self.add(ModelCounts(cancelled=1, requests=requests, **tokens, cost_usd=came.cost_usd or 0.0), phase)

    def read(self, phase: str | None, name: str) -> int | float:
        """Return one field, of one phase or summed over all."""
        return getattr(self.total() if phase is None else self[phase], name)
