"""Routes: where a model string leads, and by which protocol."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from synmod.lm.settings import Settings

__all__ = ["LOCAL", "Route", "route_for"]

LOCAL: Final[Mapping[str, str]] = {
    "hosted_vllm": "http://localhost:8000/v1",
    "llamafile": "http://localhost:8080/v1",
    "lm_studio": "http://localhost:1234/v1",
    "ollama": "http://localhost:11434/v1",
    "vllm": "http://localhost:8000/v1",
}
"""Provider -> the usual address of its server on this machine."""


@dataclass(frozen=True, slots=True)
class Route:
    """Where requests go.

    Attributes:
        model: The model string as litellm gets it.
        base: The address of the server, or None for the provider's own.
        own_client: Whether our own client speaks, which every OpenAI-compatible endpoint understands.
    """

    model: str
    base: str | None
    own_client: bool


def route_for(settings: Settings, *, native: bool) -> Route:
    """Choose the route of a model; `native` asks for the provider's own protocol, whatever the address."""
    provider, _, name = settings.model.partition("/")
    base = settings.api_base or LOCAL.get(provider)
    if native and provider != "openai":
        return Route(settings.model, base, own_client=False)
    if base is not None or provider == "openai":
        return Route(f"openai/{name}", base, own_client=True)
    return Route(settings.model, None, own_client=False)
