"""Sampling parameters: the names that a model or a call may set, and nothing else.

A misspelt parameter sent as a body field costs days, so an unknown name is an error with the likely right one.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Final

from synmod.errors import ConfigError, DataError
from synmod.leaves.frozen import FrozenDict, frozen, frozen_dict
from synmod.leaves.names import did_you_mean

__all__ = ["SAMPLING", "sampling_params", "unknown_keyword"]

SAMPLING: Final = (
    "temperature",
    "top_p",
    "top_k",
    "max_tokens",
    "stop",
    "seed",
    "presence_penalty",
    "frequency_penalty",
    "logit_bias",
    "logprobs",
    "top_logprobs",
    "reasoning_effort",
    "verbosity",
    "parallel_tool_calls",
    "tool_choice",
    "modalities",
    "service_tier",
)
"""Every sampling parameter, in the order in which a saved file writes them."""

_KNOWN: Final = frozenset(SAMPLING)

# What people write who come from other libraries, and what it is called here.
_ELSEWHERE: Final = {
    "retries": "attempts",
    "max_retries": "attempts",
    "num_retries": "attempts",
    "timeout": "timeout_s",
    "request_timeout": "timeout_s",
    "base_url": "api_base",
    "key": "api_key",
    "max_completion_tokens": "max_tokens",
    "max_output_tokens": "max_tokens",
    "stop_sequences": "stop",
    "response_format": "structured",
}

_OF_MODELS: Final = ("attempts", "timeout_s", "api_base", "api_key", "cache", "limit", "fallback", "extra_body")

_NOTHING: Final = frozen_dict({})


def sampling_params(given: Mapping[str, Any], where: str, others: Collection[str] = ()) -> FrozenDict:
    """Check sampling parameters and freeze them.

    Args:
        given: Name to value; a value of None counts as not given.
        where: What receives them, for the message.
        others: Further keywords that `where` accepts, so that a suggestion may name them.

    Returns:
        The parameters that were given.

    Raises:
        ConfigError: A name is no sampling parameter ('Did you mean').
        DataError: A value is no JSON; names the parameter.

    Example:
        >>> sampling_params({"temperature": 0, "seed": None}, "Generator")
        {'temperature': 0}

    Source: DSPy's `LM(**kwargs)`; differs: nothing unknown is passed on.
    """
    if not given:
        return _NOTHING
    for name in given:
        if name not in _KNOWN:
            raise unknown_keyword(name, where, others)
    try:
        return frozen_dict({name: frozen(value) for name, value in given.items() if value is not None})
    except DataError as error:
        raise DataError(f"{where}: a sampling parameter must be JSON: {error}") from None


def unknown_keyword(name: str, where: str, others: Collection[str] = ()) -> ConfigError:
    """Say that a keyword is unknown, with the word that was probably meant."""
    known = (*others, *SAMPLING)
    meant = name if name in _OF_MODELS else _ELSEWHERE.get(name)
    hint = did_you_mean(name, known)
    if meant is not None:
        hint = f" Did you mean {meant!r}{'' if meant in known else ' of the LanguageModel'}?"
    takes = f" It takes {', '.join(others)}, and sampling parameters." if others else ""
    return ConfigError(
        f"{where}: unknown keyword {name!r}.{hint}{takes} Sampling parameters are {', '.join(SAMPLING)};"
        f" what only one provider knows goes into extra_body={{{name!r}: ...}} of the LanguageModel."
    )
