"""What litellm answers, as a reply of ours."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from synmod.errors import BadReplyError
from synmod.leaves.frozen import is_array, is_object
from synmod.lm.providers.errors import Heard
from synmod.lm.records import LMReply, LMRequest
from synmod.lm.tokens import estimate_text, estimate_tokens
from synmod.scope import Usage

__all__ = ["reply_from"]


def reply_from(response: Any, request: LMRequest, heard: Heard) -> LMReply | BadReplyError:
    """Read the first choice of a chat completion; give the error where there is none."""
    choices = getattr(response, "choices", None)
    if not choices:
        return BadReplyError("the provider answered without any choice", reason="empty", status=heard.status)
    said = choices[0].message
    refusal = _refusal(said)
    text = refusal or _text(getattr(said, "content", None))
    return LMReply(
        text,
        reasoning=getattr(said, "reasoning_content", None),
        finish_reason="refusal" if refusal else choices[0].finish_reason,
        usage=_usage(getattr(response, "usage", None), request, text),
        model=request.model,
        request_id=_request_id(response, heard),
    )


def _text(content: Any) -> str:
    """The text of a message, its parts put together."""
    if isinstance(content, str):
        return content
    parts = content if is_array(content) else []
    return "".join(str(part.get("text", "")) for part in parts if is_object(part))


def _refusal(said: Any) -> str:
    """What the model said instead of an answer, or ""."""
    specific: Mapping[str, Any] = getattr(said, "provider_specific_fields", None) or {}
    refusal: object = getattr(said, "refusal", None) or specific.get("refusal")
    return refusal if isinstance(refusal, str) else ""


def _usage(told: Any, request: LMRequest, text: str) -> Usage:
    """The tokens that the provider told, else an estimate."""
    prompt, completion = _count(told, "prompt_tokens"), _count(told, "completion_tokens")
    if not prompt and not completion:
        return Usage(
            prompt_tokens=estimate_tokens(request.messages),
            completion_tokens=estimate_text(len(text)),
            estimated=True,
        )
    return Usage(
        prompt_tokens=prompt,
        completion_tokens=completion,
        cached_tokens=_count(getattr(told, "prompt_tokens_details", None), "cached_tokens"),
        reasoning_tokens=_count(getattr(told, "completion_tokens_details", None), "reasoning_tokens"),
    )


def _count(holder: Any, name: str) -> int:
    """A number of tokens, 0 where it is not told."""
    count = getattr(holder, name, None)
    return count if isinstance(count, int) and count > 0 else 0


def _request_id(response: Any, heard: Heard) -> str | None:
    """The id by which the provider knows the request."""
    headers: Mapping[str, str] = heard.headers or getattr(response, "_response_headers", None) or {}
    found = headers.get("x-request-id") or headers.get("request-id") or getattr(response, "id", None)
    return None if found is None else str(found)
