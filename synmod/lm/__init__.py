"""Language models: a dependency handed to modules, one async call in front of every provider.

Floor: 5. Purpose: LanguageModel, one call with its retries, repairs and budgets, prompts, adapters, the default model.
State: the default model of the process, the models made from strings, connections per event loop. Speed: a call of a
zero-latency adapter costs at most 50 µs; litellm and aiohttp are imported by the first request that needs them.
Must never know: a Module (it gets path strings), the walk, the graph, what a program is.
"""

from synmod.scope import Usage as Usage

from .call import read_reply as read_reply
from .chat_completions import http_error as http_error, is_strict as is_strict, litellm_error as litellm_error
from .litellm_adapter import Price as Price, list_price as list_price
from .model import (
    LanguageModel as LanguageModel, UnboundLanguageModel as UnboundLanguageModel, check_sample as check_sample,
    current_language_model as current_language_model, current_sample as current_sample,
    default_language_model as default_language_model, drawing as drawing, model_from as model_from,
    models_in_force as models_in_force, resolve_model as resolve_model,
    set_default_language_model as set_default_language_model, use_language_models as use_language_models,
)
from .nearest import embedded_adapter as embedded_adapter, within as within
from .prompt import (
    REPAIR_OPENING as REPAIR_OPENING, Layout as Layout, Slots as Slots, default_instructions as default_instructions,
    in_order as in_order, input_fields as input_fields, resolved as resolved,
)
from .records import (
    ATTRIBUTES as ATTRIBUTES, ENVIRONMENT as ENVIRONMENT, SAMPLING as SAMPLING, Adapter as Adapter, Attempt as Attempt,
    LMReply as LMReply, LMRequest as LMRequest, Message as Message, Sampling as Sampling,
    check_structured as check_structured, environment_secrets as environment_secrets, estimate_text as estimate_text,
    estimate_tokens as estimate_tokens, message as message, sampling_params as sampling_params, turns as turns,
)
