"""Language models: a dependency handed to modules, one async call in front of every provider.

Floor: 5. Purpose: LanguageModel, one call with its retries, repairs and budgets, prompts, adapters, the default model.
State: the default model of the process, the models made from strings, connections per event loop. Speed: a call of a
zero-latency adapter costs at most 50 µs; litellm and aiohttp are imported by the first request that needs them.
Must never know: a Module (it gets path strings), the walk, the graph, what a program is.
"""

from synmod.scope import Usage

from .choice import (
    check_sample,
    current_language_model,
    current_sample,
    default_language_model,
    drawing,
    model_from,
    models_in_force,
    resolve_model,
    set_default_language_model,
    use_language_models,
)
from .litellm_door import FREE, MALWARE, Price, list_price
from .messages import Message, estimate_text, estimate_tokens, message, turns
from .model import LanguageModel, UnboundLanguageModel
from .nearest import embedded_adapter
from .openai_compatible import is_strict
from .prompt import Layout, Slots
from .provider_errors import http_error, litellm_error
from .records import ATTRIBUTES, Adapter, Attempt, LMReply, LMRequest, ModelCounters
from .replies import REPAIR_OPENING, read_reply
from .schema_words import default_instructions, in_order, input_fields, resolved
from .secrets import ENVIRONMENT, environment_secrets
from .settings import SAMPLING, STRUCTURED, Sampling, check_structured, sampling_params

__all__ = [
    "ATTRIBUTES",
    "ENVIRONMENT",
    "FREE",
    "MALWARE",
    "REPAIR_OPENING",
    "SAMPLING",
    "STRUCTURED",
    "Adapter",
    "Attempt",
    "LMReply",
    "LMRequest",
    "LanguageModel",
    "Layout",
    "Message",
    "ModelCounters",
    "Price",
    "Sampling",
    "Slots",
    "UnboundLanguageModel",
    "Usage",
    "check_sample",
    "check_structured",
    "current_language_model",
    "current_sample",
    "default_instructions",
    "default_language_model",
    "drawing",
    "embedded_adapter",
    "environment_secrets",
    "estimate_text",
    "estimate_tokens",
    "http_error",
    "in_order",
    "input_fields",
    "is_strict",
    "list_price",
    "litellm_error",
    "message",
    "model_from",
    "models_in_force",
    "read_reply",
    "resolve_model",
    "resolved",
    "sampling_params",
    "set_default_language_model",
    "turns",
    "use_language_models",
]
