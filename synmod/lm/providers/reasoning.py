"""Providers that reason by themselves and tell it with the reply: by the model, or where `reasoning_effort` asks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from synmod.lm.providers.route import Route
from synmod.lm.records import LMRequest

__all__ = ["tells_reasoning"]

_ALWAYS: Final[Mapping[str, tuple[str, ...]]] = {
    "dashscope": ("qwq",),
    "deepseek": ("deepseek-reasoner",),
    "fireworks_ai": ("deepseek-r1",),
    "mistral": ("magistral",),
    "moonshot": ("kimi-k2-thinking", "kimi-thinking"),
    "nvidia_nim": ("deepseek-r1",),
    "openrouter": ("deepseek-r1", "kimi-k2-thinking", "magistral", "qwq"),
    "perplexity": ("sonar-reasoning",),
    "together_ai": ("deepseek-r1",),
    "xai": ("grok-3-mini",),
}
"""Provider -> parts of the names of its models that always reason."""

_WHEN_ASKED: Final = frozenset({"anthropic", "bedrock", "gemini", "openrouter", "vertex_ai"})
_NOT_ASKED: Final = (None, "none", "disable")


def tells_reasoning(route: Route, request: LMRequest) -> bool:
    """Tell whether a provider is known to reason on a request and to say so; nothing is known of own servers."""
    provider, _, name = route.model.partition("/")
    if any(part in name.lower() for part in _ALWAYS.get(provider, ())):
        return True
    return provider in _WHEN_ASKED and request.params.get("reasoning_effort") not in _NOT_ASKED
