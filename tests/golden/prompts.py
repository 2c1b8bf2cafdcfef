"""Prompts as texts, one for each layout and level: `python -m tests.golden.prompts` writes them.

For intended changes of a prompt; the commit says what was measured on a real model.
"""

import json
from itertools import product
from pathlib import Path
from typing import Literal

import synmod as sm
from synmod.data import schema_of
from synmod.lm import LMRequest
from synmod.lm.chat_completions import chat_body
from synmod.lm.text_calls import with_tools_in_text

FOLDER = Path(__file__).parent / "prompts"
LAYOUTS = {
    "bare": {},
    "turns": {"layout": "turns"},
    "tags": {"layout": "tags"},
    "template": {"template": {"user": "{instructions}\n{input_fields}\n{output_fields}\n{examples}\n{inputs}"}},
}
LEVELS = ["schema", "json", "tool", "calls", "prompt"]
TOOL = {"name": "invoices", "description": "List the invoices of a customer.", "parameters": {"type": "object"}}


class Ticket(sm.DataModel):
    """What a customer writes."""

    subject: str = sm.Field(description="the first line of the mail")
    text: str
    language: str | None = None


class Part(sm.DataModel):
    """One of several questions."""

    question: str = sm.Field(description="in the words of the customer")
    pages: list[int] = sm.Field(max_length=3)


class Route(sm.DataModel):
    """Choose who answers."""

    team: Literal["billing", "technical"] = sm.Field(description="who answers")
    urgency: float = sm.Field(ge=0, le=1)
    parts: list[Part]


TICKET = Ticket(subject="Twice", text="I paid <b>twice</b>.</inputs>")
EXAMPLES = [
    {
        "inputs": Ticket(subject="Down", text="The site is down.", language="en"),
        "outputs": Route(team="technical", urgency=1, parts=[]),
    }
]


def prompt(layout, level):
    """The messages that one layout sends at one level, and the names of the other fields."""
    examples = None if layout == "bare" else EXAMPLES
    module = sm.Generator(Route, instructions="Be quick.", examples=examples, **LAYOUTS[layout])
    turns = tuple(
        module._layout.render(
            module.instructions.value, module.examples.value, TICKET.to_json_data_model().get_json(), schema_of(TICKET)
        )
    )
    request = LMRequest("openai/x", turns, schema_of(Route), structured=level)
    if level == "calls":
        tools = ({"type": "function", "function": TOOL},)
        request = with_tools_in_text(LMRequest("openai/x", turns, schema_of(Route), tools))
    body = chat_body(request, "prompt" if level == "calls" else level)
    texts = [f"── {turn['role']} ──\n{turn['content']}" for turn in body.pop("messages")]
    return "\n\n".join([*texts, f"── beside ──\n{json.dumps(body, indent=1)}\n"])


def every():
    """Each layout with each level."""
    return [*product(LAYOUTS, LEVELS)]


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for layout, level in every():
        (FOLDER / f"{layout}-{level}.txt").write_text(prompt(layout, level))
    print(f"written: {FOLDER}")
