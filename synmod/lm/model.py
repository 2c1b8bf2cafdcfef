"""LanguageModel: a dependency handed to modules, one async call with every hard thing about providers behind it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, NoReturn

from synmod.leaves.frozen import FrozenDict, Json
from synmod.leaves.names import did_you_mean
from synmod.lm.adapters import adapter_for
from synmod.lm.counters import ATTRIBUTES, ModelCounters
from synmod.lm.keys import known_secrets, scrubbed
from synmod.lm.sampling import sampling_params
from synmod.lm.settings import ApiKey, Settings, checked_settings
from synmod.lm.standing_in import stand_in_for

if TYPE_CHECKING:
    from synmod.lm.adapter import Adapter
    from synmod.lm.records import LMReply

__all__ = ["LanguageModel"]

KEYWORDS: Final = (
    "api_key", "api_base", "attempts", "timeout_s", "name", "headers", "extra_body", "structured", "repairs",
    "attempt_timeout_s", "price", "adapter",
)  # fmt: skip


class LanguageModel:
    """A language model of any provider, shared by any number of modules, tasks, threads and event loops.

    Args:
        model: `provider/name`, such as "openai/gpt-4o-mini" or "embedded/nearest".
        api_key: A str, a SecretStr, or a callable, plain or async, asked for each request. Without it the usual
            environment variable of the provider is read at each call.
        api_base: Address of an OpenAI-compatible server, `/v1` included.
        attempts: How many requests one call may send in all.
        timeout_s: Seconds for the whole call: waits, attempts and repair; None for no limit.
        name: The name in a saved file; by default the model string.
        headers: Further HTTP headers.
        extra_body: Fields that only this provider knows, sent in the body.
        structured: How to ask for a schema: "schema", "json", "prompt"; None for what the provider does best.
        repairs: How often an invalid reply is handed back for mending.
        attempt_timeout_s: Seconds for one request; None for no limit of its own.
        price: (USD per million prompt tokens, USD per million completion tokens); None for the known list price.
        adapter: A provider of one's own (see `Adapter`), or "litellm".
        **defaults: Sampling parameters of every call.

    Raises:
        ConfigError: A keyword is unknown ('Did you mean'), or an argument cannot be; names it.
        DataError: A sampling parameter is no JSON.

    Example:
        >>> lm = LanguageModel("embedded/nearest", temperature=0)
        >>> lm
        LanguageModel('embedded/nearest', attempts=3)

    Source: DSPy and Synalinks (models, counters), httpx (one door, transports); differs: one retry loop, nothing
    dropped in silence.
    """

    # `backoff`: whether waits between attempts are waited; a double need not.
    __slots__ = ("__weakref__", "adapter", "backoff", "counters", "price", "settings")

    def __init__(
        self,
        model: str,
        *,
        api_key: ApiKey | None = None,
        api_base: str | None = None,
        attempts: int = 3,
        timeout_s: float | None = 120,
        name: str | None = None,
        headers: Mapping[str, str] | None = None,
        extra_body: Mapping[str, Json] | None = None,
        structured: str | None = None,
        repairs: int = 1,
        attempt_timeout_s: float | None = None,
        price: tuple[float, float] | None = None,
        adapter: Adapter | str | None = None,
        **defaults: Json,
    ) -> None:
        from synmod.lm.prices import ModelPrice

        self.settings: Settings = checked_settings(
            model,
            name=name,
            api_key=api_key,
            api_base=api_base,
            headers=headers,
            extra_body=extra_body,
            attempts=attempts,
            timeout_s=timeout_s,
            attempt_timeout_s=attempt_timeout_s,
            repairs=repairs,
            structured=structured,
            price=price,
            adapter=adapter,
            defaults=sampling_params(defaults, f"LanguageModel({model!r:.200})", KEYWORDS),
        )
        self.adapter: Adapter = adapter_for(self.settings, adapter)
        self.price = ModelPrice(self.settings)
        self.counters = ModelCounters()
        self.backoff = True

    async def __call__(
        self,
        messages: Any,
        schema: Any = None,
        *,
        sample: int | None = None,
        timeout_s: float | None = None,
        structured: str | None = None,
        reasoning_field: str | None = None,
        **params: Json,
    ) -> LMReply:
        """Ask the model.

        Args:
            messages: A str (one user turn), ChatMessages, or a list of ChatMessages and dicts in the shape of chat
                completions.
            schema: A JSON schema or a data model that the reply must satisfy; None for text.
            sample: Number of this draw among independent draws of one request; never sent.
            timeout_s: Seconds for this call, instead of the model's.
            structured: How to ask for the schema in this call, instead of the model's.
            reasoning_field: The field of the schema that the provider's own reasoning may fill: where a reply lacks
                it and comes with reasoning; where the provider is known to reason, it is not even asked for.
            **params: Sampling parameters; they win over the model's.

        Returns:
            The reply; its `json` is there and valid exactly if a schema was given.

        Raises:
            ConfigError: An unknown keyword ('Did you mean'), or a cost budget over a model without a known price.
            DataError: `messages` are no turns; names the index.
            SchemaError: `schema` is no usable schema.
            AuthError: No key, or one that is refused.
            RequestError: The provider refuses the request.
            ContextWindowError: The prompt is too long.
            RateLimitError, UnavailableError: Still so after all attempts.
            ModelTimeout: `timeout_s` is over, or the last attempt had no reply in `attempt_timeout_s`.
            BadReplyError: The reply is refused, cut off or invalid, also after repair.
            UnboundModelError: The model came from a file that rightly does not say how to reach it.
            BuildError: A module is being built or traced here, which must cost nobody a token.
            DeadlineExceeded, BudgetExceeded: An enclosing `sm.deadline` or `sm.budget` ends the call.

        Example:
            >>> from synmod.testing import ScriptedLM
            >>> reply = sm.run(ScriptedLM(['{"answer": "Paris"}'])("Capital of France?", {"type": "object"}))
            >>> reply["answer"]
            'Paris'
        """
        from synmod.lm.call import answer

        stand_in = stand_in_for(self.name)
        model = self if stand_in is None else stand_in
        return await answer(model, messages, schema, sample, timeout_s, structured, reasoning_field, params)

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
    def defaults(self) -> FrozenDict:
        """The sampling parameters of every call."""
        return self.settings.defaults

    def scrub(self, text: str) -> str:
        """Write `***` for every known secret in a text."""
        return scrubbed(text, self.known_secrets())

    def known_secrets(self) -> frozenset[str]:
        """Give the texts that must never leave this room: key, headers, credentials of the environment."""
        return known_secrets(self.settings, getattr(self.adapter, "handed_out", ()))

    async def aclose(self) -> None:
        """Close the connections that this model holds in the running loop; the next call opens new ones.

        Example:
            >>> sm.run(LanguageModel("embedded/nearest").aclose())

        Source: httpx clients.
        """
        close = getattr(self.adapter, "aclose", None)
        if close is not None:
            await close()

    def estimate_tokens(self, messages: Any) -> int:
        """Estimate at once how many tokens messages take.

        Args:
            messages: What a call takes.

        Returns:
            A third of the characters, rounded up.

        Raises:
            DataError: They are no turns; names the index.

        Example:
            >>> LanguageModel("embedded/nearest").estimate_tokens("Hello you")
            3
        """
        from synmod.lm.messages import turns
        from synmod.lm.tokens import estimate_tokens

        return estimate_tokens(turns(messages))

    async def count_tokens(self, messages: Any) -> int:
        """Count the tokens of messages with the tokenizer of the model, where one is known; else estimate.

        Args:
            messages: What a call takes.

        Returns:
            The tokens of the prompt.

        Raises:
            DataError: They are no turns; names the index.
            UnavailableError: The tokenizer is litellm's, and litellm is not there.

        Example:
            >>> sm.run(LanguageModel("openai/x", api_base="http://localhost:8000/v1").count_tokens("Hello you"))
            3
        """
        from synmod.lm.messages import turns
        from synmod.lm.tokens import estimate_tokens

        checked = turns(messages)
        count = getattr(self.adapter, "count_tokens", None)
        counted = None if count is None else await count(checked)
        return estimate_tokens(checked) if counted is None else counted

    def __getattr__(self, name: str) -> Any:
        """Read a counter: `cumulated_calls`, `reward_cumulated_cost_usd`, ... ; a phase in front for one phase.

        Raises:
            AttributeError: There is no such attribute ('Did you mean').
        """
        known = ATTRIBUTES.get(name)
        if known is None or name == "counters":
            raise AttributeError(f"LanguageModel has no attribute {name!r}.{did_you_mean(name, ATTRIBUTES)}")
        return self.counters.read(*known)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *ATTRIBUTES})

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.model!r}, attempts={self.attempts})"

    def __copy__(self) -> LanguageModel:
        """A model is held by reference: a copy of a program shares it."""
        return self

    def __deepcopy__(self, memo: object) -> LanguageModel:
        """A model is held by reference: a copy of a program shares it."""
        return self

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise TypeError(
            f"{self!r} cannot be pickled: it holds live connections and maybe a key. Save the program with sm.save,"
            " or leave the model out and use sm.set_default_language_model."
        )
