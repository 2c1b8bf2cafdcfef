"""Reading a reply: from the text of a model to a JSON value, with nothing guessed.

First success wins: strict JSON; the same without white space, byte order mark, reasoning block and code fence; the
first JSON value of a wanted kind inside the text that validates. No quotes are repaired, no numbers converted, no
list is unwrapped.
"""

from __future__ import annotations

import json as text_json
import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from synmod.data import Schema, parse_frozen, problems
from synmod.errors import DataError, SchemaTooComplex
from synmod.leaves.frozen import Json
from synmod.lm.replies.kinds import kind_of, wanted_kinds
from synmod.lm.replies.reasoning import Thought

__all__ = ["Fault", "Read", "read_reply"]

MOST_ERRORS: Final = 5

_REASONING: Final = re.compile(r"<(think|thinking|reasoning)>.*?</\1>", re.DOTALL)
_REASONED: Final = re.compile(r"</(?:think|thinking|reasoning)>")
_REASONS: Final = re.compile(r"<(?:think|thinking|reasoning)>")
_FENCE: Final = re.compile(r"```[ \t]*+[\w+-]*+[ \t]*+\r?\n(.*)```", re.DOTALL)
_DECODER: Final = text_json.JSONDecoder()

# Where a JSON value may begin inside prose: containers always, since they are read or passed over as a whole.
_STARTS: Final = {
    "string": r'"',
    "number": r"(?<![\w.+-])-?\d",
    "integer": r"(?<![\w.+-])-?\d",
    "boolean": r"\b(?:true|false)\b",
    "null": r"\bnull\b",
}

_LEAST_WORK: Final = 50  # what a failed try costs at least, in characters
_RECURSION_WORK: Final = 10_000
_NEAR: Final = 4_096


class Fault(NamedTuple):
    """Why a text is no valid reply: a reason of `BadReplyError`, and (pointer, message) of each fault."""

    reason: str
    errors: tuple[tuple[str, str], ...]


class Read(NamedTuple):
    """What reading gave: a valid value, or the fault."""

    json: Json
    fault: Fault | None


def read_reply(text: str, schema: Schema, thought: Thought | None = None) -> Read:
    """Read the value that `schema` wants out of `text`; native reasoning fills its field before it is judged."""
    json, error = _strict(text)
    if error is None:
        return _judged(json, schema, thought)
    bare = _bare(text)
    if not bare:
        return Read(None, Fault("empty", (("", "the reply is empty"),)))
    if bare != text:
        json, error = _strict(bare)
        if error is None:
            return _judged(json, schema, thought)
    first_fault = Fault("not_json", (("", error),))
    for json in _values_inside(bare, wanted_kinds(schema)):
        read = _judged(json, schema, thought)
        if read.fault is None:
            return read
        if first_fault.reason == "not_json":
            first_fault = read.fault
    return Read(None, first_fault)


def _strict(text: str) -> tuple[Json, str | None]:
    """Read a text that is one JSON value; else say why it is none."""
    try:
        return parse_frozen(text), None
    except DataError as error:
        return None, str(error)


def _judged(json: Json, schema: Schema, thought: Thought | None) -> Read:
    """Validate a value, filled with the reasoning that came beside it."""
    if thought is not None:
        json = thought.filled_into(json)
    try:
        found = problems(schema, json, limit=MOST_ERRORS)
    except SchemaTooComplex as error:  # the reply, not the schema, is what costs too much
        return Read(None, Fault("schema", (("", str(error)),)))
    if not found:
        return Read(json, None)
    return Read(None, Fault("schema", tuple((p.pointer, f"wanted {p.wanted}, got {p.got}") for p in found)))


def _bare(text: str) -> str:
    """Take off white space, byte order mark, a reasoning block in front, and a code fence around the rest."""
    text = _without_reasoning(text.strip().removeprefix("\ufeff").strip())
    fence = _FENCE.fullmatch(text) if text.endswith("```") else None
    return text if fence is None else fence[1].strip()


def _without_reasoning(text: str) -> str:
    """Take off a reasoning block in front; where the prompt opened it, as some chat templates do, it only closes."""
    reasoning = _REASONING.match(text)
    if reasoning is None:
        closing = _REASONED.search(text)
        if closing is not None and _REASONS.search(text, 0, closing.start()) is None:
            reasoning = closing
    return text if reasoning is None else text[reasoning.end() :].strip()


def _values_inside(text: str, kinds: frozenset[str]) -> Iterator[Json]:
    """Give the JSON values of the wanted kinds that stand in prose, in order; none from inside another value.

    The work is bounded, so that a reply made of brackets cannot hold up the loop.
    """
    starts = re.compile("|".join([r"[\[{]", *sorted({_STARTS[kind] for kind in kinds if kind in _STARTS})]))
    work = 4 * len(text) + 100_000
    at = base = 0
    rest = text  # what is left from `base` on: a decoder that fails counts the lines before the fault
    while work > 0:
        start = starts.search(text, at)
        if start is None:
            return
        at = start.start()
        if at - base > _NEAR:
            base, rest = at, text[at:]
        try:
            _, end = _DECODER.raw_decode(rest, at - base)
        except (ValueError, RecursionError) as error:
            work -= max(_LEAST_WORK, getattr(error, "pos", at - base + _RECURSION_WORK) - (at - base))
            at += 1
            continue
        work -= base + end - at
        json, fault = _strict(text[at : base + end])
        if fault is None and kind_of(json) & kinds:
            yield json
        at = base + end
