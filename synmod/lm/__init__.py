"""Language models: a dependency handed to modules, one async call in front of every provider.

Floor: 5. Purpose: LanguageModel, one call with its retries, repairs and budgets, prompts, adapters, the default model.
State: the default model of the process, the models made from strings, connections per event loop. Speed: a call of a
zero-latency adapter costs at most 50 µs; litellm and aiohttp are imported by the first request that needs them.
Must never know: a Module (it gets path strings), the walk, the graph, what a program is.
"""

from synmod.scope import Usage as Usage

from .chat_completions import is_strict as is_strict
from .choice import (
    check_sample as check_sample, current_language_model as current_language_model, current_sample as current_sample,
    default_language_model as default_language_model, drawing as drawing, model_from as model_from,
    models_in_force as models_in_force, resolve_model as resolve_model,
    set_default_language_model as set_default_language_model, use_language_models as use_language_models,
)
from .litellm_door import FREE as FREE, MALWARE as MALWARE, Price as Price, list_price as list_price
from .messages import Message as Message, estimate_text as estimate_text, message as message, turns as turns
from .messages import estimate_tokens as estimate_tokens
from .model import LanguageModel as LanguageModel, UnboundLanguageModel as UnboundLanguageModel
from .nearest import embedded_adapter as embedded_adapter
from .prompt import (
    Layout as Layout, Slots as Slots, default_instructions as default_instructions, in_order as in_order,
    input_fields as input_fields, resolved as resolved,
)
from .provider_errors import http_error as http_error, litellm_error as litellm_error
from .records import (
    ATTRIBUTES as ATTRIBUTES, Adapter as Adapter, Attempt as Attempt, LMReply as LMReply, LMRequest as LMRequest,
)
from .replies import REPAIR_OPENING as REPAIR_OPENING, read_reply as read_reply
from .secrets import ENVIRONMENT as ENVIRONMENT, environment_secrets as environment_secrets
from .settings import SAMPLING as SAMPLING, Sampling as Sampling, check_structured as check_structured
from .settings import sampling_params as sampling_params
