"""Anthropic's messages API: turns of blocks, thinking with signatures, tools, marks of the prompt cache.

Source: the public API reference (version 2023-06-01) and the types of Anthropic's SDK.
"""

import json
from collections.abc import Iterable
from typing import Any, Final

from synmod.errors import RequestError
from synmod.leaves import Json, find_cycle, is_array, is_object

from . import wire
from .wire import Record, an_object, completion, count_of, objects_in, parts_of, piece, text_in

_ENDS: Final = {"end_turn": "stop", "stop_sequence": "stop", "tool_use": "tool_calls", "max_tokens": "length"}
_PLAIN: Final = ("text", "tool_use")
_NATIVE: Final = {
    "code_execution": "code_execution_20250825",
    "web_fetch": "web_fetch_20250910",
    "web_search": "web_search_20250305",
}
"""Name of a tool that runs at the provider -> its type, which has a date."""

_BUDGETS: Final = {"minimal": 1024, "low": 1024, "medium": 2048, "high": 4096}
"""Effort -> tokens of thinking, of models that take a budget."""


# -- requests ----------------------------------------------------------------------------------------------------------


def messages_body(chat: Record) -> Record:
    """Return the body of a request for one of chat completions.

    `chat` may hold `thinking`: "adaptive", "budget" or None, the way in which the model takes a reasoning effort.

    Raises:
        RequestError: A part of a turn has no form here, such as a sound; a tool of the provider is not known.

    Example:
        >>> turns = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi"}]
        >>> body = messages_body({"model": "m", "max_tokens": 9, "messages": turns})
        >>> body["system"], body["messages"]
        ([{'type': 'text', 'text': 'Be brief.'}], [{'role': 'user', 'content': [{'type': 'text', 'text': 'Hi'}]}])

    Source: Anthropic's API reference.
    """
    kept = ("model", "max_tokens", "temperature", "top_p", "top_k", "stream", "service_tier")
    body: Record = {name: chat[name] for name in kept if name in chat}
    system = [turn for turn in chat["messages"] if turn["role"] in ("system", "developer")]
    if blocks := [block for turn in system for block in _blocks(turn["content"])]:
        body["system"] = blocks
    body["messages"] = _turns(turn for turn in chat["messages"] if turn["role"] not in ("system", "developer"))
    if stop := chat.get("stop"):
        body["stop_sequences"] = [stop] if isinstance(stop, str) else list(stop)
    if tools := [*map(_tool, chat.get("tools") or ()), *map(_native_tool, chat.get("native_tools") or ())]:
        body["tools"] = tools
    if (choice := _tool_choice(chat.get("tool_choice"), chat.get("parallel_tool_calls"))) and tools:
        body["tool_choice"] = choice
    output: Record = {}
    if schema := an_object(chat.get("response_format")).get("json_schema"):
        output["format"] = {"type": "json_schema", "schema": schema["schema"]}
    if effort := chat.get("reasoning_effort"):
        body["thinking"], output = _thinking(str(effort), chat.get("thinking"), output)
    return body | ({"output_config": output} if output else {})


def _thinking(effort: str, way: Json, output: Record) -> tuple[Record, Record]:
    """Return the fields `thinking` and `output_config` for a reasoning effort."""
    if effort in ("none", "disable"):
        return {"type": "disabled"}, output
    if way == "budget":
        return {"type": "enabled", "budget_tokens": _BUDGETS.get(effort, _BUDGETS["high"])}, output
    return {"type": "adaptive", "display": "summarized"}, {**output, "effort": "low" if effort == "minimal" else effort}


def _turns(turns: Iterable[Any]) -> list[Record]:
    """Return turns of blocks, of user and assistant in turn: the results of tools are in the turn of the user."""
    messages: list[Record] = []
    for turn in turns:
        role = "assistant" if turn["role"] == "assistant" else "user"
        blocks = _assistant_blocks(turn) if role == "assistant" else _user_blocks(turn)
        if messages and messages[-1]["role"] == role:
            messages[-1]["content"] += blocks
        elif blocks:  # an empty turn is refused
            messages.append({"role": role, "content": blocks})
    return messages


def _user_blocks(turn: Record) -> list[Record]:
    """Return the blocks of the turn of a user, or of the result of a tool."""
    blocks = _blocks(turn["content"])
    if turn["role"] != "tool":
        return blocks
    result: Record = {"type": "tool_result", "tool_use_id": turn["tool_call_id"]}
    if blocks and "cache_control" in blocks[-1]:  # the mark stands on the block of the turn
        result["cache_control"] = blocks[-1].pop("cache_control")
    return [result | ({"content": blocks} if blocks else {})]


def _assistant_blocks(turn: Record) -> list[Record]:
    """Return the blocks of an assistant turn: those that the provider sent, if it was this one."""
    if own := objects_in(turn.get(wire.PROVIDER_CONTENT)):
        return own
    blocks = [*objects_in(turn.get("thinking_blocks")), *_blocks(turn.get("content"))]
    for call in objects_in(turn.get("tool_calls")):
        function = call["function"]
        arguments = _arguments(function["arguments"])
        blocks.append({"type": "tool_use", "id": call["id"], "name": function["name"], "input": arguments})
    return blocks


def _arguments(text: str) -> Record:
    """Return the arguments of a call as an object, which a call that was valid has."""
    try:
        return an_object(json.loads(text))
    except ValueError:
        return {}


def _blocks(content: Json) -> list[Record]:
    """Return the blocks of a content.

    Raises:
        RequestError: A part has no form here.
    """
    return [_block(part) for part in parts_of(content)]


def _block(part: Record) -> Record:
    """Return one part as a block, with its mark."""
    mark = {"cache_control": part["cache_control"]} if "cache_control" in part else {}
    kind, inner = part.get("type"), an_object(part.get(str(part.get("type"))))
    if kind == "text":
        return {"type": "text", "text": part["text"], **mark}
    if kind == "image_url":
        return {"type": "image", "source": _source(text_in(inner, "url")), **mark}
    if kind != "file":
        raise wire.cannot_take("sound")
    title = {"title": inner["filename"]} if inner.get("filename") else {}
    if inner.get("file_id"):
        return {"type": "document", "source": {"type": "file", "file_id": inner["file_id"]}, **title, **mark}
    return {"type": "document", "source": _source(text_in(inner, "file_data"), "application/pdf"), **title, **mark}


def _source(address: str, media_type: str = "image/png") -> Record:
    """Return the source of an image or a document: its bytes, or its address."""
    if (data := wire.split_data(address)) is not None:
        return {"type": "base64", "media_type": data[0] or media_type, "data": data[1]}
    if "://" in address:
        return {"type": "url", "url": address}
    return {"type": "base64", "media_type": media_type, "data": address}


def _tool(tool: Record) -> Record:
    """Return a tool."""
    function = tool["function"]
    own = {name: function[name] for name in ("name", "description", "strict") if name in function}
    return {**own, "input_schema": function["parameters"]}


def _native_tool(tool: Record) -> Record:
    """Return a tool that runs at the provider.

    Raises:
        RequestError: Its type is not known, and not given.
    """
    name, options = tool["name"], tool["options"]
    kind = options.get("type") or _NATIVE.get(name)
    if kind is None:
        known = ", ".join(map(repr, _NATIVE))
        what = f"native_tool({name!r}): Anthropic's tools here are {known}"
        raise RequestError(f"{what}; name another one with type='...'.", sent=False)
    return {**options, "type": kind, "name": options.get("name", name)}


def _tool_choice(choice: Json, parallel: Json) -> Record:
    """Return which tool must be called, and whether only one may be; empty for what is usual."""
    kinds = {"auto": "auto", "none": "none", "required": "any"}
    if is_object(choice):
        own: Record = {"type": "tool", "name": choice["function"]["name"]}
    else:
        own = {"type": kinds[str(choice)]} if choice in kinds else {}
    if parallel is False and own.get("type") != "none":
        own = {"type": "auto", **own, "disable_parallel_tool_use": True}
    return own


_KEYWORDS: Final = (
    "$defs $ref additionalProperties allOf anyOf const default description enum format items minItems properties "
    "required title type"
)
_IN_GRAMMAR: Final = frozenset(_KEYWORDS.split())
_FORMATS: Final = frozenset("date date-time duration email hostname ipv4 ipv6 time uri uuid".split())  # noqa: SIM905
_REFERENCE: Final = "#/$defs/"


def is_in_grammar(schema: Json) -> bool:
    """Whether `output_config.format` takes a schema: closed objects, no bounds, no patterns, no recursion.

    Example:
        >>> is_in_grammar({"type": "object", "properties": {}, "additionalProperties": False})
        True
        >>> is_in_grammar({"type": "object"})
        False

    Source: Anthropic's guide to structured outputs.
    """
    if not is_object(schema) or schema.get("type") != "object":
        return False
    uses: dict[str, set[str]] = {}  # definition -> those that it refers to
    pending: list[tuple[Json, str]] = [(schema, "")]
    while pending:
        part, owner = pending.pop()
        if not is_object(part) or not part.keys() <= _IN_GRAMMAR:
            return False
        reference = part.get("$ref")
        if reference is not None:
            uses.setdefault(owner, set()).add(str(reference))
        is_object_schema = "properties" in part or part.get("type") == "object"
        if is_object_schema and part.get("additionalProperties") is not False:
            return False
        if part.get("format", "date") not in _FORMATS or part.get("minItems", 0) not in (0, 1):
            return False
        pending += [(item, f"{_REFERENCE}{name}") for name, item in an_object(part.get("$defs")).items()]
        deeper = [*an_object(part.get("properties")).values()]
        deeper += [*objects_in(part.get("anyOf")), *objects_in(part.get("allOf"))]
        pending += [(inner, owner) for inner in (*deeper, *([part["items"]] if "items" in part else []))]
    return not find_cycle(uses)


# -- answers -----------------------------------------------------------------------------------------------------------


def completion_of(answer: Json) -> Json:
    """Return an answer as a chat completion; one that is not a message is returned as it is.

    Example:
        >>> answer = {"type": "message", "content": [{"type": "text", "text": "Hi."}], "stop_reason": "end_turn"}
        >>> completion_of(answer)["choices"][0]["message"]["content"]
        'Hi.'

    Source: Anthropic's API reference.
    """
    if not is_object(answer) or not is_array(answer.get("content")):
        return answer
    message = _message(objects_in(answer["content"]))
    return completion(message, _end(answer.get("stop_reason")), _usage(answer.get("usage")), answer.get("id"))


def _end(reason: Json) -> Json:
    """Return the reason of an end in the words of chat completions."""
    return _ENDS.get(reason, reason) if isinstance(reason, str) else reason


def _message(blocks: list[Record]) -> Record:
    """Return the message in the blocks of a reply; with the blocks themselves, if some go back as they were."""
    texts, calls, citations = list[str](), list[Record](), list[Record]()
    length = 0
    for block in blocks:
        if block.get("type") == "text":
            text = text_in(block, "text")
            for source in objects_in(block.get("citations")):
                citations.append(wire.url_citation(source, length, length + len(text), text_in(source, "cited_text")))
            texts.append(text)
            length += len(text)
        elif block.get("type") == "tool_use":
            calls.append(wire.function_call(block.get("id"), block.get("name"), block.get("input")))
    message: Record = {"content": "".join(texts)}
    if thinking := "".join(text_in(block, "thinking") for block in blocks if block.get("type") == "thinking"):
        message["reasoning_content"] = thinking
    return message | _own_fields(blocks, calls, citations)


def _own_fields(blocks: list[Record], calls: list[Record], citations: list[Record]) -> Record:
    """Return the fields of a message beside its texts."""
    fields: Record = {"tool_calls": calls} if calls else {}
    if citations:
        fields["annotations"] = citations
    if any(block.get("type") not in _PLAIN for block in blocks):
        fields[wire.PROVIDER_CONTENT] = blocks
    return fields


def _usage(usage: Json) -> Record | None:
    """Return the usage in the words of chat completions, in which the prompt includes what a cache read and wrote."""
    if not is_object(usage):
        return None
    read, written = (count_of(usage, f"cache_{way}_input_tokens") for way in ("read", "creation"))
    thinking = count_of(an_object(usage.get("output_tokens_details")), "thinking_tokens")
    return {
        "prompt_tokens": count_of(usage, "input_tokens") + read + written,
        "completion_tokens": count_of(usage, "output_tokens"),
        "prompt_tokens_details": {"cached_tokens": read, "cache_write_tokens": written},
        "completion_tokens_details": {"reasoning_tokens": thinking},
        "web_search_requests": count_of(an_object(usage.get("server_tool_use")), "web_search_requests"),
    }


# -- streams -----------------------------------------------------------------------------------------------------------

_DELTAS: Final = {"text_delta": "text", "thinking_delta": "thinking", "signature_delta": "signature"}
_TEXTS: Final = {"text_delta": "content", "thinking_delta": "reasoning_content"}


class MessageEvents:
    """Turns the events of one stream into pieces of a chat completion."""

    def __init__(self) -> None:
        self._blocks: dict[Any, Record] = {}
        self._usage: Record = {}
        self._texts: dict[tuple[Any, str], list[str]] = {}  # index and key of a block -> the pieces of its text

    def __call__(self, event: Json) -> Json:
        """Return the piece in an event; "[DONE]" for the last one, None for one without a piece."""
        if not is_object(event):
            return event
        kind, index = event.get("type"), event.get("index")
        index = index if isinstance(index, int) else 0
        if kind == "content_block_delta":
            return self._delta(index, an_object(event.get("delta")))
        if kind == "content_block_start":
            return self._start(index, dict(an_object(event.get("content_block"))))
        if kind == "message_start":
            self._usage |= an_object(an_object(event.get("message")).get("usage"))
            return {"id": an_object(event.get("message")).get("id")}
        if kind == "message_delta":
            self._usage |= {name: n for name, n in an_object(event.get("usage")).items() if n is not None}
            reason = _end(an_object(event.get("delta")).get("stop_reason"))
            blocks = [self._whole_block(index) for index in self._blocks]
            cited = _message(blocks).get("annotations", [])
            return piece(_own_fields(blocks, [], cited), finish_reason=reason) | {"usage": _usage(self._usage)}
        return "[DONE]" if kind == "message_stop" else event if kind == "error" else None

    def _start(self, index: int, block: Record) -> Json:
        """Begin a block."""
        self._blocks[index] = block
        if block.get("type") == "tool_use":
            return piece({"tool_calls": [wire.function_call(block.get("id"), block.get("name"), "", index)]})
        for kind, key in _TEXTS.items():  # usually empty
            if text := text_in(block, _DELTAS[kind]):
                self._texts[index, _DELTAS[kind]] = [text]
                return piece({key: text})
        return None

    def _delta(self, index: int, delta: Record) -> Json:
        """Add to a block; return what was added to the message."""
        kind = delta.get("type")
        block = self._blocks.setdefault(index, {})
        if kind in _DELTAS:
            text = text_in(delta, _DELTAS[kind])
            self._texts.setdefault((index, _DELTAS[kind]), []).append(text)
            return piece({_TEXTS[kind]: text}) if kind in _TEXTS else None
        if kind == "input_json_delta":
            text = text_in(delta, "partial_json")
            self._texts.setdefault((index, "input"), []).append(text)
            call = {"index": index, "function": {"arguments": text}}
            return piece({"tool_calls": [call]}) if block.get("type") == "tool_use" else None
        if kind == "citations_delta":
            block["citations"] = [*objects_in(block.get("citations")), an_object(delta.get("citation"))]
        return None

    def _whole_block(self, index: int) -> Record:
        """Return a block with its texts and its input."""
        block = dict(self._blocks[index])
        for (place, key), pieces in self._texts.items():
            if place == index:
                text = "".join(pieces)
                block[key] = _arguments(text or "{}") if key == "input" else text
        return block


_NOT_TAKEN: Final = "seed presence_penalty frequency_penalty logit_bias logprobs top_logprobs verbosity modalities"

MESSAGES: Final = wire.Wire(
    path="/messages",
    headers={"anthropic-version": "2023-06-01"},
    key_header=("x-api-key", ""),
    body=messages_body,
    answer=completion_of,
    events=MessageEvents,
    refused=frozenset(_NOT_TAKEN.split()),
)
"""Anthropic's messages API."""
