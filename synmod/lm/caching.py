"""The cache of a model: what makes two requests equal, and replies as entries."""

from __future__ import annotations

from typing import TYPE_CHECKING

from synmod.cache import key_of
from synmod.leaves import Json, frozen_dict, frozen_list

from .records import Adapter, LMRequest

if TYPE_CHECKING:
    from .model import LanguageModel


def request_content(request: LMRequest, adapter: Adapter) -> Json:
    """Return as JSON what the reply to a request depends on, wherever it is sent.

    No key, header, address, timeout or limit is part of it. `key_of(request_content(...))` is the key of a cassette;
    `request_key` adds the endpoint.

    Args:
        request: The request.
        adapter: What sends it: name and version count.

    Returns:
        A JSON object of what is not None.

    Example:
        >>> from synmod.lm import embedded_adapter, turns
        >>> request_content(LMRequest("embedded/nearest", turns("Hi"), sample=2), embedded_adapter("nearest"))["sample"]
        2

    Source: DSPy's cache key; differs: the schema, the sample and the adapter's version count.
    """
    content = {
        "adapter": frozen_list([adapter.name, adapter.version]),
        "model": request.model,
        "messages": frozen_list(request.messages),
        "schema": request.schema,
        "structured": request.structured,
        "reasoning_field": request.reasoning_field,
        "tools": None if request.tools is None else frozen_list(request.tools),
        "tool_choice": request.tool_choice,
        "params": request.params or None,
        "sample": request.sample,
    }
    return frozen_dict({name: value for name, value in content.items() if value is not None})


def request_key(model: LanguageModel, request: LMRequest) -> str:
    """Return the key of a request in the cache of a model: its content, the endpoint and what `extra_body` adds.

    Args:
        model: The model that answers.
        request: The request.

    Returns:
        A SHA-256 in hex. It changes with whatever could change the reply.

    Example:
        >>> lm = sm.LanguageModel("embedded/nearest")
        >>> request_key(lm, LMRequest(lm.model, ())) == request_key(lm, LMRequest(lm.model, (), sample=1))
        False

    Source: content addressing.
    """
    settings = model.settings
    return key_of([request_content(request, model.adapter), settings.api_base, settings.extra_body])
