"""The shape of chat completions, which both adapters use: from a request to its body, from an answer to a reply."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from synmod.errors import BadReplyError, ModelError, UnavailableError
from synmod.leaves import aio
from synmod.leaves.frozen import Json, is_array, is_object
from synmod.scope import Usage

from .messages import Message, estimate_text, estimate_tokens, message
from .prompt import schema_text
from .provider_errors import message_in
from .records import LMReply, LMRequest

__all__ = ["chat_body", "is_strict", "refuse_trio", "reply_of", "reply_or_raise"]

_NOT_IN_A_NAME: Final = re.compile(r"[^A-Za-z0-9_-]+")
_STRICT_KEYWORDS: Final = frozenset({
    "$defs", "$ref", "additionalProperties", "anyOf", "const", "description", "enum", "exclusiveMaximum",
    "exclusiveMinimum", "format", "items", "maxItems", "maximum", "minItems", "minimum", "multipleOf", "pattern",
    "properties", "required", "title", "type",
})  # fmt: skip
_MOST_STRICT_PROPERTIES, _DEEPEST_STRICT = 100, 5


def refuse_trio(who: str) -> None:
    """Raise UnavailableError, which is not transient, where trio runs this code."""
    if aio.backend() == "trio":
        error = UnavailableError(f"{who} needs asyncio, and trio runs this code.", sent=False)
        error.transient = False
        raise error


def chat_body(request: LMRequest, level: str) -> dict[str, Any]:
    """Return messages, parameters and response format of a request, as chat completions take them."""
    body: dict[str, Any] = dict(request.params)
    messages, schema = request.messages, request.schema
    if schema is not None:
        if level == "schema":
            name = _NOT_IN_A_NAME.sub("_", str(schema.get("title") or "reply")).strip("_")[:64] or "reply"
            strict = {"strict": True} if is_strict(schema) else {}
            body["response_format"] = {"type": "json_schema", "json_schema": {"name": name, "schema": schema, **strict}}
        else:
            messages = _with_schema(messages, schema)
        if level == "json":
            body["response_format"] = {"type": "json_object"}
    body["messages"] = list(messages)
    return body


def _with_schema(messages: tuple[Message, ...], schema: Json) -> tuple[Message, ...]:
    """Write the schema into the system turn, unless a turn shows it: where it is not sent, the model must read it."""
    if any("<output_schema>" in str(turn["content"]) for turn in messages):
        return messages
    shown = schema_text(schema)
    first = messages[0]
    if first["role"] == "system" and isinstance(first["content"], str):
        return (message("system", f"{first['content']}\n{shown}"), *messages[1:])
    return (message("system", shown), *messages)


def is_strict(schema: Json) -> bool:
    """Whether a schema lies in the strict subset: every object in it is closed and requires all its fields."""
    if not is_object(schema) or schema.get("type") != "object" or "anyOf" in schema:
        return False
    properties = 0
    pending: list[tuple[Any, int]] = [(schema, 0)]
    while pending:
        part, depth = pending.pop()
        if not is_object(part) or depth > _DEEPEST_STRICT or not part.keys() <= _STRICT_KEYWORDS:
            return False
        if "$ref" in part and len(part) > 1:
            return False
        if "properties" in part or part.get("type") == "object":
            named = part.get("properties", {})
            if part.get("additionalProperties") is not False or set(part.get("required", ())) != set(named):
                return False
            properties += len(named)
        pending.extend((inner, depth + deeper) for inner, deeper in _inside(part))
    return properties <= _MOST_STRICT_PROPERTIES


def _inside(part: Mapping[str, Any]) -> Iterator[tuple[Any, int]]:
    """Yield the schemas inside a schema, and how much deeper their values nest."""
    yield from ((inner, 1) for inner in part.get("properties", {}).values())
    yield from ((inner, 0) for inner in part.get("$defs", {}).values())
    yield from ((inner, 0) for inner in part.get("anyOf", ()))
    if "items" in part:
        yield part["items"], 1


def reply_of(response: Json, request: LMRequest, headers: Mapping[str, str]) -> LMReply | ModelError:
    """Return the first choice of a chat completion as a reply; the error where there is none."""
    choices = response.get("choices") if is_object(response) else None
    choice = choices[0] if is_array(choices) and choices else None
    answer = choice.get("message") if is_object(choice) else None
    if not is_object(response) or not is_object(choice) or not is_object(answer):
        quoted = message_in(response)
        reason = "empty" if is_object(response) else "not_json"
        text = "the provider answered without any choice" + (f": {quoted}" if quoted else "")
        return BadReplyError(text, reason=reason, status=200, provider_message=quoted)
    specific: Json = answer.get("provider_specific_fields")
    refusal = _text(answer.get("refusal")) or _text(specific.get("refusal") if is_object(specific) else None)
    text, calls = refusal or _text(answer.get("content")), answer.get("tool_calls")
    request_id = headers.get("x-request-id") or headers.get("request-id") or response.get("id")
    return LMReply(
        text,
        tool_calls=tuple(calls) if is_array(calls) else (),
        reasoning=_text(answer.get("reasoning_content")) or _text(answer.get("reasoning")) or None,
        finish_reason="refusal" if refusal else _text(choice.get("finish_reason")) or None,
        usage=_usage(response.get("usage"), request, text),
        model=request.model,
        request_id=_text(request_id) or None,
    )


def reply_or_raise(outcome: LMReply | ModelError) -> LMReply:
    """Return a reply, or raise the error: here, so that neither the original nor a frame with the key hangs on it."""
    if isinstance(outcome, LMReply):
        return outcome
    try:
        raise outcome
    finally:
        del outcome  # else the error and this frame would hold each other


def _text(content: Json) -> str:
    """Return a text, also one in parts; "" for anything else."""
    if is_array(content):
        return "".join(_text(part.get("text")) for part in content if is_object(part))
    return content if isinstance(content, str) else ""


def _usage(usage: Json, request: LMRequest, text: str) -> Usage:
    """Return the tokens that the provider counted, else an estimate."""
    prompt, completion = _count(usage, "prompt_tokens"), _count(usage, "completion_tokens")
    if not prompt and not completion:
        prompt, completion = estimate_tokens(request.messages), estimate_text(len(text))
        return Usage(prompt_tokens=prompt, completion_tokens=completion, estimated=True)
    cached = _count(usage.get("prompt_tokens_details"), "cached_tokens")
    reasoning = _count(usage.get("completion_tokens_details"), "reasoning_tokens")
    return Usage(prompt_tokens=prompt, completion_tokens=completion, cached_tokens=cached, reasoning_tokens=reasoning)


def _count(counts: Json, name: str) -> int:
    """Return a number of tokens, 0 where it is missing."""
    count = counts.get(name) if is_object(counts) else None
    return count if type(count) is int and count > 0 else 0
