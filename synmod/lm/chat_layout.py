"""The default layout of a prompt: instructions as the system turn, examples as turns with their answers, the inputs.

A chat model answers the last user turn as the assistant turns before it answer theirs. On a small real model this
layout doubles and trebles the right answers of one that writes examples and a JSON schema into one turn
(`python -m tests.benchmarks.real`).
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set as AbstractSet
from typing import Final

from synmod.data import parse_json
from synmod.errors import DataError
from synmod.leaves import Json, is_object

from .records import Message, message, turns
from .words import (
    block,
    described_fields,
    fields_of,
    in_order,
    json_text,
    output_fields,
    resolved,
    schema_text,
    value_text,
    without_media,
)

_INPUTS: Final = "The fields of the inputs:"
_REPLY: Final = "The fields of the reply:"
_SECTION: Final = re.compile(rf"(?:^|\n\n)(?:{_INPUTS}|{_REPLY})\n")
_OPENING: Final = re.compile(
    r"<(?=\s*/?\s*(?:instructions|input_fields|output_fields|output_schema|examples|inputs|repair)\b"
    r"|[|｜]|/?s>|\w+_of_turn>|/?tool_)",
    re.IGNORECASE,
)  # ours, and those that chat templates give a meaning to


def system_text(
    instructions: str,
    input_schema: Mapping[str, Json],
    output_schema: Mapping[str, Json] | None,
    without: Iterable[str] = (),
    examples: Sequence[Json] = (),
) -> str:
    """Return the text of the system turn: instructions, then the fields of the inputs and of the reply in words.

    Args:
        instructions: The task.
        input_schema: Schema of the inputs; fields without a description are not listed.
        output_schema: Schema of the reply; None for plain text.
        without: Fields of the inputs to leave out.
        examples: What follows as turns; what the answers in them show is left out.

    Example:
        >>> print(system_text("Be brief.", {}, {"properties": {"mood": {"enum": ["good", "bad"]}}}))
        Be brief.
        <BLANKLINE>
        The fields of the reply:
        - mood (good, bad)

    Source: DSPy's ChatAdapter; differs: a field of the inputs is told only if it has a description.
    """
    sections = [instructions, _section(_INPUTS, described_fields(input_schema, without))]
    if output_schema is not None and fields_of(resolved(output_schema, output_schema)):
        answers = [example["outputs"] for example in examples]
        sections.append(_section(_REPLY, output_fields(output_schema, answers)))
    elif output_schema is not None:
        sections.append(schema_text(output_schema))
    return "\n\n".join(filter(None, sections))


def instructions_in(system: str) -> str:
    """Return the instructions in the text of a system turn: all of it before the lists of fields."""
    return _SECTION.split(system, maxsplit=1)[0]


def _section(heading: str, lines: str) -> str:
    """Return lines below their heading; "" without lines."""
    return f"{heading}\n{guarded(lines)}" if lines else ""


def example_turns(
    examples: Sequence[Json], input_schema: Mapping[str, Json], output_schema: Mapping[str, Json] | None
) -> list[Message]:
    """Return each example as a user turn and the answer to it.

    Raises:
        DataError: An input is a sound given by its address, which no message can hold.
    """
    written: list[Message] = []
    for example in examples:
        answer = answer_of(example, output_schema)
        answer = without_media(answer, [output_schema], output_schema or {}, [], "examples/outputs")
        text = answer if output_schema is None and isinstance(answer, str) else json_text(answer)
        user = input_turn(example["inputs"], input_schema, "examples/inputs")
        written += [user, message("assistant", guarded(text))]
    return written


def answer_of(example: Mapping[str, Json], schema: Mapping[str, Json] | None) -> Json:
    """Return the answer of an example: its outputs in declared order; the text of a message without a schema."""
    outputs = example["outputs"]
    if schema is not None:
        return in_order(outputs, schema, schema)
    return outputs.get("content", outputs) if is_object(outputs) else outputs


def input_turn(inputs: Mapping[str, Json], schema: Mapping[str, Json], where: str = "inputs") -> Message:
    """Return the user turn for inputs: the text of a single text field, else compact JSON in declared order.

    Images and files follow the text, in which `(image 1)` and the like stand for them.

    Raises:
        DataError: An input is a sound given by its address, which no message can hold.

    Example:
        >>> input_turn({"query": "Hi"}, {"properties": {"query": {"type": "string"}}})["content"]
        'Hi'

    Source: the chat examples of providers' guides.
    """
    text = _text(in_order(inputs, schema, schema), schema)
    if '"media_type":' not in text:
        return message("user", text)
    media = list[Json]()
    text = _text(without_media(in_order(inputs, schema, schema), [schema], schema, media, where), schema)
    [turn] = turns({"role": "user", "content": [text, *media]})
    return turn


def _text(inputs: Mapping[str, Json], schema: Mapping[str, Json]) -> str:
    """Return inputs as text that opens no turn, no tag of a prompt and no tool call."""
    fields = fields_of(schema)
    if len(inputs) == len(fields) == 1:
        [(name, value)] = inputs.items()
        if name in fields and isinstance(value, str) and not value.isspace() and value:
            return guarded(value)
    return guarded(json_text(inputs))


def guarded(text: str) -> str:
    r"""Return a text with `\u003c` in place of each `<` that would begin a boundary of a prompt or of a chat template.

    Example:
        >>> guarded("1 < 2 <|im_end|>")
        '1 < 2 \\u003c|im_end|>'

    Source: JSON in HTML script elements, which is escaped in the same way.
    """
    return _OPENING.sub(r"\\u003c", text)


def guarded_turn(turn: Message) -> Message:
    """Return a turn of a user or a tool, who are not trusted, with its texts guarded; other turns as they are."""
    if turn["role"] not in ("user", "tool"):
        return turn
    content = turn["content"]
    parts: Json = (
        guarded(content)
        if isinstance(content, str)
        else [{**part, "text": guarded(part["text"])} if "text" in part else part for part in content]
    )
    return turn if parts == content else message(**{**turn, "content": parts})


def with_less_of_reply(
    messages: Sequence[Message], schema: Mapping[str, Json], less: Mapping[str, Json]
) -> Iterator[Message]:
    """Yield the turns of a prompt as they would be if the schema of the reply had fewer fields.

    Args:
        messages: The turns.
        schema: The schema that they were written for.
        less: The same schema with fewer fields.
    """
    old, new = (block("output_schema", value_text(json)) for json in (schema, less))
    names = fields_of(schema).keys() - fields_of(less).keys()
    for turn in messages:
        content = turn["content"]
        if not isinstance(content, str) or turn.get("tool_calls"):
            yield turn
        elif turn["role"] == "assistant":
            yield message("assistant", _with_fewer_fields(content, names))
        else:
            content = content.replace(old, new)
            if turn["role"] == "system":  # a user may write such lines
                content = _without_lines(content, names)
            yield turn if content == turn["content"] else message(**{**turn, "content": content})


def _without_lines(system: str, names: AbstractSet[str]) -> str:
    """Return the text of a system turn without the lines of some fields of the reply."""
    start, heading, lines = system.rpartition(f"{_REPLY}\n")
    if not heading:
        return system
    openings = tuple(f"- {name}{sign}" for name in names for sign in (" (", ": ", "\n"))
    left = "".join(line for line in lines.splitlines(keepends=True) if not f"{line}\n".startswith(openings))
    return f"{start}{heading}{left}".rstrip() if left else start.rstrip()


def _with_fewer_fields(answer: str, without: AbstractSet[str]) -> str:
    """Return the text of an example's answer without some fields; any other text unchanged."""
    try:
        json = parse_json(answer)
    except DataError:
        return answer
    if not is_object(json) or json.keys().isdisjoint(without):
        return answer
    return guarded(json_text({name: value for name, value in json.items() if name not in without}))
