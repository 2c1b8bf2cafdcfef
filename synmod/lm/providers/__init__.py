"""Providers: everything that is reached over a network, through litellm.

Floor: 5, inside lm. Purpose: from a neutral request to litellm and back, keys and errors in our words.
State: litellm itself once it is imported, one client for each event loop that asked for one.
Speed: nothing of litellm is imported before the first request; a request costs what litellm costs, 5 to 13 ms of CPU.
Must never know: retries, budgets, prices, modules; the layers above guard a request.
"""

from synmod.lm.providers.adapter import LiteLLMAdapter

__all__ = ["LiteLLMAdapter"]
