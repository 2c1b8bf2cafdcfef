"""What a LanguageModel was made with: checked once, never changed, and what of it a saved file may hold."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple, Protocol, TypeAlias, cast

from synmod.errors import ConfigError, DataError
from synmod.leaves.frozen import FrozenDict, Json, frozen
from synmod.leaves.names import did_you_mean

__all__ = ["STRUCTURED", "ApiKey", "Secret", "Settings", "check_model_string", "check_seconds", "check_structured"]

STRUCTURED: Final = ("schema", "json", "prompt")
"""How a schema may be asked for: native schema, JSON mode, text only."""

_FORM: Final = re.compile(r"[^\s/]+(/[^\s/]+)+")
_ADDRESS: Final = re.compile(r"[^\s?#\x00-\x20\x7f]+")
_HEADER: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")  # a token of RFC 9110


class Secret(Protocol):
    """A key that does not show itself, such as pydantic's SecretStr."""

    def get_secret_value(self) -> str: ...


ApiKey: TypeAlias = str | Secret | Callable[[], str | Secret | Awaitable[str | Secret]]


class Settings(NamedTuple):
    """The checked arguments of a LanguageModel."""

    model: str
    name: str
    api_key: ApiKey | None
    api_base: str | None
    headers: Mapping[str, str]
    extra_body: Mapping[str, Json]
    attempts: int
    timeout_s: float | None
    attempt_timeout_s: float | None
    repairs: int
    structured: str | None
    price: tuple[float, float] | None
    defaults: FrozenDict
    supply: tuple[str, ...]

    @property
    def provider(self) -> str:
        """The part of the model string before the first slash."""
        return self.model.partition("/")[0]

    def __repr__(self) -> str:
        """Nothing of the connection, which may be secret."""
        return f"Settings(model={self.model!r}, attempts={self.attempts})"


def checked_settings(
    model: str,
    *,
    name: str | None,
    api_key: ApiKey | None,
    api_base: str | None,
    headers: Mapping[str, str] | None,
    extra_body: Mapping[str, Json] | None,
    attempts: int,
    timeout_s: float | None,
    attempt_timeout_s: float | None,
    repairs: int,
    structured: str | None,
    price: tuple[float, float] | None,
    adapter: object,
    defaults: FrozenDict,
) -> Settings:
    """Check what a model is made with; every fault is a ConfigError that names the argument."""
    check_model_string(model)
    given = {"api_base": api_base, "headers": headers, "extra_body": extra_body, "adapter": adapter}
    if name is not None and not _is_text(name):
        raise ConfigError(f"{model}: name: got {name!r:.100}, wanted a text that is not empty.")
    return Settings(
        model=model,
        name=name or model,
        api_key=_checked_key(model, api_key),
        api_base=_checked_base(model, api_base),
        headers=_checked_headers(model, headers or {}),
        extra_body=_checked_body(model, extra_body or {}),
        attempts=_checked_count(model, "attempts", attempts, 1),
        timeout_s=check_seconds(model, "timeout_s", timeout_s),
        attempt_timeout_s=check_seconds(model, "attempt_timeout_s", attempt_timeout_s),
        repairs=_checked_count(model, "repairs", repairs, 0),
        structured=check_structured(structured, model),
        price=_checked_price(model, price),
        defaults=defaults,
        supply=tuple(what for what, value in given.items() if value is not None),
    )


def check_model_string(model: object) -> str:
    """Return a model string of the form `provider/name`.

    Raises:
        ConfigError: It has another form; shows it.
    """
    if isinstance(model, str) and _FORM.fullmatch(model):
        return model
    raise ConfigError(f"LanguageModel: got {model!r:.200}, wanted 'provider/name', such as 'openai/gpt-4o-mini'.")


def check_structured(level: object, where: str) -> str | None:
    """Return how to ask for a schema.

    Raises:
        ConfigError: There is no such way ('Did you mean').
    """
    if level is None or (isinstance(level, str) and level in STRUCTURED):
        return level
    raise ConfigError(
        f"{where}: structured: got {level!r:.100}, wanted one of {', '.join(map(repr, STRUCTURED))}, or None for what"
        f" the provider does best.{did_you_mean(level, STRUCTURED)}"
    )


def check_seconds(where: str, what: str, seconds: object) -> float | None:
    """Return a time limit: a positive number, or None for none.

    Raises:
        ConfigError: It is neither.
    """
    if seconds is None:
        return None
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 < seconds < float("inf"):
        raise ConfigError(f"{where}: {what}: got {seconds!r:.100}, wanted a positive number of seconds, or None.")
    return float(seconds)


def _checked_count(model: str, what: str, count: object, least: int) -> int:
    if isinstance(count, bool) or not isinstance(count, int) or count < least:
        raise ConfigError(f"{model}: {what}: got {count!r:.100}, wanted an int of at least {least}.")
    return count


def _checked_key(model: str, key: object) -> ApiKey | None:
    """A key is a text, something that holds one, or something that gives one; it is never shown."""
    if key == "":
        return None  # what os.environ.get(name, "") gives where there is none
    if key is None or isinstance(key, str) or hasattr(key, "get_secret_value") or callable(key):
        return cast("ApiKey", key)
    raise ConfigError(f"{model}: api_key: got {type(key).__name__}, wanted a str, a SecretStr, or a callable.")


def _checked_base(model: str, base: object) -> str | None:
    """An endpoint is http or https, without user, query or fragment."""
    if base is None:
        return None
    from urllib.parse import urlsplit

    if isinstance(base, str):
        try:
            parts = urlsplit(base)
            plain = parts.username is None and parts.password is None and not parts.query and not parts.fragment
            whole = _ADDRESS.fullmatch(base)  # an empty query is one, and white space would be cut or escaped
            if parts.scheme in ("http", "https") and parts.hostname and plain and whole and parts.port != 0:
                return base
        except ValueError:
            pass
    raise ConfigError(
        f"{model}: api_base must be an http or https address without user, query or fragment,"
        " such as 'http://localhost:8000/v1'."
    )


def _checked_body(model: str, body: object) -> Mapping[str, Json]:
    """Further fields of a request are a JSON object."""
    if not isinstance(body, Mapping):
        raise ConfigError(f"{model}: extra_body: got {type(body).__name__}, wanted a mapping of names to JSON.")
    try:
        return frozen(dict(cast("Mapping[Any, Any]", body)))
    except DataError as error:
        raise DataError(f"{model}: extra_body: {error}") from None


def _is_text(value: object) -> bool:
    return isinstance(value, str) and bool(value)


def _checked_headers(model: str, headers: object) -> Mapping[str, str]:
    """Headers are texts on one line, by name; values are never shown."""
    if not isinstance(headers, Mapping):
        raise ConfigError(f"{model}: headers: got {type(headers).__name__}, wanted a mapping of names to texts.")
    given: dict[Any, Any] = dict(cast("Mapping[Any, Any]", headers))
    for name, value in given.items():
        named = isinstance(name, str) and _HEADER.fullmatch(name)
        if not named or not isinstance(value, str) or not _stands_in_a_header(value):
            raise ConfigError(
                f"{model}: headers: {name!r:.100} must be a name, in letters, digits and hyphens, with a text on one"
                " line, in ASCII."
            )
    return given


def _stands_in_a_header(value: str) -> bool:
    """Whether a text can be sent as the value of a header."""
    return value.isascii() and not any(sign in value for sign in "\r\n\0")


def _checked_price(model: str, price: object) -> tuple[float, float] | None:
    if price is None:
        return None
    if isinstance(price, tuple | list):
        given = cast("Sequence[Any]", price)
        rates = [rate for rate in given if isinstance(rate, int | float) and not isinstance(rate, bool) and rate >= 0]
        if len(given) == len(rates) == 2 and max(rates) < float("inf"):
            return float(rates[0]), float(rates[1])
    raise ConfigError(f"{model}: price: got {price!r:.100}, wanted (usd per million in, usd per million out).")
