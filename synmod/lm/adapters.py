"""Which adapter talks to which model: by the provider of the model string, or by the caller's own choice."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

from synmod.errors import ConfigError
from synmod.lm.settings import Settings

if TYPE_CHECKING:
    from synmod.lm.adapter import Adapter

__all__ = ["ADAPTERS", "adapter_for"]


def _embedded(settings: Settings) -> Adapter:
    """A model that runs in this process; its code is loaded when the first one is made."""
    from synmod.lm.nearest import embedded_adapter

    return embedded_adapter(settings.model.partition("/")[2])


def _remote(settings: Settings) -> Adapter:
    """The door to everything else; nothing of litellm is imported before the first request."""
    from synmod.lm.providers import LiteLLMAdapter

    return LiteLLMAdapter(settings, native=False)


def _by_hand(settings: Settings) -> Adapter:
    """The provider's own protocol, also at an `api_base`."""
    from synmod.lm.providers import LiteLLMAdapter

    return LiteLLMAdapter(settings, native=True)


ADAPTERS: Final[Mapping[str, Callable[[Settings], Adapter]]] = {"embedded": _embedded}
"""Provider -> what makes its adapter; litellm serves those that are not here."""


def adapter_for(settings: Settings, chosen: object = None) -> Adapter:
    """Give the adapter of a model.

    Raises:
        ConfigError: `chosen` is neither "litellm" nor an adapter, or there is no such embedded model.
    """
    if chosen is None:
        return ADAPTERS.get(settings.provider, _remote)(settings)
    if chosen == "litellm":
        return _by_hand(settings)
    missing = [name for name in ("name", "version", "send") if not hasattr(chosen, name)]
    if isinstance(chosen, str) or missing:
        got = repr(chosen) if isinstance(chosen, str) else f"{type(chosen).__name__} without {', '.join(missing)}"
        raise ConfigError(
            f"{settings.model}: adapter: got {got}, wanted 'litellm' or an object with name, version and"
            " async send(LMRequest) -> LMReply."
        )
    return chosen  # type: ignore[return-value]  # what the protocol asks for was just looked at
