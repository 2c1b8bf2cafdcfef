"""Language models: a dependency handed to modules, one async call with every hard thing about providers behind it.

Floor: 5. Purpose: LanguageModel, one call, adapters, replies, prices, counters, the default model.
State: the default model of the process, the models made from strings. Speed: a call of a zero-latency adapter costs
at most 50 µs; litellm is imported by the first request that needs it.
Must never know: a Module (it sees path strings), the walk, the graph, what a program is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from synmod.leaves.late import opened_late
from synmod.lm.choice import (
    default_language_model,
    model_from,
    models_in_force,
    resolve_model,
    set_default_language_model,
    use_language_models,
)
from synmod.lm.draws import current_sample, drawing
from synmod.lm.model import LanguageModel
from synmod.lm.sampling import SAMPLING, sampling_params
from synmod.lm.unbound import UnboundLanguageModel
from synmod.scope import Usage

if TYPE_CHECKING:
    from types import ModuleType

    from synmod.lm.adapter import Adapter
    from synmod.lm.records import Attempt, LMReply, LMRequest

__all__ = [
    "SAMPLING",
    "Adapter",
    "Attempt",
    "LMReply",
    "LMRequest",
    "LanguageModel",
    "UnboundLanguageModel",
    "Usage",
    "current_sample",
    "default_language_model",
    "drawing",
    "model_from",
    "models_in_force",
    "resolve_model",
    "sampling_params",
    "set_default_language_model",
    "use_language_models",
]


def _parts() -> tuple[ModuleType, ...]:
    """Load what the first call of a model needs."""
    from synmod.lm import adapter, records

    return adapter, records


if TYPE_CHECKING:  # for the rooms above
    from synmod.lm.counters import ATTRIBUTES as ATTRIBUTES
    from synmod.lm.counters import ModelCounters as ModelCounters
    from synmod.lm.draws import check_sample as check_sample
    from synmod.lm.keys import ENVIRONMENT as ENVIRONMENT
    from synmod.lm.keys import environment_secrets as environment_secrets
    from synmod.lm.keys import find_key as find_key
    from synmod.lm.keys import known_secrets as known_secrets
    from synmod.lm.keys import missing_key as missing_key
    from synmod.lm.keys import scrubbed as scrubbed
    from synmod.lm.messages import Message as Message
    from synmod.lm.messages import message as message
    from synmod.lm.messages import turns as turns
    from synmod.lm.nearest import embedded_adapter as embedded_adapter
    from synmod.lm.prices import FREE as FREE
    from synmod.lm.prices import Price as Price
    from synmod.lm.prices import Rates as Rates
    from synmod.lm.prices import list_price as list_price
    from synmod.lm.prompt import Layout as Layout
    from synmod.lm.providers.errors import BY_CLASS as BY_CLASS
    from synmod.lm.providers.errors import unsent as unsent
    from synmod.lm.providers.reasoning import tells_reasoning as tells_reasoning
    from synmod.lm.providers.route import Route as Route
    from synmod.lm.providers.strict import is_strict as is_strict
    from synmod.lm.replies import REPAIR_OPENING as REPAIR_OPENING
    from synmod.lm.replies import read_reply as read_reply
    from synmod.lm.schema_words import default_instructions as default_instructions
    from synmod.lm.schema_words import input_fields as input_fields
    from synmod.lm.schema_words import resolved as resolved
    from synmod.lm.settings import STRUCTURED as STRUCTURED
    from synmod.lm.settings import check_structured as check_structured
    from synmod.lm.settings import checked_settings as checked_settings
    from synmod.lm.tokens import estimate_text as estimate_text
    from synmod.lm.tokens import estimate_tokens as estimate_tokens

_FOR_ROOMS = {
    "ATTRIBUTES": "synmod.lm.counters",
    "BY_CLASS": "synmod.lm.providers.errors",
    "ENVIRONMENT": "synmod.lm.keys",
    "FREE": "synmod.lm.prices",
    "Layout": "synmod.lm.prompt",
    "Message": "synmod.lm.messages",
    "ModelCounters": "synmod.lm.counters",
    "Price": "synmod.lm.prices",
    "REPAIR_OPENING": "synmod.lm.replies",
    "Rates": "synmod.lm.prices",
    "Route": "synmod.lm.providers.route",
    "STRUCTURED": "synmod.lm.settings",
    "embedded_adapter": "synmod.lm.nearest",
    "check_sample": "synmod.lm.draws",
    "check_structured": "synmod.lm.settings",
    "checked_settings": "synmod.lm.settings",
    "default_instructions": "synmod.lm.schema_words",
    "environment_secrets": "synmod.lm.keys",
    "estimate_text": "synmod.lm.tokens",
    "estimate_tokens": "synmod.lm.tokens",
    "find_key": "synmod.lm.keys",
    "input_fields": "synmod.lm.schema_words",
    "is_strict": "synmod.lm.providers.strict",
    "known_secrets": "synmod.lm.keys",
    "list_price": "synmod.lm.prices",
    "message": "synmod.lm.messages",
    "missing_key": "synmod.lm.keys",
    "read_reply": "synmod.lm.replies",
    "resolved": "synmod.lm.schema_words",
    "scrubbed": "synmod.lm.keys",
    "tells_reasoning": "synmod.lm.providers.reasoning",
    "turns": "synmod.lm.messages",
    "unsent": "synmod.lm.providers.errors",
}
__getattr__, __dir__ = opened_late(globals(), _parts, inner=_FOR_ROOMS)
