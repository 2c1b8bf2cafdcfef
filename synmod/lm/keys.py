"""Keys: where they come from, and what must never be seen of them."""

from __future__ import annotations

import inspect
import os
from collections.abc import Iterable
from typing import Final

from synmod.errors import AuthError
from synmod.lm.settings import Settings

__all__ = ["ENVIRONMENT", "environment_secrets", "find_key", "known_secrets", "missing_key", "scrubbed", "shortened"]

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

# Credentials of providers that litellm looks after itself: never read, only kept out of texts.
_OTHERS: Final = (
    "AWS_ACCESS_KEY_ID", "AWS_BEARER_TOKEN_BEDROCK", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AZURE_AD_TOKEN",
    "AZURE_AI_API_KEY", "AZURE_API_KEY", "AZURE_CLIENT_SECRET", "DATABRICKS_API_KEY", "VERTEXAI_CREDENTIALS",
    "WATSONX_APIKEY", "WATSONX_API_KEY", "WATSONX_TOKEN",
)  # fmt: skip

_SHORTEST: Final = 8


async def find_key(settings: Settings) -> str | None:
    """Give the key for one request: that of the argument, else the usual one of the environment, else None.

    With an `api_base` the environment is not asked: its keys belong to the provider's own endpoint.
    """
    key = settings.api_key
    if callable(key) and not isinstance(key, str) and not hasattr(key, "get_secret_value"):
        key = key()
        if inspect.isawaitable(key):
            key = await key
    if key is not None:
        return _plain(key)
    return None if settings.api_base is not None else _from_environment(settings.provider)


def missing_key(settings: Settings) -> AuthError | None:
    """Say that there is no key, if that can be known at once; providers outside the table look after themselves."""
    names = ENVIRONMENT.get(settings.provider)
    if names is None or settings.api_key is not None or settings.api_base is not None:
        return None
    if _from_environment(settings.provider) is not None:
        return None
    return AuthError(f"no API key. Set {' or '.join(names)}, or pass LanguageModel(..., api_key=...).")


def known_secrets(settings: Settings, handed_out: Iterable[str] = ()) -> frozenset[str]:
    """Collect every text of eight characters and more that must not leave the room."""
    found = set(handed_out)
    if settings.api_key is not None and not callable(settings.api_key):
        found.add(_plain(settings.api_key))
    for value in settings.headers.values():
        found.update((value, value.split()[-1] if value.split() else ""))
    return frozenset(secret for secret in found if len(secret) >= _SHORTEST) | environment_secrets()


def environment_secrets() -> frozenset[str]:
    """Collect the credentials that the environment holds, of every provider in the table."""
    names = (*_OTHERS, *(name for names in ENVIRONMENT.values() for name in names))
    return frozenset(value for name in names if len(value := os.environ.get(name, "")) >= _SHORTEST)


def scrubbed(text: str, secrets: Iterable[str]) -> str:
    """Write `***` for every secret in a text; the longest first, since one may hold another."""
    for secret in sorted(secrets, key=len, reverse=True):
        text = text.replace(secret, "***")
    return text


def shortened(text: str, most: int = 2_000) -> str:
    """Return the beginning of a text, as many bytes as an error may hold; scrub it first, or half a secret may stay."""
    raw = text.encode(errors="replace")
    return text if len(raw) <= most else raw[:most].decode(errors="ignore")


def _plain(key: object) -> str:
    """Open what hides a key; anything but text is written as text."""
    reveal = getattr(key, "get_secret_value", None)
    return str(key if reveal is None else reveal())


def _from_environment(provider: str) -> str | None:
    """The first variable of a provider that holds something."""
    for name in ENVIRONMENT.get(provider, ()):
        key = os.environ.get(name, "").strip()
        if key:
            return key
    return None
