"""Language models: a dependency passed to modules, one async call in front of every provider.

Floor: 5. Purpose: LanguageModel, one call with its retries, repairs and budgets, prompts, adapters, the default model.
State: the default model of the process, the models made from strings, connections per event loop. Speed: a call of a
zero-latency adapter costs at most 50 µs; litellm and aiohttp are imported by the first request that needs them.
Must never know: a Module (it gets path strings), the walk, the graph, what a program is.
"""

from synmod.scope import Usage

from .relay import LMStream, stream
from .call import request_key
from .chat_completions import is_strict
from .failures import http_error, litellm_error
from .embedding import EmbeddingModel, embedding_model_from
from .litellm_adapter import Price, list_price
from .model import (
    LanguageModel, NoConnection, SharedModel, TextRules, shared_model, text_rules, unbound_model, check_sample,
    current_language_model, current_sample, current_stand_ins, default_language_model, drawing, model_from,
    models_in_force, resolve_model, set_default_language_model, use_language_models,
)
from .nearest import embedded_adapter, within
from .options import (
    ENVIRONMENT, MODEL_STRING, SAMPLING, Limit, Sampling, check_structured, environment_secrets, sampling_params,
)
from .prompt import LAYOUTS, REPAIR_OPENING, Layout, Slots, jinja_prompt
from .words import default_instructions, in_order, input_fields, resolved, without_media
from .records import (
    ATTRIBUTES, Adapter, Attempt, EmbeddingReply, EmbeddingRequest, LMChunk, LMReply, LMRequest, Message, estimate_text,
    estimate_tokens, estimated_usage, message, request_content, turns,
)
from .replies import function_schema, offered, read_reply
from .streaming import ServerSentEvents

__all__ = [
    "ATTRIBUTES", "ENVIRONMENT", "LAYOUTS", "MODEL_STRING", "REPAIR_OPENING", "SAMPLING", "Adapter", "Attempt",
    "EmbeddingModel", "EmbeddingReply", "EmbeddingRequest", "LMChunk", "LMReply", "LMRequest", "LMStream",
    "LanguageModel", "Layout", "Limit", "Message", "NoConnection", "Price", "Sampling", "ServerSentEvents",
    "SharedModel", "Slots", "TextRules", "Usage", "check_sample", "check_structured", "current_language_model",
    "current_sample", "current_stand_ins", "default_instructions", "default_language_model", "drawing",
    "embedded_adapter", "embedding_model_from", "environment_secrets", "estimate_text", "estimate_tokens",
    "estimated_usage", "function_schema", "http_error", "in_order", "input_fields", "is_strict", "jinja_prompt",
    "list_price", "litellm_error", "message", "model_from", "models_in_force", "offered", "read_reply",
    "request_content", "request_key", "resolve_model", "resolved", "sampling_params", "set_default_language_model",
    "shared_model", "stream", "text_rules", "turns", "unbound_model", "use_language_models", "within", "without_media",
]
