"""Asking a model for a better value of a Variable, from what its module got, gave, and was told."""

from collections.abc import Sequence
from typing import Any, Final

from synmod.blocks import Generator
from synmod.data import DataModel, JsonDataModel, dump_json
from synmod.errors import TrainerError
from synmod.leaves import Json
from synmod.lm import LanguageModel, model_from
from synmod.module import Module
from synmod.registry import register_own

from .optimizer import FeedbackItem, Target

_MOST_RECORDS, _MOST_CHARACTERS, _CUT = 12, 24_000, 600
_INSTRUCTIONS: Final = """
    Write a better value for one variable of a program of language-model calls.
    Read `current` and the records of what its module got and gave. In `reason` say what the failing records have in
    common. Then write `value`:
    - keep what worked;
    - state the facts of the domain that the records show;
    - describe a procedure that would have been right on the failing records;
    - write nothing that fits one record alone, and do not repeat a value listed in `tried`."""


class ReflectionInputs(DataModel, defer_build=True):
    """What a proposer is told: a variable, what its module did, and what was tried."""

    task: str
    """What the program is for."""
    path: str
    """The path of the Variable."""
    description: str
    """That of the Variable."""
    current: Any
    """Its value."""
    others: dict[str, str]
    """Values of other Variables, by path."""
    records: list[dict[str, Any]]
    """Calls of the module with the feedback on them, failing ones first."""
    accepted: list[Any]
    """Values that were accepted before."""
    tried: list[Any]
    """Values that were tried and were not better."""
    hint: str
    """What this proposal should attend to."""
    value_schema: dict[str, Any]
    """The schema of the Variable."""


def records_of(items: Sequence[FeedbackItem], best: float, expected: Sequence[Json] = ()) -> list[dict[str, Json]]:
    """Return feedback as records for a proposer: failing ones first, at most 12, 24,000 characters together.

    Args:
        items: What one module was told.
        best: The highest score there is.
        expected: The target of each row, where rows have one.
    """

    def score(item: FeedbackItem) -> float:
        return best if item.feedback.score is None else item.feedback.score

    records: list[dict[str, Json]] = []
    room = _MOST_CHARACTERS
    for item in sorted(items, key=score)[:_MOST_RECORDS]:
        target = item.feedback.target
        if target is None and item.row < len(expected):
            target = expected[item.row]
        record: dict[str, Json] = {
            "inputs": item.inputs,
            "outputs": item.outputs,
            "expected": target,
            "score": item.feedback.score,
            "critique": item.feedback.critique,
        }
        room -= len(dump_json(record))
        if room < 0 and records:
            break
        records.append(record)
    return records


@register_own()
class Proposer(Module):
    """Asks a model for a better value; whatever the Variable holds, the answer satisfies its schema.

    Args:
        language_model: The model; None for the default of the calling context.
        max_growth: How many times as long as the present value a new one may be.
        max_length: Characters that are allowed in any case.
        instructions: What the model is told to do.

    Schemas:
        inputs: `ReflectionInputs`
        outputs: `{"reason": string, "value": the schema of the Variable}`

    Example:
        >>> Proposer(max_length=2000).max_growth
        2.0

    Source: GEPA's reflection, TextGrad; differs: any JSON Variable, typed.
    """

    def __init__(
        self,
        language_model: LanguageModel | str | None = None,
        max_growth: float = 2.0,
        max_length: int = 6000,
        *,
        instructions: str = _INSTRUCTIONS,
        name: str | None = None,
        description: str | None = None,
    ) -> None:
        super().__init__(name=name, description=description)
        self.language_model = None if language_model is None else model_from(language_model, "Proposer")
        self.max_growth, self.max_length = max_growth, max_length
        self.instructions = self.add_variable(
            instructions, schema={"type": "string"}, name="instructions", description="How to write a better value."
        )

    async def call(self, inputs: ReflectionInputs) -> Any:
        """Return `reason` and `value`."""
        given: Any = inputs
        schema = {
            "type": "object",
            "properties": {"reason": {"type": "string"}, "value": given["value_schema"]},
            "required": ["reason", "value"],
            "additionalProperties": False,
        }
        writer: Any = Generator(schema=schema, language_model=self.language_model, instructions=self.instructions.value)
        return await writer(given)


def is_too_long(new: Json, old: Json, proposer: Module) -> bool:
    """Whether a proposed value is longer than its proposer allows, in characters of its JSON."""
    growth, most = getattr(proposer, "max_growth", 2.0), getattr(proposer, "max_length", 6000)
    length = len(dump_json(new))
    return length > most and length > growth * len(dump_json(old))


def reflection_inputs(
    task: str,
    target: Target,
    current: Json,
    others: dict[str, Json],
    records: list[dict[str, Json]],
    *,
    accepted: Sequence[Json] = (),
    tried: Sequence[Json] = (),
    hint: str = "",
) -> JsonDataModel[ReflectionInputs]:
    """Return the inputs of a proposer.

    Raises:
        TrainerError: A value is not JSON.
    """
    try:
        return JsonDataModel(
            {
                "task": task,
                "path": target.path,
                "description": target.description,
                "current": current,
                "others": {path: _cut(value) for path, value in others.items()},
                "records": records,
                "accepted": list(accepted),
                "tried": list(tried),
                "hint": hint,
                "value_schema": dict(target.schema),
            },
            data_model=ReflectionInputs,
        )
    except ValueError as error:
        raise TrainerError(f"{target.path}: the records cannot be shown to a model: {error}") from error


def _cut(value: Json) -> str:
    """Return the first characters of a value as text."""
    text = value if isinstance(value, str) else dump_json(value)
    return text if len(text) <= _CUT else f"{text[:_CUT]}..."
