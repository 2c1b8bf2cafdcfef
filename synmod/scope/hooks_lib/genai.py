"""A model call in the words of OpenTelemetry's conventions for generative AI: attributes of a span."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, cast

from synmod.scope.plain_json import plain
from synmod.scope.scrubbing import Secrets

if TYPE_CHECKING:
    from synmod.scope.events import LMBegin, LMEnd
    from synmod.scope.usage_record import Usage

_PROVIDERS: Final = {
    "azure": "azure.ai.openai",
    "azure_ai": "azure.ai.inference",
    "bedrock": "aws.bedrock",
    "gemini": "gcp.gemini",
    "mistral": "mistral_ai",
    "vertex_ai": "gcp.vertex_ai",
    "watsonx": "ibm.watsonx.ai",
    "xai": "x_ai",
}
"""Where the conventions have another name for a provider than our model strings."""

_PARAMS: Final = {
    "frequency_penalty": "frequency_penalty",
    "max_completion_tokens": "max_tokens",
    "max_tokens": "max_tokens",
    "presence_penalty": "presence_penalty",
    "seed": "seed",
    "stop": "stop_sequences",
    "temperature": "temperature",
    "top_k": "top_k",
    "top_p": "top_p",
}

Attributes = dict[str, Any]


def asked(event: LMBegin, *, content: bool) -> Attributes:
    """What is known when a model call begins."""
    provider, _, name = event.model.partition("/")
    params: Mapping[str, Any] = getattr(event.request, "params", None) or {}
    about: Attributes = {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": _PROVIDERS.get(provider, provider),
        "gen_ai.request.model": name or provider,
        "synmod.path": event.path,
        "synmod.phase": event.phase,
    }
    for param, attribute in _PARAMS.items():
        value = params.get(param)
        if param == "stop" and value:
            about[f"gen_ai.request.{attribute}"] = [value] if isinstance(value, str) else list(value)
        elif isinstance(value, (int, float, str)):
            about[f"gen_ai.request.{attribute}"] = value
    if content:
        turns: Any = plain(getattr(event.request, "messages", None)) or []
        told = [_parts(turn) for turn in turns if turn.get("role") == "system"]
        said = [{"role": turn.get("role"), "parts": _parts(turn)} for turn in turns if turn.get("role") != "system"]
        clean = _secrets(event)
        about["gen_ai.input.messages"] = _written(said, clean)
        if told:
            about["gen_ai.system_instructions"] = _written([part for parts in told for part in parts], clean)
    return about


def answered(event: LMEnd, begun: LMBegin, *, content: bool) -> Attributes:
    """What is known when it has ended."""
    reply = event.reply
    about = used(event.usage) | {"synmod.attempts": event.attempts}
    if event.cached:
        about["synmod.cached"] = True
    if reply is None:
        return about
    finish, model, request_id = (getattr(reply, name, None) for name in ("finish_reason", "model", "request_id"))
    if finish:
        about["gen_ai.response.finish_reasons"] = [finish]
    if model:
        about["gen_ai.response.model"] = model.partition("/")[2] or model
    if request_id:
        about["gen_ai.response.id"] = request_id
    if content:
        parts: list[Attributes] = []
        if getattr(reply, "reasoning", None):
            parts.append({"type": "reasoning", "content": reply.reasoning})
        parts.append({"type": "text", "content": getattr(reply, "text", "")})
        message = {"role": "assistant", "parts": parts, "finish_reason": finish or "stop"}
        about["gen_ai.output.messages"] = _written([message], _secrets(begun))
    return about


def used(usage: Usage) -> Attributes:
    """Tokens and cost; the cost is ours to name, since the conventions have none."""
    about: Attributes = {
        "gen_ai.usage.input_tokens": usage.prompt_tokens,
        "gen_ai.usage.output_tokens": usage.completion_tokens,
    }
    if usage.cached_tokens:
        about["gen_ai.usage.cache_read.input_tokens"] = usage.cached_tokens
    if usage.reasoning_tokens:
        about["gen_ai.usage.reasoning.output_tokens"] = usage.reasoning_tokens
    if usage.cost_usd is not None:
        about["synmod.cost_usd"] = usage.cost_usd
    return about


def _parts(turn: Mapping[str, Any]) -> list[Attributes]:
    """The content of a turn; what is no text is told as the data that it is."""
    content: Any = turn.get("content")
    pieces = cast("list[Any]", content) if isinstance(content, list) else [content]
    return [
        {"type": "text", "content": piece} if isinstance(piece, str) else {"type": "data", "content": piece}
        for piece in pieces
        if piece is not None
    ]


def _secrets(begun: LMBegin) -> Secrets:
    """What the model hides."""
    return Secrets(() if begun.secrets is None else (begun.secrets,))


def _written(messages: list[Any], secrets: Secrets) -> str:
    """As JSON text, which is what attributes can hold."""
    return json.dumps(secrets.removed(messages), ensure_ascii=False)
