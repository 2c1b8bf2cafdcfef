"""Language models: a dependency passed to modules, one async call in front of every provider.

Floor: 5. Purpose: LanguageModel, one call with its retries, repairs and budgets, prompts, adapters, the default model.
State: the default model of the process, the models made from strings, connections per event loop. Speed: a call of a
zero-latency adapter costs at most 50 µs; litellm and aiohttp are imported by the first request that needs them.
Must never know: a Module (it gets path strings), the walk, the graph, what a program is.
"""

from synmod.scope import Usage

from .relay import LMStream, stream, unstreamed
from .chat_completions import chat_body, reply_of
from .failures import http_error
from .embedding import EmbeddingModel, resolve_embedding_model
from .model import (
    EmbeddedModels, LanguageModel, NoConnection, SharedModel, TextRules, model_of_kind, text_rules, unbound_model,
    check_sample, current_language_model, current_sample, current_stand_ins, default_language_model, sample_number,
    model_from, models_in_force, resolve_model, set_default_language_model, stand_in_for, use_language_models,
)
from .limits import Limit
from .options import (
    MODEL_STRING, SAMPLING, BatchJobs, Sampling, check_structured, environment_secrets, check_sampling,
)
from .prompt import LAYOUTS, REPAIR_OPENING, Layout, Slots, guard_text, guard_turn, instructions_in, jinja_prompt
from .words import (
    alternatives, default_instructions, fields_of, in_order, input_fields, json_text, resolve_ref, without_media,
)
from .records import (
    Adapter, Attempt, Citation, EmbeddingReply, EmbeddingRequest, LMChunk, LMReply, LMRequest, Message, TokenLogprob,
    estimate_text, estimate_tokens, estimate_usage, extras_from, extras_of, message, places_of_examples,
    request_content, turn_to_keep, turns,
)
from .replies import bare_text, faults_of_calls, function_schema, function_schemas, is_native_tool, native_tool

__all__ = [
    "LAYOUTS", "MODEL_STRING", "REPAIR_OPENING", "SAMPLING", "Adapter", "Attempt", "BatchJobs", "Citation",
    "EmbeddedModels", "EmbeddingModel", "EmbeddingReply", "EmbeddingRequest", "LMChunk", "LMReply", "LMRequest",
    "LMStream", "LanguageModel", "Layout", "Limit", "Message", "NoConnection", "Sampling", "SharedModel", "Slots",
    "TextRules", "TokenLogprob", "Usage", "alternatives", "bare_text", "chat_body", "check_sample",
    "check_sampling", "check_structured", "current_language_model", "current_sample", "current_stand_ins",
    "default_instructions", "default_language_model", "environment_secrets", "estimate_text", "estimate_tokens",
    "estimate_usage", "extras_from", "extras_of", "faults_of_calls", "fields_of", "function_schema",
    "function_schemas", "guard_text", "guard_turn", "http_error", "in_order", "input_fields", "instructions_in",
    "is_native_tool", "jinja_prompt", "json_text", "message", "model_from", "model_of_kind", "models_in_force",
    "native_tool", "places_of_examples", "reply_of", "request_content", "resolve_embedding_model", "resolve_model",
    "resolve_ref", "sample_number", "set_default_language_model", "stand_in_for", "stream", "text_rules",
    "turn_to_keep", "turns", "unbound_model", "unstreamed", "use_language_models", "without_media",
]
