"""OpenAI's responses API: items in and out, reasoning that is carried in the conversation, nothing stored.

Source: the public API reference and the types of OpenAI's SDK.
"""

from typing import Any, Final

from synmod.leaves import Json, is_array, is_object

from . import wire
from .wire import Record, an_object, completion, count_of, objects_in, parts_of, piece, text_in

_ENCRYPTED: Final = "reasoning.encrypted_content"
_LOGPROBS: Final = "message.output_text.logprobs"
_CUT: Final = {"max_output_tokens": "length", "content_filter": "content_filter"}
_PLAIN: Final = ("message", "function_call")


# -- requests ----------------------------------------------------------------------------------------------------------


def responses_body(chat: Record) -> Record:
    """Return the body of a request for one of chat completions.

    `chat` may hold `reasons`: whether the model may reason, so that its encrypted reasoning is requested.

    Raises:
        RequestError: A part of a turn has no form here.

    Example:
        >>> responses_body({"model": "m", "messages": [{"role": "user", "content": "Hi"}]})["input"]
        [{'role': 'user', 'content': [{'type': 'input_text', 'text': 'Hi'}]}]

    Source: OpenAI's API reference.
    """
    kept = ("model", "temperature", "top_p", "stream", "service_tier", "parallel_tool_calls", "prompt_cache_key")
    body: Record = {name: chat[name] for name in kept if name in chat}
    body |= {"input": [item for turn in chat["messages"] for item in _items(turn)], "store": False}
    if "max_tokens" in chat:
        body["max_output_tokens"] = chat["max_tokens"]
    include = [_ENCRYPTED] if chat.get("reasons") else []
    if chat.get("logprobs"):
        include.append(_LOGPROBS)
        body["top_logprobs"] = chat.get("top_logprobs", 0)
    if include:
        body["include"] = include
    if effort := chat.get("reasoning_effort"):
        body["reasoning"] = {"effort": effort}
    if text := _text_options(chat):
        body["text"] = text
    natives = [{"type": tool["name"], **tool["options"]} for tool in chat.get("native_tools") or ()]
    if tools := [*map(_tool, chat.get("tools") or ()), *natives]:
        body["tools"] = tools
        choice = chat.get("tool_choice")
        if choice is not None:
            name = an_object(an_object(choice).get("function")).get("name")
            body["tool_choice"] = choice if name is None else {"type": "function", "name": name}
    return body


def _text_options(chat: Record) -> Record:
    """Return the field `text`: the format of the reply, and how wordy it is."""
    options: Record = {"verbosity": chat["verbosity"]} if "verbosity" in chat else {}
    form = an_object(chat.get("response_format"))
    if form:
        options["format"] = {"type": form["type"], **an_object(form.get("json_schema"))}
    return options


def _tool(tool: Record) -> Record:
    """Return a tool; `strict` is written, since it is on by default here."""
    return {"strict": False, **tool["function"], "type": "function"}


def _items(turn: Record) -> list[Record]:
    """Return the items of a turn: those that the provider sent, if it was this one."""
    role, content = turn["role"], turn.get("content")
    if own := objects_in(turn.get(wire.PROVIDER_CONTENT)):
        return own
    if role == "tool":
        output = content if isinstance(content, str) else [_part(part) for part in parts_of(content)]
        return [{"type": "function_call_output", "call_id": turn["tool_call_id"], "output": output}]
    if role != "assistant":
        return [{"role": role, "content": [_part(part) for part in parts_of(content)]}]
    texts = [{"type": "output_text", "text": text_in(part, "text")} for part in parts_of(content)]
    calls = [
        {"type": "function_call", "call_id": call["id"], "name": call["function"]["name"]}
        | {"arguments": call["function"]["arguments"]}
        for call in objects_in(turn.get("tool_calls"))
    ]
    return [*([{"role": role, "content": texts}] if texts else []), *calls]


def _part(part: Record) -> Record:
    """Return one part of the input.

    Raises:
        RequestError: It is a sound.
    """
    kind, inner = part.get("type"), an_object(part.get(str(part.get("type"))))
    if kind == "text":
        return {"type": "input_text", "text": part["text"]}
    if kind == "image_url":
        return {"type": "input_image", "image_url": inner.get("url"), "detail": inner.get("detail", "auto")}
    if kind != "file":
        raise wire.cannot_take("sound")
    names = ("file_data", "file_id", "filename")
    return {"type": "input_file", **{name: inner[name] for name in names if inner.get(name)}}


# -- answers -----------------------------------------------------------------------------------------------------------


def completion_of(answer: Json) -> Json:
    """Return an answer as a chat completion; one that is not a response is returned as it is.

    Example:
        >>> text = {"type": "output_text", "text": "Hi."}
        >>> answer = {"status": "completed", "output": [{"type": "message", "content": [text]}]}
        >>> completion_of(answer)["choices"][0]["message"]["content"]
        'Hi.'

    Source: OpenAI's API reference.
    """
    if not is_object(answer) or not is_array(answer.get("output")) or answer.get("status") == "failed":
        return answer
    items = objects_in(answer["output"])
    message, logprobs = _message(items)
    return completion(message, _end(answer, message), _usage(answer.get("usage")), answer.get("id"), logprobs)


def _end(answer: Record, message: Record) -> Json:
    """Return the reason of an end in the words of chat completions."""
    status = answer.get("status", "completed")
    if status == "completed":
        return "tool_calls" if message.get("tool_calls") else "stop"
    reason = an_object(answer.get("incomplete_details")).get("reason")
    return _CUT.get(reason, reason) if isinstance(reason, str) else status


def _message(items: list[Record]) -> tuple[Record, list[Json]]:
    """Return the message in the items of a reply, and the log probabilities of its tokens."""
    texts, refusals, logprobs, citations = list[str](), list[str](), list[Json](), list[Record]()
    length = 0
    for part in [part for item in items if item.get("type") == "message" for part in objects_in(item.get("content"))]:
        refusals.append(text_in(part, "refusal"))
        text = text_in(part, "text")
        for note in objects_in(part.get("annotations")):
            if note.get("type") == "url_citation":
                start, end = (length + count_of(note, f"{name}_index") for name in ("start", "end"))
                citations.append(wire.url_citation(note, start, end))
        logprobs += objects_in(part.get("logprobs"))
        texts.append(text)
        length += len(text)
    message: Record = {"content": "".join(texts), **_own_fields(items, citations)}
    if refusal := "".join(refusals):
        message["refusal"] = refusal
    if thoughts := "".join(text_in(part, "text") for item in items for part in _thoughts(item)):
        message["reasoning_content"] = thoughts
    if calls := [_call(item) for item in items if item.get("type") == "function_call"]:
        message["tool_calls"] = calls
    return message, logprobs


def _thoughts(item: Record) -> list[Record]:
    """Return the parts of the reasoning that are shown: its own text, else a summary."""
    is_reasoning = item.get("type") == "reasoning"
    return objects_in(item.get("content")) or objects_in(item.get("summary")) if is_reasoning else []


def _call(item: Record, index: int | None = None) -> Record:
    """Return a call of a tool."""
    return wire.function_call(item.get("call_id"), item.get("name"), item.get("arguments"), index)


def _own_fields(items: list[Record], citations: list[Record]) -> Record:
    """Return citations, images, and the items themselves if some go back as they were."""
    fields: Record = {"annotations": citations} if citations else {}
    results = [item for item in items if item.get("type") == "image_generation_call" and text_in(item, "result")]
    if results:
        address = "data:image/{};base64,{}"
        urls = [address.format(item.get("output_format") or "png", item["result"]) for item in results]
        fields["images"] = [{"type": "image_url", "image_url": {"url": url}} for url in urls]
    if any(item.get("type") not in _PLAIN for item in items):
        fields[wire.PROVIDER_CONTENT] = items
    return fields


def _usage(usage: Json) -> Record | None:
    """Return the usage in the words of chat completions."""
    if not is_object(usage):
        return None
    return {
        "prompt_tokens": count_of(usage, "input_tokens"),
        "completion_tokens": count_of(usage, "output_tokens"),
        "prompt_tokens_details": usage.get("input_tokens_details"),
        "completion_tokens_details": usage.get("output_tokens_details"),
    }


# -- streams -----------------------------------------------------------------------------------------------------------

_TEXTS: Final = {
    "response.output_text.delta": "content",
    "response.reasoning_text.delta": "reasoning_content",
    "response.reasoning_summary_text.delta": "reasoning_content",
    "response.refusal.delta": "refusal",
}
_LAST: Final = ("response.completed", "response.incomplete")


def piece_of(event: Json) -> Json:
    """Return the piece of a chat completion in an event of a stream, None for one without a piece."""
    if not is_object(event):
        return event
    kind: Any = event.get("type")
    if kind in _TEXTS:
        return piece({_TEXTS[kind]: text_in(event, "delta")})
    index = count_of(event, "output_index")
    if kind == "response.function_call_arguments.delta":
        return piece({"tool_calls": [{"index": index, "function": {"arguments": text_in(event, "delta")}}]})
    item = an_object(event.get("item"))
    if kind == "response.output_item.added" and item.get("type") == "function_call":
        return piece({"tool_calls": [_call(item | {"arguments": ""}, index)]})
    response = an_object(event.get("response"))
    if kind in _LAST:
        message, logprobs = _message(objects_in(response.get("output")))
        fields = {key: message[key] for key in ("annotations", "images", wire.PROVIDER_CONTENT) if key in message}
        others: Any = {"logprobs": {"content": logprobs}} if logprobs else {}
        ending = piece(fields, finish_reason=_end(response, message), **others)
        return ending | {"id": response.get("id"), "usage": _usage(response.get("usage"))}
    if kind == "response.failed":
        return {"error": response.get("error") or "the response failed"}
    if kind == "error" or "error" in event:
        return {"error": event.get("error") or {key: event.get(key) for key in ("code", "message")}}
    return {"id": response.get("id")} if kind == "response.created" else None


_NOT_TAKEN: Final = "stop seed presence_penalty frequency_penalty logit_bias top_k modalities"

RESPONSES: Final = wire.Wire(
    path="/responses",
    body=responses_body,
    answer=completion_of,
    events=lambda: piece_of,
    refused=frozenset(_NOT_TAKEN.split()),
)
"""OpenAI's responses API."""
