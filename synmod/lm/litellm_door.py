"""What is used of litellm: the package, imported late and in a worker thread, and its price list, read without it.

The import takes seconds and would fetch prices from the network and read a `.env` of the project around it, unless the
environment forbids both; so that is set first.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import re
import sys
import threading
import warnings
from collections.abc import Mapping, Sequence
from functools import cache, partial
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any, Final, NamedTuple

from synmod.errors import UnavailableError
from synmod.leaves import aio
from synmod.leaves.frozen import is_object, thaw

from .messages import Message

__all__ = ["FREE", "LiteLLMPrice", "Price", "close_leftovers", "counted_tokens", "list_price", "open_litellm"]

MALWARE: Final = frozenset({"1.82.7", "1.82.8"})
"""Releases that were published with stolen credentials."""

_INSTALL: Final = 'install it: pip install "litellm>=1.84,<2"'
_SET_BEFORE_IMPORT: Final = {"LITELLM_LOCAL_MODEL_COST_MAP": "True", "LITELLM_MODE": "PRODUCTION"}
_LOGGERS: Final = ("LiteLLM", "LiteLLM Router", "LiteLLM Proxy")
_IGNORED: Final[tuple[dict[str, Any], ...]] = (
    {"module": r"litellm(\.|$)"},
    # It makes its coroutine in a worker thread; a request cancelled meanwhile leaves one that nothing awaits, and the
    # warning names whatever code the collector interrupted.
    {"message": r"coroutine '\w+\.\w*completion\w*' was never awaited", "category": RuntimeWarning},
    {"message": r"Pydantic serializer warnings:[\s\S]*(Message|Choices|ModelResponse|Usage)"},
)
_TURNS: Final = 10
_PRICES: Final = "model_prices_and_context_window_backup.json"
_ABOVE: Final = re.compile(r"\w+_above_(\d+)k_tokens")


class _Door:
    """The state of the import: one thread runs it, and every request waits for that."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.opening: aio.Signal | None = None
        self.failure = ""
        self.litellm: ModuleType | None = None


_DOOR: Final = _Door()


async def open_litellm() -> Any:
    """Wait until litellm is imported, and return it; a cancelled waiter leaves the import running.

    Raises:
        UnavailableError: It is missing, or cannot be imported. A later request tries again.
    """
    if _DOOR.litellm is None:
        with _DOOR.lock:
            if _DOOR.opening is None or (_DOOR.opening.is_set and _DOOR.litellm is None):
                _DOOR.opening = aio.Signal()
                threading.Thread(target=_import, args=(_DOOR.opening,), name="litellm", daemon=True).start()
            opening = _DOOR.opening
        await opening.wait()
    if _DOOR.litellm is None:
        raise UnavailableError(_DOOR.failure, sent=False)
    _ignore_warnings()
    return _DOOR.litellm


def _import(opened: aio.Signal) -> None:
    """Import litellm in this thread, and quieten it."""
    from importlib import metadata

    _DOOR.failure = "litellm cannot be imported; see the traceback of its thread."
    try:
        found = metadata.version("litellm")
        if found in MALWARE:
            _DOOR.failure = (
                f"litellm {found} carries malware and is refused; change the credentials of this machine,"
                f" and {_INSTALL}."
            )
            return
        for name, value in _SET_BEFORE_IMPORT.items():
            os.environ.setdefault(name, value)
        _ignore_warnings()
        import litellm

        litellm.suppress_debug_info = True
        for name in _LOGGERS:
            logger = logging.getLogger(name)
            for handler in [handler for handler in logger.handlers if hasattr(handler, "stream")]:
                logger.removeHandler(handler)
            logger.addHandler(logging.NullHandler())
        _DOOR.litellm = litellm
    except metadata.PackageNotFoundError:
        _DOOR.failure = f"litellm is not installed, and this model needs it; {_INSTALL}."
    except ImportError as error:
        _DOOR.failure = f"litellm cannot be imported ({error}); {_INSTALL}."
    finally:
        opened.set()


def _ignore_warnings() -> None:
    """Put the filters for litellm's own warnings in front; a test may have put others in their place meanwhile."""
    for ignored in _IGNORED:
        warnings.filterwarnings("ignore", **ignored)  # where it stands already, Python moves it to the front


async def close_leftovers() -> None:
    """Stop the logging task that litellm left in the running loop, and close the clients that it keeps for it."""
    loop = asyncio.get_running_loop()
    for _ in range(_TURNS):  # what litellm starts beside a reply needs some turns until its worker knows this loop
        await asyncio.sleep(0)
    worker = getattr(sys.modules.get("litellm.litellm_core_utils.logging_worker"), "GLOBAL_LOGGING_WORKER", None)
    if worker is not None and getattr(worker, "_bound_loop", None) is loop:  # no public name; a test watches it
        await worker.stop()
    kept: Any = getattr(getattr(_DOOR.litellm, "in_memory_llm_clients_cache", None), "cache_dict", {})
    for key in [key for key in list(kept) if str(key).endswith(f"-{id(loop)}")]:
        client = kept.pop(key, None)
        close = getattr(client, "aclose", None) or getattr(client, "close", None)
        closing: Any = close() if close is not None else None
        if hasattr(closing, "__await__"):
            await closing


async def counted_tokens(model: str, messages: Sequence[Message]) -> int:
    """Count the tokens of messages with the tokenizer that litellm carries.

    Raises:
        UnavailableError: litellm is missing.
    """
    litellm = await open_litellm()
    plain = [thaw(dict(turn)) for turn in messages]
    return await aio.to_thread(partial(litellm.token_counter, model=model, messages=plain))


class Price(NamedTuple):
    """What the tokens of one model cost, in USD per token.

    Attributes:
        prompt: A token read.
        completion: A token written.
        cached: A token read from the provider's cache.
        above: (prompt length, price) for prompts longer than that, the longest first.
    """

    prompt: float
    completion: float
    cached: float
    above: tuple[tuple[int, Price], ...] = ()

    def cost_usd(self, prompt_tokens: int, completion_tokens: int, cached_tokens: int = 0) -> float:
        """Return the cost of one request; cached tokens are part of the prompt."""
        price = next((price for length, price in self.above if prompt_tokens > length), self)
        cached = min(cached_tokens, prompt_tokens)
        return (prompt_tokens - cached) * price.prompt + cached * price.cached + completion_tokens * price.completion


FREE: Final = Price(0.0, 0.0, 0.0)


class LiteLLMPrice(NamedTuple):
    """What the tokens of one model cost, as litellm computes it."""

    litellm: Any
    model: str

    def cost_usd(self, prompt_tokens: int, completion_tokens: int, cached_tokens: int = 0) -> float:
        """Return the cost of one request; raises where litellm does not know the model."""
        return sum(
            self.litellm.cost_per_token(
                model=self.model,
                prompt_tokens=prompt_tokens,
                completion_tokens=completion_tokens,
                cache_read_input_tokens=cached_tokens,
            )
        )


def list_price(model: str) -> Price | None:
    """Return the price of a model string in litellm's list, by its whole text, else by its name and provider."""
    known = _price_list()
    provider, _, name = model.partition("/")
    entry = known.get(model)
    if not is_object(entry):
        entry = known.get(name)
        if not is_object(entry) or entry.get("litellm_provider") != provider:
            return None
    lengths = sorted({int(found[1]) for key in entry if (found := _ABOVE.fullmatch(key))}, reverse=True)
    above = [(length * 1000, _rates(entry, f"_above_{length}k_tokens")) for length in lengths]
    usual = _rates(entry)
    return usual and usual._replace(above=tuple((length, price) for length, price in above if price is not None))


@cache
def _price_list() -> Mapping[str, Any]:
    """Read the list in litellm's folder; without litellm there is none."""
    spec = find_spec("litellm")
    if spec is None or spec.origin is None:
        return {}
    try:
        return json.loads(Path(spec.origin).with_name(_PRICES).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}


def _rates(entry: Mapping[str, Any], suffix: str = "") -> Price | None:
    """Read one set of rates; a missing one is as usual, and cached input costs as input where nothing is listed."""
    names = ("input_cost_per_token", "output_cost_per_token", "cache_read_input_token_cost")
    prompt, completion, cached = (entry.get(f"{name}{suffix}", entry.get(name)) for name in names)
    if not isinstance(prompt, (int, float)) or not isinstance(completion, (int, float)):
        return None
    return Price(float(prompt), float(completion), float(cached if isinstance(cached, (int, float)) else prompt))
