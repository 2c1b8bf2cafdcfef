"""A model call as a person reads it: each turn of the prompt, then the reply. From the JSON of a trace."""

import json
from collections.abc import Iterator, Sequence
from typing import Any

from synmod import leaves


def transcript(call: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the parts of a model call in order: a heading, such as the role of a turn, and a text.

    Args:
        call: A model call of `Tracer.to_json`; without values there is nothing but its error.

    Example:
        >>> call = {"request": {"messages": [{"role": "user", "content": "Why?"}]}, "reply": {"text": "So."}}
        >>> list(transcript(call))
        [('user', 'Why?'), ('reply', 'So.')]
    """
    request: dict[str, Any] = call.get("request") or {}
    messages: list[dict[str, Any]] = request.get("messages") or []
    tools: list[dict[str, Any]] = request.get("tools") or []
    reply = call.get("reply")
    for turn in messages:
        yield turn.get("role") or "turn", _content_text(turn.get("content"), turn.get("tool_calls"))
    if tools:
        yield "tools", ", ".join(_function(tool).get("name") or "?" for tool in tools)
    if reply is not None:
        if reply.get("reasoning"):
            yield "reasoning", reply["reasoning"]
        yield "reply", _content_text(reply.get("text"), reply.get("tool_calls"))
    if call.get("error"):
        yield "error", call["error"]


def _content_text(content: Any, tool_calls: list[dict[str, Any]] | None) -> str:
    """Return the content of a turn and its tool calls as text; of an image or a file only its kind."""
    parts: Sequence[Any] = content if leaves.is_sequence(content) else [content] if content else []
    texts = [part if isinstance(part, str) else part.get("text") or f"[{part.get('type', 'data')}]" for part in parts]
    calls = [_function(call) for call in tool_calls or ()]
    return "\n".join([*texts, *(f"{call.get('name')}({_arguments(call.get('arguments'))})" for call in calls)])


def _function(tool: dict[str, Any]) -> dict[str, Any]:
    """Return the function of a tool or of a tool call in the shape of chat completions, or either as it is."""
    return tool.get("function") or tool


def _arguments(arguments: Any) -> str:
    """Return the arguments of a tool call as text."""
    return arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
