"""SharedModel: what language models and embedding models have in common: settings, keys, adapter, price, counters."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple, NoReturn, Self, TypeVar, cast

from synmod.cache import Cache
from synmod.errors import BuildError, ConfigError, UnboundModelError
from synmod.leaves import Json, aio, did_you_mean
from synmod.scope import current_call

from .chat_completions import LOCAL, DirectAdapter, Endpoint, serves
from .limits import Limit
from .litellm_adapter import LiteLLMAdapter, LiteLLMPrice, Price, list_price
from .records import ATTRIBUTES, ModelCounters, Secrets, Settings

M = TypeVar("M", bound="SharedModel")


class SharedModel:
    """A model of a provider, held by reference and shared by modules, tasks, threads and event loops.

    Args:
        settings: The checked arguments.
        endpoint: What is asked of the provider.
        embedded: Returns the adapter of the model `embedded/<name>`.

    Raises:
        ConfigError: The adapter is not one.

    Source: httpx's clients.
    """

    __slots__ = ("__weakref__", "_price", "adapter", "backoff", "counters", "secrets", "settings")

    def __init__(self, settings: Settings, endpoint: Endpoint, embedded: Callable[[str], Any]) -> None:
        self.settings: Settings = settings
        self.secrets = Secrets(settings)
        self.adapter = self._adapter(settings.adapter, endpoint, embedded)
        self.counters = ModelCounters()
        self.backoff = True  # whether waits between attempts are waited; a double need not
        self._price: tuple[Price | LiteLLMPrice | None] | None = None  # None until it was looked up

    def _adapter(self, chosen: Any, endpoint: Endpoint, embedded: Callable[[str], Any]) -> Any:
        """Return the adapter that serves the model: the one chosen by hand, else by provider and `api_base`."""
        settings = self.settings
        if chosen is None and settings.provider == "embedded":
            return embedded(settings.model.partition("/")[2])
        if chosen in (None, "direct", "litellm"):
            direct = chosen == "direct" or (chosen is None and serves(settings))
            return (DirectAdapter if direct else LiteLLMAdapter)(settings, self.secrets, endpoint)
        missing = [name for name in ("name", "version", "send") if not hasattr(chosen, name)]
        if isinstance(chosen, str) or missing:
            got = repr(chosen) if isinstance(chosen, str) else f"{type(chosen).__name__} without {', '.join(missing)}"
            wanted = "'direct', 'litellm', or an object with name, version and async send(request) -> reply"
            raise ConfigError(f"{settings.model}: adapter: got {got}, wanted {wanted}.")
        return chosen

    @property
    def model(self) -> str:
        """The model string, `provider/name`."""
        return self.settings.model

    @property
    def name(self) -> str:
        """The name in a saved file."""
        return self.settings.name

    @property
    def attempts(self) -> int:
        """How many requests one call may send in all."""
        return self.settings.attempts

    @property
    def limit(self) -> Limit | None:
        """What bounds its requests."""
        return self.settings.limit

    @property
    def cache(self) -> Cache | None:
        """Where its replies are kept."""
        return self.settings.cache

    @property
    def fallback(self) -> tuple[Self, ...]:
        """The models that are tried after it; none but language models have any."""
        return ()

    def tried(self) -> list[Self]:
        """Return the models that a call tries in turn: this one, then its fallbacks, each followed by its own."""
        found: dict[Self, None] = {}
        pending = [self]
        while pending:
            model = pending.pop()
            if model not in found:
                found[model] = None
                pending += reversed(model.fallback)
        return list(found)

    def known_secrets(self) -> frozenset[str]:
        """Return the texts that no file may show: keys and hidden headers, of fallbacks too, and of the environment."""
        return frozenset[str]().union(*(each.secrets.known() for each in self.tried()))

    async def price(self) -> Price | LiteLLMPrice | None:
        """Return what tokens cost: the price given, else the adapter's, else the list price; None where unknown."""
        if self._price is None:
            settings, found = self.settings, None
            free = (0.0, 0.0) if settings.provider == "embedded" else None
            if (rates := settings.price or free) is not None:
                prompt, completion = (rate / 1_000_000 for rate in rates)
                found = Price(prompt, completion, prompt)
            elif (find := getattr(self.adapter, "price", None)) is not None:
                found = await find()
            elif settings.api_base is None and settings.provider not in ("testing", *LOCAL):
                found = await aio.to_thread(list_price, settings.model)
            self._price = (found,)
        return self._price[0]

    async def aclose(self) -> None:
        """Close the connections that this model holds in the running loop; the next call opens new ones.

        Example:
            >>> sm.run(sm.LanguageModel("embedded/nearest").aclose())

        Source: httpx clients.
        """
        if (close := getattr(self.adapter, "aclose", None)) is not None:
            await close()

    def __getattr__(self, name: str) -> Any:
        """Read a counter: `cumulated_calls`, `reward_cumulated_cost_usd`, ... ; a phase in front for one phase.

        Raises:
            AttributeError: There is no such attribute ('Did you mean').
        """
        known = ATTRIBUTES.get(name)
        if known is None or name == "counters":
            raise AttributeError(f"{type(self).__name__} has no attribute {name!r}.{did_you_mean(name, ATTRIBUTES)}")
        return self.counters.read(*known)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *ATTRIBUTES})

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.model!r}, attempts={self.attempts})"

    def __copy__(self) -> Self:
        """A model is held by reference: a copy of a program shares it."""
        return self

    def __deepcopy__(self, memo: object) -> Self:
        """A model is held by reference: a copy of a program shares it."""
        return self

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        remedy = "Save the program with sm.save, or leave the model out and use sm.set_default_language_model"
        raise TypeError(f"{self!r} cannot be pickled: it holds live connections and maybe a key. {remedy}.")


_BY_STRING: Final[dict[tuple[type, str], SharedModel]] = {}
_MAKING: Final = threading.Lock()


def shared_model(kind: Callable[[str], M], model: Any, where: str) -> M:
    """Return the model itself, or the one model of this kind and process that a string names.

    Args:
        kind: The class.
        model: A model or string.
        where: What receives it, for the message.

    Raises:
        ConfigError: It is neither, or the string is not `provider/name`. Begins with `where`.
    """
    cls: Any = kind
    if isinstance(model, cls):
        return model
    if not isinstance(model, str):
        raise ConfigError(f"{where}: got {type(model).__name__}, wanted {cls.__name__} or a string 'provider/name'.")
    with _MAKING:
        if (cls, model) not in _BY_STRING:
            _BY_STRING[cls, model] = kind(model)
        return cast("Any", _BY_STRING[cls, model])


def refuse_on_symbols(name: str) -> None:
    """Raise BuildError where a module is built or traced, which must cost nobody a token."""
    frame = current_call()
    if frame is not None and frame.symbolic:
        what = f"{frame.path or frame.name!r}: {name} was called while the module is built on symbols"
        remedy = (
            "Call it in `call`, and declare the output of `call` (`-> Answer`), which is then known without a model"
        )
        raise BuildError(f"{what}. {remedy}.")


# -- without a connection --------------------------------------------------------------------------------------------


class NoConnection(NamedTuple):
    """The adapter of a model that was saved without its connection, as it must be: raises before anything is done.

    Attributes:
        message: What is missing, and the line to write.
        record: The record in the file; kept as it is, and written again by a save.
    """

    message: str
    record: Mapping[str, Json]
    name: str = "unbound"
    version: int = 1

    def check(self, request: object) -> NoReturn:  # noqa: ARG002  # no request will do
        """Raise.

        Raises:
            UnboundModelError: Always.
        """
        raise UnboundModelError(self.message)

    send = check


def unbound_model(kind: Callable[..., M], name: str, record: Mapping[str, Json], needs: Sequence[str]) -> M:
    """Return a model without its connection: everything works but a call.

    Args:
        kind: The class.
        name: The name in the file.
        record: The record in the file.
        needs: What the file does not hold: names such as `api_base`, never values; or a class that is not registered.

    Returns:
        A model whose calls raise UnboundModelError, which names what is needed, and the line to write.

    Raises:
        ConfigError: `record` holds no usable model string.

    Example:
        >>> unbound_model(sm.LanguageModel, "house", {"model": "openai/house"}, ["api_base"]).name
        'house'

    Source: unbound variables; differs: nothing else of the program is held up.
    """
    cls: Any = kind
    wants = f"was loaded without its connection; it needs {', '.join(needs) or 'a live model'}"
    remedy = f"Write load(..., language_models={{{name!r}: {cls.__name__}(...)}})."
    adapter = NoConnection(f"the model {name!r} {wants}. {remedy}", record)
    return kind(str(record.get("model")), name=name, adapter=adapter)
