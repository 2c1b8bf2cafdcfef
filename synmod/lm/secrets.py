"""Secrets: where keys come from, and the texts that no error may show."""

from __future__ import annotations

import inspect
import os
from collections import deque
from collections.abc import Iterable
from typing import Final

from synmod.errors import AuthError

from .settings import Settings, plain

__all__ = ["ENVIRONMENT", "Secrets", "environment_secrets", "scrubbed", "shortened"]

ENVIRONMENT: Final[dict[str, tuple[str, ...]]] = {
    "ai21": ("AI21_API_KEY",),
    "anthropic": ("ANTHROPIC_API_KEY",),
    "cerebras": ("CEREBRAS_API_KEY",),
    "cohere": ("COHERE_API_KEY", "CO_API_KEY"),
    "cohere_chat": ("COHERE_API_KEY", "CO_API_KEY"),
    "dashscope": ("DASHSCOPE_API_KEY",),
    "deepinfra": ("DEEPINFRA_API_KEY",),
    "deepseek": ("DEEPSEEK_API_KEY",),
    "fireworks_ai": ("FIREWORKS_AI_API_KEY", "FIREWORKS_API_KEY"),
    "gemini": ("GEMINI_API_KEY", "GOOGLE_API_KEY"),
    "groq": ("GROQ_API_KEY",),
    "huggingface": ("HUGGINGFACE_API_KEY", "HF_TOKEN"),
    "mistral": ("MISTRAL_API_KEY",),
    "moonshot": ("MOONSHOT_API_KEY",),
    "nvidia_nim": ("NVIDIA_NIM_API_KEY",),
    "openai": ("OPENAI_API_KEY",),
    "openrouter": ("OPENROUTER_API_KEY",),
    "perplexity": ("PERPLEXITYAI_API_KEY", "PERPLEXITY_API_KEY"),
    "replicate": ("REPLICATE_API_KEY", "REPLICATE_API_TOKEN"),
    "sambanova": ("SAMBANOVA_API_KEY",),
    "together_ai": ("TOGETHERAI_API_KEY", "TOGETHER_API_KEY"),
    "voyage": ("VOYAGE_API_KEY",),
    "xai": ("XAI_API_KEY",),
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
        names = ENVIRONMENT.get(self._settings.provider)
        if names is None or self._settings.api_key is not None or self._settings.api_base is not None:
            return None
        if any(os.environ.get(name, "").strip() for name in names):
            return None
        return AuthError(f"no API key. Set {' or '.join(names)}, or pass LanguageModel(..., api_key=...).")

    async def key(self) -> str | AuthError | None:
        """Return the key for one request: that of the argument, else the usual one of the environment, else None.

        With an `api_base` the environment is not read: its keys belong to the provider's own endpoint. Where
        `api_key` returned nothing though a key is needed, or a text that cannot stand in a header, the error is
        returned, not raised, so that no frame of its traceback holds the key.
        """
        settings = self._settings
        key = settings.api_key
        if callable(key) and not hasattr(key, "get_secret_value"):
            key = key()
            if inspect.isawaitable(key):
                key = await key
        if key is not None and not (isinstance(key, str) or hasattr(key, "get_secret_value")):
            what = type(key).__name__
            return AuthError(f"what was passed as api_key=... returned {what}, wanted a str or SecretStr.", sent=False)
        found = plain(key).strip() if key is not None else ""  # a key that is read from a file ends its line
        names = ENVIRONMENT.get(settings.provider, ()) if settings.api_base is None else ()
        if settings.api_key is None:
            found = next((text for name in names if (text := os.environ.get(name, "").strip())), "")
        if not found:
            if names:
                return AuthError("no API key: what was passed as api_key=... returned none.", sent=False)
            return None
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
        key = self._settings.api_key
        held = [] if key is None or (callable(key) and not hasattr(key, "get_secret_value")) else [plain(key)]
        hidden = [plain(value) for value in self._settings.headers.values() if not isinstance(value, str)]
        words = [word for text in hidden for word in text.split()]  # of `Bearer <token>` the token alone may come back
        found = {*self._given, *held, *hidden, *words}
        return frozenset(secret for secret in found if len(secret) >= _SHORTEST) | environment_secrets()

    def scrubbed(self, text: str) -> str:
        """Return a text with `***` for every secret."""
        return scrubbed(text, self.known())


def environment_secrets() -> frozenset[str]:
    """Return the credentials that the environment holds, of every provider in the table."""
    names = (*_OTHERS, *(name for names in ENVIRONMENT.values() for name in names))
    return frozenset(value for name in names if len(value := os.environ.get(name, "")) >= _SHORTEST)


def scrubbed(text: str, secrets: Iterable[str]) -> str:
    """Return a text with `***` for every secret; the longest first, since one may hold another."""
    for secret in sorted(secrets, key=len, reverse=True):
        text = text.replace(secret, "***")
    return text


def shortened(text: str, most: int = 2_000) -> str:
    """Return the beginning of a text, as many bytes as an error may hold; scrub it first, or half a secret may stay."""
    raw = text.encode(errors="replace")
    return text if len(raw) <= most else raw[:most].decode(errors="ignore")
