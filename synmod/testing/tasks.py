"""Tasks with a known optimum, to measure optimizers by: deterministic, and sensitive to what the prompts say."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Final

from synmod.blocks import Generator
from synmod.data import DataModel, JsonDataModel, parse_json
from synmod.leaves.names import rng
from synmod.lm import LMRequest, current_sample
from synmod.module import Module
from synmod.program import Input, Sequential
from synmod.registry import register_own
from synmod.scope import Feedback
from synmod.train import Example, ReflectionInputs
from synmod.train.rewards import Reward

from .models import FunctionLM

_MOST_LINES: Final = 6
_SPLITS: Final = ("train", "validation", "test")


@dataclass(frozen=True, slots=True)
class Task:
    """A program and its data, with what is known of them.

    Attributes:
        program: To be trained.
        train: Rows to learn from.
        validation: Rows to compare candidates on.
        test: Rows that nothing is chosen by.
        reward: What judges a row.
        seed: What the task was drawn from.
        optimum: The highest mean score that values of the Variables can reach, without noise.
        proposer: Writes better values, in place of a model; None where none is needed.
    """

    program: Module
    train: Sequence[Example]
    validation: Sequence[Example]
    test: Sequence[Example]
    reward: Any
    seed: int
    optimum: float
    proposer: Module | None = None


class Case(DataModel):
    """A row: what it needs of each stage, what was missing so far, and what was read on the way."""

    row: str
    needs: list[list[str]]
    missing: list[str]
    read: str


def _share(*parts: object) -> float:
    """Return a number in [0, 1) that depends on the parts alone."""
    return int.from_bytes(sha256("/".join(map(str, parts)).encode()).digest()[:6]) / 2**48


class _Stage:
    """Answers for one stage: which of the rules that a row needs stands in the instructions."""

    def __init__(self, stage: int, seed: int) -> None:
        self._stage, self._seed = stage, seed

    def __call__(self, request: LMRequest) -> Any:
        """Return the row with what is missing here."""
        text = "".join(str(message["content"]) for message in request.messages)
        rules = _rules_in(text.split("<instructions>")[1].split("</instructions>")[0])
        case: Any = parse_json(text.rsplit("<inputs>", 1)[1].split("</inputs>")[0])
        missing = next((rule for rule in case["needs"][self._stage] if rule not in rules), "")
        if not missing and len(rules) > _MOST_LINES and _share(self._seed, self._stage, case["row"]) < 0.5:
            missing = "fewer lines"
        read = sha256(f"{case['read']}{sorted(rules)}".encode()).hexdigest()[:8]
        return {**case, "missing": [*case["missing"], missing], "read": read}


def _rules_in(instructions: str) -> list[str]:
    """Return the lines that are rules."""
    return [line.strip() for line in instructions.splitlines() if line.strip().startswith("rule ")]


@register_own()
class RuleReward(Reward):
    """1 for a row that misses nothing, else 0; names the first missing rule of each stage, by its path.

    Args:
        noise: The share of outcomes that are flipped, by a hash of what was read and the row.
        seed: What the hash depends on.
    """

    needs_target = False

    def __init__(self, noise: float = 0.0, seed: int = 0, **options: Any) -> None:
        super().__init__(**options)
        self.noise, self.seed = noise, seed

    async def call(self, y_pred: Any) -> Feedback:  # pyright: ignore[reportIncompatibleMethodOverride]  (by name)
        """Return score and parts."""
        missing = {str(stage): rule for stage, rule in enumerate(y_pred["missing"]) if rule}
        right = not missing
        if _share(self.seed, y_pred["read"], y_pred["row"]) < self.noise:
            right = not right
        return Feedback(float(right), parts={stage: f"missing: {rule}" for stage, rule in missing.items()})


@register_own()
class RuleProposer(Module):
    """Adds up to two rules that the records name; garbles three in ten, and drops a line in one call of five."""

    async def call(self, inputs: ReflectionInputs) -> Any:
        """Return a reason and the value."""
        given: Any = inputs
        draw = rng(current_sample(), 0, f"rules/{given['path']}")
        lines = _rules_in(given["current"])
        named = [str(record["critique"]).partition("missing: ")[2] for record in given["records"] if record["critique"]]
        new = [rule for rule in dict.fromkeys(named) if rule.startswith("rule ") and rule not in lines][:2]
        if lines and draw.random() < 0.2:
            lines.pop(int(draw.random() * len(lines)))
        lines += [f"{rule[:-1]}?" if draw.random() < 0.3 else rule for rule in new]
        answer = {"reason": "the records name them", "value": "\n".join(["Work by these rules.", *lines])}
        return JsonDataModel(answer, schema=_ANSWER)


_ANSWER: Final = {
    "type": "object",
    "properties": {"reason": {"type": "string"}, "value": {"type": "string"}},
    "required": ["reason", "value"],
    "additionalProperties": False,
}


def RuleTask(stages: int = 2, rules: int = 4, rows: int = 40, noise: float = 0.0, seed: int = 0) -> Task:  # noqa: N802
    """Return a chain of stages, each of which needs rules in its instructions.

    A row needs 0 to 2 rules of each stage, and is right if they all stand there. Above 6 lines half of a stage's rows
    fail.

    Args:
        stages: Generators in a row.
        rules: Rules of each stage.
        rows: Rows of each split.
        noise: The share of outcomes that are flipped.
        seed: What rows and noise are drawn from.

    Example:
        >>> task = RuleTask(stages=2, rows=10)
        >>> len(task.train), task.optimum
        (10, 1.0)

    Source: the made-up tasks on which optimizers of prompts are compared.
    """
    names = [[f"rule {chr(97 + stage)}{number}" for number in range(rules)] for stage in range(stages)]
    program = Sequential(
        [
            Input(Case),
            *(
                Generator(Case, instructions="Work by these rules.", language_model=FunctionLM(_Stage(stage, seed)))
                for stage in range(stages)
            ),
        ],
        name="rule_task",
    )
    splits: dict[str, list[Example]] = {}
    for split in _SPLITS:
        draw = rng(seed, 0, f"rows/{split}")
        found: list[Example] = []
        for number in range(rows):
            needs = [draw.sample(stage, int(draw.random() * 3)) for stage in names]
            row = f"{split}-{number}"
            found.append(Example(row, {"row": row, "needs": needs, "missing": [], "read": ""}))
        splits[split] = found
    return Task(program, **splits, reward=RuleReward(noise, seed), seed=seed, optimum=1.0, proposer=RuleProposer())
