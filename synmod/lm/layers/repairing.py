"""The layer that reads: a reply is valid, or mended by asking once more, or an error; never passed on unread."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from synmod.data import Schema
from synmod.errors import BadReplyError
from synmod.lm.layers.call import Below, ModelCall
from synmod.lm.messages import Message, message
from synmod.lm.records import LMReply, LMRequest
from synmod.lm.replies.reading import Fault, read_reply
from synmod.lm.replies.reasoning import Thought, thought_of, without_asking

__all__ = ["REPAIR_OPENING", "readable"]

REPAIR_OPENING: Final = "<repair>"
"""How a repair turn begins; the turn before it is the reply that failed."""

REFUSED: Final = frozenset({"content_filter", "refusal", "refused"})

_NOT_MENDED: Final = frozenset({"length", "refused"})

_IN_JSON: Final = "with one JSON value that satisfies the schema"

_SAYS: Final = {
    "not_json": "the reply is no JSON",
    "schema": "the reply does not satisfy the schema",
    "empty": "the reply is empty",
    "tool": "the reply calls a tool",
    "refused": "the model, or the content filter of the provider, refused to answer",
    "length": "the reply was cut off; give it more room with max_tokens=...",
}


async def readable(below: Below, call: ModelCall, request: LMRequest) -> LMReply:
    """Give a reply that is what was asked for; hand an invalid one back while repairs and attempts are left.

    Raises:
        BadReplyError: The reply is refused, cut off, empty or invalid.
    """
    asked = sent = without_asking(request, call.model.adapter)
    repairs = call.model.settings.repairs
    while True:
        reply = await below(call, asked)
        json, fault = _read(reply, request, thought_of(reply, request, sent))
        if fault is None:
            return _completed(call, request, reply, json)
        if fault.reason in _NOT_MENDED or not repairs or call.requests >= call.model.attempts:
            raise _bad_reply(call, reply, fault)
        repairs -= 1
        asked = replace(asked, messages=(*asked.messages, *_repair_turns(reply.text, fault, request.schema)))


def _read(reply: LMReply, request: LMRequest, thought: Thought | None) -> tuple[object, Fault | None]:
    """Read what the request wanted: a value of its schema, or text."""
    if reply.finish_reason in REFUSED:
        return None, Fault("refused", ())
    if reply.tool_calls:
        return None, Fault("tool", (("", "a tool was called, and none is there to be called"),))
    if request.schema is None:
        return None, None
    read = read_reply(reply.text, request.schema, thought)
    if reply.finish_reason == "length" and (read.fault is not None or not isinstance(read.json, dict | list)):
        return None, Fault("length", ())
    return read


def _completed(call: ModelCall, request: LMRequest, reply: LMReply, json: object) -> LMReply:
    """Fill in what an adapter does not know."""
    return LMReply(
        reply.text,
        json,
        reply.message or message("assistant", reply.text),
        (),
        reply.reasoning,
        reply.finish_reason,
        call.usage(),
        reply.model or request.model,
        reply.request_id,
        False,
        tuple(call.attempts),
        call.elapsed_s,
        None,
    )


def _bad_reply(call: ModelCall, reply: LMReply, fault: Fault) -> BadReplyError:
    """Say what is wrong with a reply."""
    lines = "".join(f"\n  - {pointer or '(root)'}: {said}" for pointer, said in fault.errors)
    return BadReplyError(
        _SAYS[fault.reason] + lines,
        text=call.model.scrub(reply.text),
        errors=fault.errors,
        reason=fault.reason,
        request_id=reply.request_id,
    )


def _repair_turns(text: str, fault: Fault, schema: Schema | None) -> list[Message]:
    """Hand back the bad text, and say what is wrong with it."""
    lines = "\n".join(f"- {pointer or '(root)'}: {said}" for pointer, said in fault.errors)
    asks = (
        f"{REPAIR_OPENING}\nYour reply is not valid:\n{lines}\n"
        f"Reply again {'in text' if schema is None else _IN_JSON}, and nothing else.\n</repair>"
    )
    # Some providers refuse a turn without content, so an empty reply is not quoted.
    return [message("assistant", text), message("user", asks)] if text.strip() else [message("user", asks)]
