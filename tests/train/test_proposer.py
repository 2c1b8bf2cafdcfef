"""Proposer: what the model that writes a better value is told."""

import pytest

import synmod as sm
from synmod.testing import ScriptedLM
from synmod.train import Proposer, ReflectionInputs


def question(current="Be brief.", schema=None):
    """Return what a proposer is asked about one Variable."""
    return ReflectionInputs(
        task="Answer questions.", path="writer/instructions", description="What the model is told to do.",
        current=current, others={}, records=[], accepted=[], tried=[], hint="",
        value_schema={"type": "string"} if schema is None else schema,
    )  # fmt: skip


async def prompt_of(value="v", current="Be brief.", schema=None, **options):
    """Return the system turn that a proposer sends."""
    lm = ScriptedLM([{"reason": "r", "value": value}])
    await Proposer(lm, **options)(question(current, schema))
    return lm.requests[0].messages[0]["content"]


async def test_every_field_is_explained_to_the_model():
    """Each field of the inputs and of the reply has a line with its meaning."""
    lines = (await prompt_of()).splitlines()
    for name in ReflectionInputs.model_fields:
        (line,) = (line for line in lines if line.startswith(f"- {name}: "))
        assert len(line.split()) > 4
    for name in ("reason (string): ", "value (string): "):
        assert any(line.startswith(f"- {name}") for line in lines)


@pytest.mark.parametrize(
    ("current", "value", "schema", "options", "most"),
    [
        ("Be brief.", "v", {"type": "string"}, {}, 6000),
        ("Be brief.", "v", {"type": "string"}, {"max_length": 500}, 500),
        ("rule\n" * 100, "v", {"type": "string"}, {"max_length": 500}, 1000),
        ("rule\n" * 100, "v", {"type": "string"}, {"max_length": 500, "max_growth": 1.5}, 750),
        ([1, 2], [3], {"type": "array", "description": "a list"}, {"max_length": 3}, 12),
    ],
)
async def test_the_model_reads_how_long_its_value_may_be(current, value, schema, options, most):
    """As a number of characters: those of a text, else of the JSON."""
    (line,) = (
        line
        for line in (await prompt_of(value, current, schema, **options)).splitlines()
        if line.startswith("- value (")
    )
    assert line.endswith(f"at most {most} characters")


async def test_instructions_of_your_own_keep_the_explanations():
    """They take the place of the task alone."""
    text = await prompt_of(instructions="Write it in French.")
    assert text.startswith("Write it in French.\n\nThe fields of the inputs:\n- task: ")
    assert "at most 6000 characters" in text


def test_the_prompt_is_for_the_model_that_reads_it():
    """Its default instructions are a Param, so that they can be trained, too."""
    assert "`current`" in sm.state(Proposer())["instructions"].value
