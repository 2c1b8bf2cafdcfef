"""The five slots of a prompt: what it says, apart from where it stands."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final

from synmod.lm.prompt.escape import block, prose_block, value_text

if TYPE_CHECKING:
    from synmod.leaves.frozen import Json

SLOTS: Final = ("instructions", "input_fields", "output_schema", "examples", "inputs")
"""The names of the slots, in the order of the default layout."""

_REPLY_IN_JSON: Final = "Reply with one JSON value that satisfies the schema, and nothing else."


class Slots(Mapping[str, str]):
    """The five slots of one prompt as texts, tags included; a slot that says nothing is `""`.

    A prompt function gets one: `slots["inputs"]` or `slots.inputs` is the text, `slots.json["inputs"]` the JSON
    behind it (of `input_fields` the text again).

    Args:
        texts: A text for each slot.
        json: The JSON behind each slot.

    Raises:
        KeyError: A slot was asked for that is none of the five.

    Example:
        >>> slots = Slots({"instructions": "<instructions>Be brief.</instructions>"}, {"instructions": "Be brief."})
        >>> slots.instructions, slots["examples"], slots.json["instructions"]
        ('<instructions>Be brief.</instructions>', '', 'Be brief.')

    Source: DSPy adapters, which render a signature; differs: texts are closed by construction.
    """

    __slots__ = ("_texts", "json")

    def __init__(self, texts: Mapping[str, str], json: Mapping[str, Json]) -> None:
        self._texts = {name: texts.get(name, "") for name in SLOTS}
        self.json: Mapping[str, Json] = {name: json.get(name) for name in SLOTS}

    def __getitem__(self, name: str) -> str:
        return self._texts[name]

    def __getattr__(self, name: str) -> str:
        if name in SLOTS:
            return self._texts[name]
        raise AttributeError(f"A prompt has the slots {', '.join(SLOTS)}, not {name!r}.")

    def __iter__(self) -> Iterator[str]:
        return iter(SLOTS)

    def __len__(self) -> int:
        return len(SLOTS)

    def __repr__(self) -> str:
        return f"Slots({', '.join(name for name in SLOTS if self._texts[name])})"


def instructions_slot(instructions: str) -> str:
    """The instructions, to the letter but for their own closing tag."""
    return prose_block("instructions", instructions)


def input_fields_slot(lines: str) -> str:
    """The list of the input fields."""
    return prose_block("input_fields", lines)


def output_schema_slot(schema: Json | None) -> str:
    """The schema of the reply and what to do with it; nothing for a reply in plain text."""
    if schema is None:
        return ""
    return f"{block('output_schema', value_text(schema))}\n{_REPLY_IN_JSON}"


def examples_slot(lines: list[str]) -> str:
    """The examples, one JSON object a line."""
    return block("examples", "\n".join(["", *lines, ""]) if lines else "")


def inputs_slot(json_text: str) -> str:
    """The inputs of this one call."""
    return block("inputs", json_text)
