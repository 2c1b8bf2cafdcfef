"""The checked options of a model: sampling parameters and settings; and its key, which no error shows.

A key is read for each request, from the argument or from the usual environment variable.
"""

from __future__ import annotations

import inspect
import os
import re
import typing
from collections import deque
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, Final, Literal, Protocol, TypeAlias, TypedDict

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, SecretStr, ValidationError

from synmod import leaves
from synmod.cache import Cache
from synmod.errors import AuthError, ConfigError, DataError

from .limits import Limit


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
    tool_choice: leaves.Json
    modalities: Sequence[str] | None
    service_tier: str | None


SAMPLING: Final = tuple(Sampling.__annotations__)
"""Every sampling parameter, in the order in which a saved file writes them."""

_NUMBERS: Final = frozenset(SAMPLING[:4]) | {"seed", "presence_penalty", "frequency_penalty", "top_logprobs"}

_ELSEWHERE: Final = {
    "attempts": "retries max_retries num_retries",
    "timeout_s": "timeout request_timeout",
    "api_base": "base_url",
    "api_key": "key",
    "temperature": "temp",
    "max_tokens": "max_output_tokens",
    "stop": "stop_sequences",
    "structured": "response_format",
}
"""Keyword -> its names in other libraries."""


def check_sampling(params: Mapping[str, Any], where: str, keywords: Collection[str] = ()) -> leaves.FrozenDict:
    """Check sampling parameters and freeze them.

    Args:
        params: Name to value; a value of None counts as not given.
        where: The receiver, for the message.
        keywords: Further keywords that `where` accepts, so that a suggestion may name them.

    Returns:
        The parameters that were given.

    Raises:
        ConfigError: A name is not a sampling parameter ('Did you mean'), or the value of a numeric one is not a number.
        DataError: A value is not JSON; names the parameter.

    Example:
        >>> check_sampling({"temperature": 0, "seed": None}, "Generator")
        {'temperature': 0}

    Source: DSPy's `LM(**kwargs)`; differs: unknown names are errors.
    """
    for name, value in params.items():
        if name not in SAMPLING:
            raise _unknown_keyword(name, where, keywords)
        if name in _NUMBERS and not isinstance(value, int | float | None):
            raise ConfigError(f"{where}: {name} is {value!r:.100}; give a number.")
    try:
        return leaves.frozen({name: value for name, value in params.items() if value is not None})
    except DataError as error:
        raise DataError(f"{where}: a sampling parameter must be JSON: {error}") from None


def _unknown_keyword(name: str, where: str, keywords: Collection[str]) -> ConfigError:
    """Return the error for an unknown keyword, with the closest known one."""
    choices = (*keywords, *SAMPLING)
    ours = (keyword for keyword, names in _ELSEWHERE.items() if name in names.split())
    meant, hint = name if name in _KEYWORDS else next(ours, None), leaves.did_you_mean(name, choices)
    if meant is not None:
        hint = f" Did you mean {meant!r}{'' if meant in choices else ' of the LanguageModel'}?"
    if name == "max_completion_tokens":
        hint = " Write max_tokens=..., which OpenAI itself gets under that name."
    takes = f" It takes {', '.join(keywords)}, and sampling parameters." if keywords else ""
    others = f"a parameter of one provider alone goes into extra_body={{{name!r}: ...}} of the LanguageModel"
    known = f"Sampling parameters are {', '.join(SAMPLING)}; {others}."
    return ConfigError(f"{where}: unknown keyword {name!r}.{hint}{takes} {known}")


# -- settings ----------------------------------------------------------------------------------------------------------


class Secret(Protocol):
    """A text with a hidden `repr`, such as pydantic's SecretStr."""

    def get_secret_value(self) -> str: ...


CacheGiven: TypeAlias = Cache | str | os.PathLike[str] | bool
ApiKey: TypeAlias = str | Secret | Callable[[], str | Secret | Awaitable[str | Secret]]
Structured: TypeAlias = Literal["schema", "json", "tool", "calls", "prompt"]

STRUCTURED: Final[tuple[str, ...]] = typing.get_args(Structured)
"""The ways to ask for a schema: native schema, JSON mode, one forced tool, calls in text, text only."""

MODEL_STRING: Final = re.compile(r"[^\s/]+/\S+")
"""`provider/name`; the name of a local server's model may be a path."""

_ADDRESS: Final = re.compile(
    r"https?://(\[[0-9a-z:.%]+\]|[^\s/?#@:\[\]\x00-\x20\x7f]+)(:0*[1-9]\d{0,4})?(/[^\s?#\x00-\x20\x7f]*)?",
    re.IGNORECASE,
)
_HEADER: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")  # a token of RFC 9110
_VALUE: Final = re.compile(r"[\x01-\x09\x0b\x0c\x0e-\x7f]*")  # ASCII on one line
_HIDDEN: Final = frozenset({"api_key", "api_base", "headers"})  # not even shown in errors
_SECRET_HEADER: Final = re.compile(r"auth|cookie|key|secret|token", re.IGNORECASE)  # in its name: hidden as a SecretStr


def plain(text: Any) -> str:
    """Return the text of a str, of a secret, or of any other value."""
    reveal = getattr(text, "get_secret_value", None)
    return str(text if reveal is None else reveal())


def _is_text(value: object) -> bool:
    """Whether a value is a str or a secret."""
    return isinstance(value, str) or hasattr(value, "get_secret_value")


def hidden(key: Any) -> Any:
    """Return a key given as a str as a SecretStr: reporters of errors print the variables of a frame."""
    return SecretStr(key) if isinstance(key, str) else key


def _key(key: Any) -> Any:
    """Check a key: a str, a secret, or a callable that returns either."""
    if not (_is_text(key) or callable(key)):
        raise ValueError(f"got {type(key).__name__}, wanted a str, a SecretStr, or a callable")
    if _is_text(key) and not plain(key):  # from os.environ.get(name, "") without the variable
        return None
    return hidden(key)


def _base(base: str) -> str:
    """Check an endpoint: http or https, without user, query or fragment."""
    if _ADDRESS.fullmatch(base):
        return base
    raise ValueError("must be an http(s) address without user, query or fragment, such as 'http://localhost:8000/v1'")


def _headers(headers: Mapping[Any, Any]) -> Mapping[str, str | Secret]:
    """Check headers: names and values are ASCII on one line; a value may be a secret, one of a credential is hidden."""
    for name, value in headers.items():
        is_name = isinstance(name, str) and _HEADER.fullmatch(name)
        if not is_name or not _is_text(value) or not _VALUE.fullmatch(plain(value)):
            raise ValueError(f"{name!r:.100} must be a name of letters, digits and hyphens, with a line of ASCII text")
    return {name: hidden(value) if _SECRET_HEADER.search(name) else value for name, value in headers.items()}


_PORTS: Final = {"hosted_vllm": 8000, "llamafile": 8080, "lm_studio": 1234, "ollama": 11434, "vllm": 8000}
LOCAL: Final[Mapping[str, str]] = {provider: f"http://localhost:{port}/v1" for provider, port in _PORTS.items()}
"""Provider -> the default address of its local server."""

_BASES: Final[Mapping[str, tuple[str, ...]]] = {
    "anthropic": ("ANTHROPIC_BASE_URL", "ANTHROPIC_API_BASE"),
    "openai": ("OPENAI_BASE_URL", "OPENAI_API_BASE"),
    "ollama": ("OLLAMA_API_BASE", "OLLAMA_HOST"),
    **{name: (f"{name.upper()}_API_BASE",) for name in ("hosted_vllm", "llamafile", "lm_studio", "vllm")},
}
"""Provider -> the environment variables that may hold the address of its server, read at each call as its key is."""


def _base_of_environment(provider: str) -> str | None:
    """Return the address of a provider's server that the environment sets; None if it sets none.

    Ollama's variables hold a host or an address without `/v1`; that of a server that listens everywhere is this host.

    Raises:
        ConfigError: It is not an address; names the variable.
    """
    name = next((name for name in _BASES.get(provider, ()) if os.environ.get(name, "").strip()), None)
    if name is None:
        return None
    base = os.environ[name].strip()
    if provider == "ollama":
        scheme, _, rest = base.rpartition("://")
        host, _, port = rest.removesuffix("/").removesuffix("/v1").partition(":")
        here = "127.0.0.1" if host in ("", "0.0.0.0") else host  # noqa: S104  # as a client reads it
        base = f"{scheme or 'http'}://{here}:{port or (443 if scheme == 'https' else _PORTS[provider])}/v1"
    if provider == "anthropic":  # whose variable holds the root
        base = f"{base.rstrip('/').removesuffix('/v1')}/v1"
    try:
        return _base(base)
    except ValueError as error:
        raise ConfigError(f"the environment variable {name} {error}.") from None


@dataclass(frozen=True)
class BatchJobs:
    """How calls become jobs of a provider's batch API: `LanguageModel(..., batch=BatchJobs())`.

    Args:
        quiet_s: A job is sent when this long no further call has joined it.
        max_requests: A job is sent when it has this many requests, or as many bytes as the provider takes.
        poll_s: Seconds between two looks at a job.
        window: Within which time the provider works on a job.

    Raises:
        ConfigError: A number is not positive, or the window is not "24h".

    Example:
        >>> BatchJobs(quiet_s=5.0).poll_s
        30

    Source: the batch APIs of OpenAI and Anthropic.
    """

    quiet_s: float = 2.0
    max_requests: int = 50_000
    poll_s: float = 30
    window: Literal["24h"] = "24h"

    def __post_init__(self) -> None:
        for name in ("quiet_s", "poll_s"):
            leaves.check_seconds(f"BatchJobs: {name}", getattr(self, name), error=ConfigError)
        leaves.check_int("BatchJobs: max_requests", self.max_requests, error=ConfigError)
        if self.window != "24h":
            raise ConfigError(f"BatchJobs: window is {self.window!r:.20}; providers work within '24h'.")


def _reader(name: str, kind: type, form: str, make: Callable[[Any], Any]) -> BeforeValidator:
    """Return what reads a keyword: None and False for none, an instance as it is, anything else by `make`."""

    def read(value: Any) -> Any:
        made = value if value is None or value is False or isinstance(value, kind) else make(value)
        if made is None and value is not None:
            raise ConfigError(f"{name} is {value!r:.100}; write {form}.")
        return made or None

    return BeforeValidator(read)


def _cache_at(place: Any) -> Cache | None:
    """Return the cache at a path; that of the working folder for True."""
    is_path = isinstance(place, str) or hasattr(place, "__fspath__")
    return Cache(os.path.join(".synmod", "cache.db") if place is True else place) if place is True or is_path else None


_CACHE: Final = _reader("cache", Cache, "True, the path of a file, or a Cache, sm.Cache(...)", _cache_at)
_BATCH: Final = _reader(
    "batch", BatchJobs, "True, or sm.BatchJobs(...)", lambda batch: BatchJobs() if batch is True else None
)
_LIMIT: Final = _reader(
    "limit",
    Limit,
    "sm.Limit(rpm=...), or a number of requests at once",
    lambda limit: Limit(concurrency=limit) if type(limit) is int else None,
)
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
    extra_body: Annotated[Mapping[Any, Any], AfterValidator(lambda body: leaves.frozen(dict(body)))] = {}
    attempts: Annotated[int, Field(strict=True, ge=1, le=100)] = 3
    timeout_s: Seconds | None = 120
    attempt_timeout_s: Seconds | None = None
    repairs: Annotated[int, Field(strict=True, ge=0)] = 1
    allow_remote_media: Annotated[bool, Field(strict=True)] = False
    structured: Structured | None = None
    price: Annotated[tuple[Rate, ...], Field(min_length=2, max_length=4)] | None = None
    prompt_cache: Literal[True, "1h"] | None = None
    batch: Annotated[BatchJobs | None, _BATCH] = None
    adapter: Any = None
    limit: Annotated[Limit | None, _LIMIT] = None
    cache: Annotated[Cache | None, _CACHE] = None
    defaults: Annotated[Any, Field(default=leaves.frozen({}))]
    batch_size: Annotated[int, Field(strict=True, ge=1)] = 64
    dimensions: Annotated[int, Field(strict=True, ge=1)] | None = None

    @cached_property
    def server(self) -> tuple[str, str | None]:
        """The provider and the address of its server."""
        return self.provider, self.api_base

    @property
    def supply(self) -> tuple[str, ...]:
        """The given arguments that no file holds and that a load must supply."""
        names = ("api_base", "headers", "extra_body", "adapter")
        return tuple([name for name in names if getattr(self, name) not in (None, {})])

    @property
    def base(self) -> str | None:
        """The address of the server: `api_base`, else that of the environment, else the usual one of a local server.

        None for the provider's own endpoint.

        Raises:
            ConfigError: The address in the environment is none; names the variable.
        """
        return self.api_base or _base_of_environment(self.provider) or LOCAL.get(self.provider)

    @property
    def provider(self) -> str:
        """The part of the model string before the first slash."""
        return self.model.partition("/")[0]

    def __repr__(self) -> str:
        """Leave out the connection, which may be secret."""
        return f"Settings(model={self.model!r}, attempts={self.attempts})"

    __str__ = __repr__


_KEYWORDS: Final = (
    *(name for name in Settings.model_fields if name not in ("model", "defaults", "batch_size", "dimensions")),
    "fallback",
)


def settings_for(arguments: Mapping[str, Any]) -> Settings:
    """Return the settings of a model.

    Args:
        arguments: The local variables of the constructor, as they are when it begins, the key hidden: of these the
            fields of `Settings` count, None for those not given.

    Raises:
        ConfigError: An argument is wrong; names it and the expected value.
    """
    own = {name: value for name, value in arguments.items() if name in Settings.model_fields}
    if own.get("batch"):  # a job waits as long as it takes
        own |= dict.fromkeys(("timeout_s", "attempt_timeout_s", "limit"))
    model = own["model"]
    if not isinstance(model, str) or not MODEL_STRING.fullmatch(model):
        raise ConfigError(f"model: got {model!r:.200}, wanted 'provider/name', such as 'openai/gpt-4o-mini'.")
    fields = {name: value for name, value in own.items() if value is not None or name.endswith("timeout_s")}
    fields["defaults"] = check_sampling(own.get("defaults") or {}, f"LanguageModel({model!r})", _KEYWORDS)
    try:
        return Settings.model_validate({"name": model, **fields})
    except ValidationError as error:
        fault = error.errors(include_url=False, include_context=False)[0]
        name = str(fault["loc"][0])
        problem, value = fault["msg"].removeprefix("Value error, "), own.get(name)
        got = "" if name in _HIDDEN else f" Got {value!r:.100}.{leaves.did_you_mean(value, STRUCTURED)}"
        raise ConfigError(f"{model}: {name}: {problem}.{got}") from None


def check_structured(level: str | None, where: str) -> str | None:
    """Check a way to ask for a schema, and return it.

    Raises:
        ConfigError: The way is unknown ('Did you mean').
    """
    return level if level is None else leaves.check_choice(f"{where}: structured", level, STRUCTURED, error=ConfigError)


# -- keys --------------------------------------------------------------------------------------------------------------


_WITH_ONE_NAME: Final = (
    "ai21 anthropic cerebras dashscope deepinfra deepseek groq mistral moonshot nvidia_nim openai openrouter sambanova "
    "voyage xai"
)
ENVIRONMENT: Final[Mapping[str, tuple[str, ...]]] = {
    **{name: (f"{name.upper()}_API_KEY",) for name in _WITH_ONE_NAME.split()},
    "cohere": ("COHERE_API_KEY", "CO_API_KEY"),
    "cohere_chat": ("COHERE_API_KEY", "CO_API_KEY"),
    "fireworks_ai": ("FIREWORKS_AI_API_KEY", "FIREWORKS_API_KEY"),
    "gemini": ("GEMINI_API_KEY", "GOOGLE_API_KEY"),
    "huggingface": ("HUGGINGFACE_API_KEY", "HF_TOKEN"),
    "perplexity": ("PERPLEXITYAI_API_KEY", "PERPLEXITY_API_KEY"),
    "replicate": ("REPLICATE_API_KEY", "REPLICATE_API_TOKEN"),
    "together_ai": ("TOGETHERAI_API_KEY", "TOGETHER_API_KEY"),
}
"""Provider -> the environment variables that may hold its key, the usual one first. Saved files cannot extend it."""

# Credentials that litellm reads itself; here they are only removed from texts.
_OF_LITELLM: Final = (
    "AWS_ACCESS_KEY_ID AWS_BEARER_TOKEN_BEDROCK AWS_SECRET_ACCESS_KEY AWS_SESSION_TOKEN AZURE_AD_TOKEN "
    "AZURE_AI_API_KEY AZURE_API_KEY AZURE_CLIENT_SECRET DATABRICKS_API_KEY VERTEXAI_CREDENTIALS "
    "WATSONX_APIKEY WATSONX_API_KEY WATSONX_TOKEN"
)

_MOST_KEYS: Final = 256  # a rotating key may differ for each request in flight


class Secrets:
    """The key and the secret headers of one model: read for each request, and removed from every error.

    Example:
        >>> from synmod.lm import LanguageModel
        >>> LanguageModel("openai/x", api_key="sk-12345678").secrets.scrub("wrong key sk-12345678")
        'wrong key ***'
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._recent_keys: deque[SecretStr] = deque(maxlen=_MOST_KEYS)
        leaves.remember_secrets(self.own())

    def missing(self) -> AuthError | None:
        """Return the error for a missing key; None if there is one, or for a provider that is not in `ENVIRONMENT`."""
        settings, names = self._settings, ENVIRONMENT.get(self._settings.provider)
        if names is None or settings.api_key is not None or settings.base is not None or _first_of(names):
            return None
        return AuthError(f"no API key. Set {' or '.join(names)}, or pass api_key=... to the model.")

    async def key(self) -> SecretStr | AuthError | None:
        """Return the key for one request: that of the argument, else of the environment, else None.

        With an `api_base` the environment is not read: its keys belong to the provider's own endpoint. If `api_key`
        returns no usable key, the error is returned, not raised, so that no frame of its traceback holds the key. No
        frame holds it while `api_key` runs either.
        """
        settings = self._settings
        names = ENVIRONMENT.get(settings.provider, ()) if settings.api_base is None else ()
        if settings.api_key is None:
            key: Any = _first_of(names)
        elif _is_text(settings.api_key):
            key = settings.api_key
        else:
            key = settings.api_key()
            if inspect.isawaitable(key):
                key = await key
            if key is not None and not _is_text(key):
                return AuthError(f"api_key=... returned {type(key).__name__}, wanted a str or SecretStr.", sent=False)
        text = plain(key or "").strip()  # a key read from a file may end with a newline
        if not text:
            missing = AuthError("no API key: what was passed as api_key=... returned none.", sent=False)
            return missing if names else None
        if not (text.isascii() and text.isprintable()):
            return AuthError("the API key cannot be sent: it must be ASCII text on one line.", sent=False)
        secret = SecretStr(text)
        if secret not in self._recent_keys:
            self._recent_keys.append(secret)
            leaves.remember_secrets(self.hidden_texts())
        return secret

    def headers(self) -> dict[str, str]:
        """Return the headers of the user, as they are sent."""
        return {name: plain(value) for name, value in self._settings.headers.items()}

    def hidden_texts(self) -> frozenset[str]:
        """Return every text of at least eight characters that no error may show."""
        return self.own() | environment_secrets()

    def own(self) -> frozenset[str]:
        """Return the secrets of this model, without those of the environment."""
        key, headers = self._settings.api_key, self._settings.headers.values()
        hidden = [plain(value) for value in headers if not isinstance(value, str)]
        words = [word for text in hidden for word in text.split()]  # of `Bearer <token>` a provider may quote the token
        secrets = {*map(plain, self._recent_keys), *([plain(key)] if _is_text(key) else ()), *hidden, *words}
        return frozenset(secret for secret in secrets if len(secret) >= leaves.SHORTEST_SECRET)

    def scrub(self, text: str) -> str:
        """Return the text of an error, which may have been cut, with `***` for every secret."""
        return leaves.without_secrets(text, self.hidden_texts(), cut=True)


def _first_of(names: Iterable[str]) -> str:
    """Return the value of the first of these environment variables that is set, else ""."""
    return next((text for name in names if (text := os.environ.get(name, "").strip())), "")


def environment_secrets() -> frozenset[str]:
    """Return the credentials in the environment, of every known provider."""
    names = (*_OF_LITELLM.split(), *(name for names in ENVIRONMENT.values() for name in names))
    return frozenset(value for name in names if len(value := os.environ.get(name, "")) >= leaves.SHORTEST_SECRET)


def shorten(text: str, most: int = 2_000) -> str:
    """Return the first `most` bytes of a text. Scrub it before, or half a secret may remain."""
    raw = text.encode(errors="replace")
    return text if len(raw) <= most else raw[:most].decode(errors="ignore")
