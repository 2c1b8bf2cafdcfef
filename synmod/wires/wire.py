"""What a wire is, and what the wires share: parts of a chat completion, read without trust."""

import re
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, NamedTuple, TypeAlias

from synmod.errors import RequestError
from synmod.leaves import Json, is_array, is_object

Record: TypeAlias = dict[str, Any]

PROVIDER_CONTENT: Final = "provider_content"
"""The key of an assistant turn with what the provider sent and wants back as it was: blocks, or items."""

_MOST_TOKENS: Final = 2**53
_DATA: Final = re.compile(r"data:([^;,]*);base64,(.*)", re.DOTALL)


class Wire(NamedTuple):
    """The form in which a provider takes requests and sends replies; by default that of chat completions.

    Attributes:
        path: The path after the base address; "" for that of the endpoint.
        headers: Further headers of each request.
        key_header: The header that carries the key, and what is written before the key.
        body: `body(chat)` returns the body for one of chat completions.
        answer: `answer(json)` returns a chat completion; what is not a reply is returned as it is.
        events: `events()` returns a function of the records of one stream: it returns a piece of a chat completion,
            "[DONE]" behind the last one, or None. Returns None where the records are such pieces.
        refused: Sampling parameters that the provider does not take.
    """

    path: str = ""
    headers: Mapping[str, str] = MappingProxyType({})
    key_header: tuple[str, str] = ("authorization", "Bearer ")
    body: Callable[[Record], Record] = lambda chat: chat
    answer: Callable[[Json], Json] = lambda json: json
    events: Callable[[], Callable[[Json], Json] | None] = lambda: None
    refused: frozenset[str] = frozenset()


def an_object(json: Json) -> Record:
    """Return a JSON object, empty for anything else."""
    return json if is_object(json) else {}


def objects_in(json: Json) -> list[Record]:
    """Return the objects of an array; none of anything else."""
    return [item for item in json if is_object(item)] if is_array(json) else []


def first_choice(completion: Json) -> Record:
    """Return the first choice of a chat completion, or of a piece of one; empty without one."""
    choices = an_object(completion).get("choices")
    return an_object(choices[0]) if is_array(choices) and choices else {}


def text_in(record: Mapping[str, Any], key: str) -> str:
    """Return the text under a key, "" for anything else."""
    text = record.get(key)
    return text if isinstance(text, str) else ""


def count_of(record: Json, *keys: str) -> int:
    """Return the first number of tokens under some keys; 0 where there is none. Hot."""
    for count in map(record.get, keys) if is_object(record) else ():
        try:
            number = float(count) if isinstance(count, int | float | str) and count is not True else 0.0
        except (OverflowError, ValueError):
            continue
        if 0 < number < _MOST_TOKENS:
            return int(number)
    return 0


def parts_of(content: Json) -> Sequence[Record]:
    """Return the content of a turn as parts; texts without a character are left out."""
    parts = [{"type": "text", "text": content}] if isinstance(content, str) else objects_in(content)
    return [part for part in parts if part.get("type") != "text" or part.get("text")]


def split_data(url: str) -> tuple[str, str] | None:
    """Return the media type and the base64 text of a data address; None for another address."""
    match = _DATA.fullmatch(url)
    return match and (match[1], match[2])


def cannot_take(what: str) -> RequestError:
    """Return the error for a part that a provider's API has no place for."""
    return RequestError(f"this API does not take {what}; leave it out, or choose another model.", sent=False)


def completion(
    message: Record, finish_reason: Json, usage: Record | None, request_id: Json, logprobs: Sequence[Json] = ()
) -> Record:
    """Return a chat completion."""
    choice = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": finish_reason}
    if logprobs:
        choice["logprobs"] = {"content": list(logprobs)}
    return {"id": request_id, "choices": [choice], **({} if usage is None else {"usage": usage})}


def piece(delta: Record, **others: Json) -> Record:
    """Return a piece of a streamed chat completion."""
    return {"choices": [{"index": 0, "delta": delta, **others}]}


def function_call(key: Json, name: Json, arguments: Json, index: int | None = None) -> Record:
    """Return a tool call, or a piece of one, in the shape of chat completions."""
    own = {"id": key, "type": "function", "function": {"name": name, "arguments": arguments}}
    return own if index is None else {"index": index, **own}


def url_citation(source: Mapping[str, Any], start: int, end: int, text: str = "") -> Record:
    """Return a citation as an annotation of chat completions; `text` is the passage, if the provider quotes it."""
    own = {"url": source.get("url"), "title": source.get("title"), "start_index": start, "end_index": end}
    return {"type": "url_citation", "url_citation": {**own, **({"text": text} if text else {})}}
