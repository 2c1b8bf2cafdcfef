"""Reading replies: from the text of a model to the value that was asked for. Nothing is guessed or converted.

The first success wins: strict JSON; the same without white space, byte order mark, reasoning block and code fence; the
first JSON object or array inside the text that validates. Where a provider returns its own reasoning, that may fill
the field of the schema which asks for it.
"""

from __future__ import annotations

import json as text_json
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final, NamedTuple

from synmod.data import Schema, parse_frozen, problems, trusted_schema
from synmod.errors import ConfigError, DataError, SchemaTooComplex
from synmod.leaves.frozen import Json, frozen_dict, is_object

from .messages import Message, message
from .prompt import fields_of, value_text
from .records import Adapter, LMReply, LMRequest

__all__ = ["REPAIR_OPENING", "Fault", "Read", "check_reasoning_field", "read_reply", "reasoning_for", "without_asking"]

REPAIR_OPENING: Final = "<repair>"
"""How a repair turn begins; the turn before it is the reply that failed."""

_MOST_ERRORS: Final = 5
_MOST_PLACES: Final = 100
_BLOCK: Final = re.compile(r"<(think|thinking|reasoning)>.*?</\1>", re.DOTALL)
_OPENING: Final = re.compile(r"<(?:think|thinking|reasoning)>")
_CLOSING: Final = re.compile(r"</(?:think|thinking|reasoning)>")
_FENCE: Final = re.compile(r"```[ \t]*+[\w+-]*+[ \t]*+\r?\n(.*)```", re.DOTALL)
_CONTAINER: Final = re.compile(r"[\[{]")
_DECODER: Final = text_json.JSONDecoder()


class Fault(NamedTuple):
    """Why a text is not a valid reply: a reason of `BadReplyError`, and (pointer, message) of each fault."""

    reason: str
    errors: tuple[tuple[str, str], ...] = ()


class Read(NamedTuple):
    """The result of reading a reply: a valid value, or the fault."""

    json: Json
    fault: Fault | None

    @classmethod
    def failed(cls, reason: str, problem: str = "") -> Read:
        """Return the result for a reply that is invalid as a whole."""
        return cls(None, Fault(reason, (("", problem),) if problem else ()))


def read_reply(text: str, schema: Schema, reasoning: Mapping[str, str] | None = None) -> Read:
    """Read the value of `schema` out of `text`; `reasoning` is put in front of an object that lacks its field."""
    bare = ""
    error = ""
    for bare in dict.fromkeys((text, _bare(text))):
        try:
            return _judged(parse_frozen(bare), schema, reasoning)
        except DataError as fault:
            error = str(fault)
    if not bare:
        return Read.failed("empty", "the reply is empty")
    first: Read | None = None
    for json in _containers_in(bare):
        read = _judged(json, schema, reasoning)
        if read.fault is None:
            return read
        first = first or read
    return first or Read.failed("not_json", error)


def _judged(json: Json, schema: Schema, reasoning: Mapping[str, str] | None) -> Read:
    """Validate a value."""
    if reasoning and is_object(json):
        json = frozen_dict({**reasoning, **json})  # a field of its own wins
    try:
        found = problems(schema, json, limit=_MOST_ERRORS)
    except SchemaTooComplex as error:  # the reply, not the schema, is what costs too much
        return Read.failed("schema", str(error))
    if not found:
        return Read(json, None)
    return Read(None, Fault("schema", tuple((p.pointer, f"wanted {p.wanted}, got {p.got}") for p in found)))


def _bare(text: str) -> str:
    """Return the text without white space, byte order mark, a reasoning block in front, and a code fence around it."""
    text = text.strip().removeprefix("\ufeff").strip()
    reasoning = _BLOCK.match(text)
    if reasoning is None and (closing := _CLOSING.search(text)) and not _OPENING.search(text, 0, closing.start()):
        reasoning = closing  # some chat templates open the block in the prompt, so that the reply only closes it
    text = text if reasoning is None else text[reasoning.end() :].strip()
    fence = _FENCE.fullmatch(text) if text.endswith("```") else None
    return text if fence is None else fence[1].strip()


def _containers_in(text: str) -> Iterator[Json]:
    """Yield the JSON objects and arrays in prose, in order, none from inside another; at most 100 places are tried."""
    at = 0
    for _ in range(_MOST_PLACES):
        start = _CONTAINER.search(text, at)
        if start is None:
            return
        at = start.end()
        try:
            _, end = _DECODER.raw_decode(text, start.start())
            json = parse_frozen(text[start.start() : end])  # strict: no NaN, no key twice
        except (ValueError, RecursionError):
            continue
        yield json
        at = end


def check_reasoning_field(field: str | None, schema: Schema | None, where: str) -> str | None:
    """Return the name of the field that reasoning may fill.

    Raises:
        ConfigError: It is not a text, or there is no schema whose field it could be.
    """
    if field is None or (isinstance(field, str) and schema is not None):  # pyright: ignore[reportUnnecessaryIsInstance]  (users)
        return field
    raise ConfigError(f"{where}: reasoning_field: got {field!r:.100}, wanted the name of a field of the schema.")


def without_asking(request: LMRequest, adapter: Adapter) -> LMRequest:
    """Return the request without its reasoning field, in schema and prompt, where the provider reasons by itself.

    An adapter may have `reasons(request)`: whether the model reasons natively on a request and the reply will hold it.
    """
    field, schema, reasons = request.reasoning_field, request.schema, getattr(adapter, "reasons", None)
    if field is None or schema is None or reasons is None or not reasons(request) or field not in fields_of(schema):
        return request
    less = {**schema, "properties": {name: inner for name, inner in fields_of(schema).items() if name != field}}
    if "required" in schema:
        less["required"] = [name for name in schema["required"] if name != field]
    asked = trusted_schema(less)
    old, new = (f"<output_schema>{value_text(one)}</output_schema>" for one in (schema, asked))
    return replace(request, schema=asked, messages=tuple([_rewritten(turn, old, new) for turn in request.messages]))


def _rewritten(turn: Message, old: str, new: str) -> Message:
    """Return a turn with one text in place of another."""
    content = turn["content"]
    return message(turn["role"], content.replace(old, new)) if isinstance(content, str) and old in content else turn


def reasoning_for(reply: LMReply, request: LMRequest, sent: LMRequest) -> Mapping[str, str] | None:
    """Return what may fill the reasoning field of a request.

    None where it was asked for and no reasoning came; "" where it was left out, so that an output never lacks it.
    """
    if request.reasoning_field is None:
        return None
    text = reply.reasoning or ("" if sent.schema is not request.schema else None)
    return None if text is None else {request.reasoning_field: text}
