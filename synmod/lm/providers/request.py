"""What litellm is asked: the neutral request, with the schema asked for in the best way that the provider knows."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

from synmod.data import dump_json
from synmod.errors import RequestError
from synmod.leaves.frozen import Json, thaw
from synmod.lm.messages import Message, message
from synmod.lm.providers.route import Route
from synmod.lm.providers.strict import is_strict
from synmod.lm.records import LMRequest

__all__ = ["asked", "best_level", "check_params"]

# Outside the chat-completions shape, so no list of litellm's names it; these providers are known to refuse it.
_UNLISTED: Final = "top_k"
_WITHOUT_TOP_K: Final = frozenset({"azure", "azure_ai", "groq", "mistral", "openai", "xai"})
_NO_NAME: Final = re.compile(r"[^A-Za-z0-9_-]+")


def asked(request: LMRequest, level: str) -> dict[str, Any]:
    """Give the messages, the parameters and the response format of a request."""
    arguments: dict[str, Any] = {name: thaw(value) for name, value in request.params.items()}
    messages = request.messages
    if request.schema is not None:
        if level == "schema":
            arguments["response_format"] = {"type": "json_schema", "json_schema": _named_schema(request.schema)}
        else:
            messages = _with_schema(messages, request.schema)
        if level == "json":
            arguments["response_format"] = {"type": "json_object"}
    arguments["messages"] = [thaw(dict(turn)) for turn in messages]
    return arguments


def best_level(litellm: Any, route: Route) -> str:
    """Tell the best way to ask a provider for a schema, as far as litellm knows it."""
    if route.base is not None:
        return "schema"  # every server of this protocol that is worth its name; another one says no
    if litellm.supports_response_schema(model=route.model):
        return "schema"
    return "json" if "response_format" in (_supported(litellm, route) or ()) else "prompt"


def check_params(litellm: Any, route: Route, request: LMRequest) -> None:
    """Refuse a parameter that the model is known not to take; none is ever dropped.

    Raises:
        RequestError: Names the parameters.
    """
    if route.base is not None or not request.params:
        return
    known = _supported(litellm, route)
    if known is None:
        return
    takes_top_k = route.model.partition("/")[0] not in _WITHOUT_TOP_K
    wrong = [name for name in request.params if name not in known and not (name == _UNLISTED and takes_top_k)]
    if wrong:
        raise RequestError(f"this model does not take {', '.join(wrong)}; leave it out of the parameters.")


def _supported(litellm: Any, route: Route) -> Sequence[str] | None:
    """The parameters that litellm knows a model to take; None where it knows nothing."""
    provider, _, name = route.model.partition("/")
    return litellm.get_supported_openai_params(model=name, custom_llm_provider=provider)


def _named_schema(schema: Json) -> dict[str, Any]:
    """A schema with a valid name, held to the letter where the provider can do that."""
    name = _NO_NAME.sub("_", str(schema.get("title") or "reply")).strip("_")[:64] or "reply"
    named: dict[str, Any] = {"name": name, "schema": thaw(schema)}
    if is_strict(schema):
        named["strict"] = True
    return named


def _with_schema(messages: tuple[Message, ...], schema: Json) -> tuple[Message, ...]:
    """Tell the schema in the text, if nothing in the messages does: where it is not sent, the model must read it."""
    if any("<output_schema>" in str(turn["content"]) for turn in messages):
        return messages
    says = (
        f"<output_schema>{dump_json(schema)}</output_schema>\n"
        "Reply with one JSON value that satisfies the schema, and nothing else."
    )
    first = messages[0]
    if first["role"] == "system" and isinstance(first["content"], str):
        return (message("system", f"{first['content']}\n{says}"), *messages[1:])
    return (message("system", says), *messages)
