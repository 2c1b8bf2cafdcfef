"""Prices: what a request costs, by the price that was given or by the list that litellm ships.

The list is read from its file, once, in a worker thread; litellm itself is not imported for it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final, NamedTuple

from synmod.leaves import aio
from synmod.leaves.frozen import is_object
from synmod.lm.settings import Settings

__all__ = ["FREE", "ModelPrice", "Price", "list_price"]

_LIST: Final = "model_prices_and_context_window_backup.json"
_ABOVE: Final = re.compile(r"(input|output|cache_read_input)_(?:cost_per_token|token_cost)_above_(\d+)k_tokens")
_MILLION: Final = 1_000_000


class Rates(NamedTuple):
    """USD per token."""

    prompt: float
    completion: float
    cached: float


class Price(NamedTuple):
    """What tokens of one model cost.

    Attributes:
        rates: The usual rates.
        above: (prompt length, rates) that hold for prompts longer than that, longest first.
    """

    rates: Rates
    above: tuple[tuple[int, Rates], ...] = ()

    def cost_usd(self, prompt_tokens: int, completion_tokens: int, cached_tokens: int = 0) -> float:
        """Give the cost of one request; cached tokens are part of the prompt."""
        rates = next((rates for length, rates in self.above if prompt_tokens > length), self.rates)
        cached = min(cached_tokens, prompt_tokens)
        return (prompt_tokens - cached) * rates.prompt + cached * rates.cached + completion_tokens * rates.completion


FREE: Final = Price(Rates(0.0, 0.0, 0.0))


class ModelPrice:
    """The price of one model, found at the first call that needs it."""

    __slots__ = ("_known", "_model", "_price")

    def __init__(self, settings: Settings) -> None:
        self._model = settings.model
        self._price: Price | None = None
        self._known = True
        if settings.price is not None:
            prompt, completion = (rate / _MILLION for rate in settings.price)
            self._price = Price(Rates(prompt, completion, prompt))
        elif settings.provider == "embedded":
            self._price = FREE
        elif settings.api_base is None and settings.provider != "testing":
            self._known = False  # no list knows what a server of one's own costs, or a double

    async def find(self) -> Price | None:
        """Give the price, None where nobody knows it."""
        if not self._known:
            self._price = await aio.to_thread(list_price, self._model)
            self._known = True
        return self._price


def list_price(model: str) -> Price | None:
    """Look a model string up in the list: as it is, else its name where the list's provider is the same."""
    known = _price_list()
    provider, _, name = model.partition("/")
    entry = known.get(model)
    if not is_object(entry):
        entry = known.get(name)
        if not is_object(entry) or entry.get("litellm_provider") != provider:
            return None
    return _price_of(entry)


@cache
def _price_list() -> Mapping[str, Any]:
    """Read the list from litellm's folder; without litellm there is none."""
    spec = find_spec("litellm")
    if spec is None or spec.origin is None:
        return {}
    try:
        return json.loads(Path(spec.origin).with_name(_LIST).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}


def _price_of(entry: Mapping[str, Any]) -> Price | None:
    """Read the rates of one entry; without a rate for both directions there is no price."""
    rates = _rates(entry, "", None)
    if rates is None:
        return None
    lengths = {int(match[2]) for key in entry if (match := _ABOVE.fullmatch(key))}
    above = [
        (length * 1000, _rates(entry, f"_above_{length}k_tokens", rates)) for length in sorted(lengths, reverse=True)
    ]
    return Price(rates, tuple((length, found) for length, found in above if found is not None))


def _rates(entry: Mapping[str, Any], suffix: str, usual: Rates | None) -> Rates | None:
    """Read one set of rates; what it lacks is as usual, and cached input costs as input where nothing is said."""
    prompt = entry.get(f"input_cost_per_token{suffix}", usual and usual.prompt)
    completion = entry.get(f"output_cost_per_token{suffix}", usual and usual.completion)
    if not isinstance(prompt, int | float) or not isinstance(completion, int | float):
        return None
    cached = entry.get(f"cache_read_input_token_cost{suffix}", usual.cached if usual else prompt)
    return Rates(float(prompt), float(completion), float(cached if isinstance(cached, int | float) else prompt))
