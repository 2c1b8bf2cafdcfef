"""Wires: requests, answers and streams of providers with an API of their own, as chat completions, and back.

Floor: 3. Purpose: pure translations of JSON: Anthropic's messages, OpenAI's responses. State: none, but that of a
stream under way. Speed: one pass over a body. Must never know: models, connections, keys, prompts.
"""

from .messages import MESSAGES, is_in_grammar
from .responses import RESPONSES
from .wire import PROVIDER_CONTENT, Wire, an_object, count_of, first_choice, objects_in

__all__ = [
    "MESSAGES", "PROVIDER_CONTENT", "RESPONSES", "Wire", "an_object", "count_of", "first_choice", "is_in_grammar",
    "objects_in",
]
