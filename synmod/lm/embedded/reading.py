"""Reading a prompt: what it asks, by which rules, after which examples, and in which schema."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Final, NamedTuple

from synmod.lm.embedded.examples import Pair, parsed
from synmod.lm.embedded.words import leaf_text
from synmod.lm.prompt.subschemas import is_array, is_object
from synmod.lm.replies import REPAIR_OPENING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from synmod.leaves.frozen import Json
    from synmod.lm.records import LMRequest

INSTRUCTING: Final = ("system", "developer")


class Turn(NamedTuple):
    """A turn of the prompt as text."""

    role: str
    text: str


class Reading(NamedTuple):
    """What a prompt says.

    Attributes:
        instructions: What to do; holds the rules.
        examples: The lines of all `<examples>`.
        pairs: Earlier questions with their answers.
        asked: The text of the input.
        schema: Schema of the reply; None for plain text.
        turns: The turns that were read.
    """

    instructions: str
    examples: str
    pairs: tuple[Pair, ...]
    asked: str
    schema: Mapping[str, Json] | None
    turns: tuple[Turn, ...]


def read(request: LMRequest) -> Reading:
    """Read the prompt of a request; a repair turn and the reply before it are passed over."""
    turns = tuple(_without_repairs([Turn(turn["role"], _text(turn.get("content"))) for turn in request.messages]))
    system = "\n".join(turn.text for turn in turns if turn.role in INSTRUCTING)
    told = next((text for turn in turns for text in blocks(turn.text, "instructions")), system)
    examples = "\n".join(text for turn in turns for text in blocks(turn.text, "examples"))
    place, asked = _question(turns)
    schema: Json = request.schema
    if schema is None:
        schema = next((parsed(text) for turn in turns for text in blocks(turn.text, "output_schema")), None)
    schema = schema if is_object(schema) else None
    pairs = tuple(_pairs(turns[:place]))
    return Reading(told, examples, pairs, asked, schema, turns)


def blocks(text: str, tag: str) -> Iterator[str]:
    """The texts between the tags of a name, in order."""
    opening, closing = f"<{tag}>", f"</{tag}>"
    start = text.find(opening)
    while start >= 0:
        start += len(opening)
        end = text.find(closing, start)
        if end < 0:
            return
        yield text[start:end]
        start = text.find(opening, end)


def _text(content: Json) -> str:
    """The text of a turn, its parts put together."""
    if isinstance(content, str):
        return content
    parts: list[Json] = content if is_array(content) else []
    return "\n".join(part["text"] for part in parts if is_object(part) and isinstance(part.get("text"), str))


def _question(turns: Sequence[Turn]) -> tuple[int, str]:
    """Where the question stands and what it says: the last `<inputs>`, else the last turn of the user."""
    places = [place for place, turn in enumerate(turns) if turn.role == "user"]
    for place in reversed(places):
        found = list(blocks(turns[place].text, "inputs"))
        if found:
            return place, _input_text(found[-1])
    return (places[-1], turns[places[-1]].text) if places else (len(turns), "")


def _input_text(inputs: str) -> str:
    """The text of an input: its leaves, or the input itself where it is no JSON."""
    json = parsed(inputs)
    return inputs if json is None else leaf_text(json)


def _pairs(turns: Sequence[Turn]) -> Iterator[Pair]:
    """Questions of the user that were answered at once."""
    for asked, answered in itertools.pairwise(turns):
        if asked.role == "user" and answered.role == "assistant" and answered.text:
            inputs = next(blocks(asked.text, "inputs"), None)
            yield Pair(asked.text if inputs is None else _input_text(inputs), answered.text)


def _without_repairs(turns: list[Turn]) -> Iterator[Turn]:
    """Leave out each repair turn and the reply that it complains of."""
    for place, turn in enumerate(turns):
        following = turns[place + 1] if place + 1 < len(turns) else None
        if is_repair(turn) or (turn.role == "assistant" and following is not None and is_repair(following)):
            continue
        yield turn


def is_repair(turn: Turn) -> bool:
    """Whether a turn asks to mend the reply before it."""
    return turn.role == "user" and turn.text.startswith(REPAIR_OPENING)
