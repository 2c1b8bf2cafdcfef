"""Tasks with a known optimum, for measuring optimizers: deterministic, and sensitive to the text of the prompts."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import sha256
from itertools import product
from math import exp
from typing import Any, Final, Literal

from synmod import blocks, data, leaves, lm, module, registry, scope, tree
from synmod.program import Input, Sequential
from synmod.train import Example, ReflectionInputs
from synmod.train.rewards import ExactMatch, Reward

from .models import FunctionLM

_MOST_LINES: Final = 6
_SLOPE, _TOP = 0.6, 4.0  # in logits: deviation of one choice's effect, quality of the best combination
_SPLITS: Final = ("train", "validation", "test")


@dataclass(frozen=True, slots=True)
class Task:
    """A program and its data, with a known optimum.

    Attributes:
        program: The program to train.
        train: Rows to learn from.
        validation: Rows to compare candidates on.
        test: Rows to measure the result on; no choice may depend on them.
        reward: The reward that scores a row.
        seed: The seed of the task.
        optimum: The highest mean score that values of the Variables can reach, without noise.
        proposer: Writes better values, in place of a model; None where none is needed.
        proposals: Candidate values of Variables, by path.
    """

    program: module.Module
    train: Sequence[Example]
    validation: Sequence[Example]
    test: Sequence[Example]
    reward: Any
    seed: int
    optimum: float
    proposer: module.Module | None = None
    proposals: Mapping[str, Sequence[str]] = field(default_factory=dict[str, Sequence[str]])


class Case(data.DataModel):
    """A row: the rules that it needs of each stage, those missing so far, and a hash of the rules read so far."""

    row: str
    needs: list[list[str]]
    missing: list[str]
    read: str


def _share(*parts: object) -> float:
    """Return a number in [0, 1) that depends on the parts alone."""
    return int.from_bytes(sha256("/".join(map(str, parts)).encode()).digest()[:6]) / 2**48


class _Stage:
    """The model of one stage: returns the first rule that a row needs and the instructions lack."""

    def __init__(self, stage: int, seed: int) -> None:
        self._stage, self._seed = stage, seed

    def __call__(self, request: lm.LMRequest) -> Any:
        """Return the row with the rule that this stage misses."""
        text = "".join(str(message["content"]) for message in request.messages)
        rules = _rules_in(text.split("<instructions>")[1].split("</instructions>")[0])
        case: Any = data.parse_json(text.rsplit("<inputs>", 1)[1].split("</inputs>")[0])
        missing = next((rule for rule in case["needs"][self._stage] if rule not in rules), "")
        if not missing and len(rules) > _MOST_LINES and _share(self._seed, self._stage, case["row"]) < 0.5:
            missing = "fewer lines"
        read = sha256(f"{case['read']}{sorted(rules)}".encode()).hexdigest()[:8]
        return {**case, "missing": [*case["missing"], missing], "read": read}


def _rules_in(instructions: str) -> list[str]:
    """Return the lines that are rules."""
    return [line.strip() for line in instructions.splitlines() if line.strip().startswith("rule ")]


@registry.register_own()
class RuleReward(Reward):
    """1 for a row that misses no rule, else 0; the parts name the first missing rule of each stage, by its path.

    Args:
        noise: The share of outcomes to flip, chosen by a hash of the row and the rules read.
        seed: The seed of that hash.
    """

    needs_target = False

    def __init__(self, noise: float = 0.0, seed: int = 0, **options: Any) -> None:
        super().__init__(**options)
        self.noise, self.seed = noise, seed

    async def call(self, y_pred: Any) -> scope.Feedback:  # pyright: ignore[reportIncompatibleMethodOverride]  (by name)
        """Return score and parts."""
        missing = {str(stage): rule for stage, rule in enumerate(y_pred["missing"]) if rule}
        is_flipped = _share(self.seed, y_pred["read"], y_pred["row"]) < self.noise
        parts = {stage: f"missing: {rule}" for stage, rule in missing.items()}
        return scope.Feedback(float((not missing) != is_flipped), parts=parts)


class Revision(data.DataModel):
    """A better value, and why it is better."""

    reason: str
    value: str


@registry.register_own()
class RuleProposer(module.Module):
    """Adds up to two rules that the records name; garbles three rules in ten, and drops a line in one call in five."""

    async def call(self, inputs: ReflectionInputs) -> Any:
        """Return a reason and the value."""
        question: Any = inputs
        draw = leaves.rng(lm.current_sample(), 0, f"rules/{question['path']}")
        lines = _rules_in(question["current"])
        critiques = [str(record["critique"]) for record in question["records"] if record["critique"]]
        rules = [critique.partition("missing: ")[2] for critique in critiques]
        new = [rule for rule in dict.fromkeys(rules) if rule.startswith("rule ") and rule not in lines][:2]
        if lines and draw.random() < 0.2:
            lines.pop(int(draw.random() * len(lines)))
        lines += [f"{rule[:-1]}?" if draw.random() < 0.3 else rule for rule in new]
        return Revision(reason="the records name them", value="\n".join(["Work by these rules.", *lines]))


def RuleTask(stages: int = 2, rules: int = 4, rows: int = 40, noise: float = 0.0, seed: int = 0) -> Task:  # noqa: N802
    """Return a chain of stages, each of which needs rules in its instructions.

    A row needs 0 to 2 rules of each stage, and is right if the instructions contain them all. With more than 6 rule
    lines, a stage fails on half of the rows.

    Args:
        stages: The number of Generators.
        rules: Rules per stage.
        rows: Rows per split.
        noise: The share of outcomes to flip.
        seed: The seed of rows and noise.

    Example:
        >>> task = RuleTask(stages=2, rows=10)
        >>> len(task.train), task.optimum
        (10, 1.0)

    Source: the synthetic tasks on which prompt optimizers are compared.
    """
    names = [[f"rule {chr(97 + stage)}{number}" for number in range(rules)] for stage in range(stages)]
    options: dict[str, Any] = {"instructions": "Work by these rules.", "layout": "tags"}
    models = [FunctionLM(_Stage(stage, seed)) for stage in range(stages)]
    generators = [blocks.Generator(Case, language_model=model, **options) for model in models]

    def rows_of(split: str) -> Iterator[Example]:
        draw = leaves.rng(seed, 0, f"rows/{split}")
        for number in range(rows):
            row, needs = f"{split}-{number}", [draw.sample(stage, int(draw.random() * 3)) for stage in names]
            yield Example(row, {"row": row, "needs": needs, "missing": [], "read": ""})

    program = Sequential([Input(Case), *generators], name="rule_task")
    splits = [[*rows_of(split)] for split in _SPLITS]
    return Task(program, *splits, reward=RuleReward(noise, seed), seed=seed, optimum=1.0, proposer=RuleProposer())


class Vote(data.DataModel):
    """A row: the quality that its choices must reach, and the choices made so far."""

    row: str
    difficulty: float
    chosen: list[int]


@registry.register_own()
class Chooser(module.Module):
    """Appends its choices to a row: the numbers at the end of its texts.

    Args:
        pair: Whether it has two texts, `instructions` and `style`, or `instructions` alone.
    """

    def __init__(self, pair: bool = True, **options: Any) -> None:
        super().__init__(**options)
        text = {"type": "string"}
        self.instructions = self.add_variable("choice 0", schema=text, name="instructions")
        self.style = self.add_variable("choice 0", schema=text, name="style") if pair else None

    async def call(self, inputs: Vote) -> Vote:
        """Return the row with the choices."""
        row: Any = inputs
        texts = [self.instructions.value] if self.style is None else [self.instructions.value, self.style.value]
        chosen = [*row["chosen"], *(int(text.split()[-1]) for text in texts)]
        return Vote(row=row["row"], difficulty=row["difficulty"], chosen=chosen)


@lru_cache(maxsize=64)
def _qualities(
    dimensions: int, choices: int, interaction: float, seed: int
) -> Sequence[Mapping[tuple[int, ...], float]]:
    """Return for each module the quality of each combination of choices, in logits: 0 for the best, else negative."""
    draw = leaves.rng(seed, 0, "effects")
    tables: list[dict[tuple[int, ...], float]] = []
    for size in [2] * (dimensions // 2) + [1] * (dimensions % 2):
        main = [[draw.gauss(0.0, 1.0) for _ in range(choices)] for _ in range(size)]
        effects = {
            chosen: sum(of_choice[choice] for of_choice, choice in zip(main, chosen, strict=True))
            + draw.gauss(0.0, interaction)
            for chosen in product(range(choices), repeat=size)
        }
        best = max(effects.values())
        tables.append({chosen: _SLOPE * (effect - best) for chosen, effect in effects.items()})
    return tables


@registry.register_own()
class ChoiceReward(Reward):
    """1 for a row whose choices are good enough for its difficulty, else 0.

    Args:
        dimensions: The number of texts to choose.
        choices: Values per text.
        interaction: Standard deviation of the effects of pairs; that of single choices is 1.
        noise: The share of outcomes to flip, chosen by a hash of choices and row.
        seed: The seed of effects and noise.
    """

    needs_target = False

    def __init__(
        self, dimensions: int, choices: int, interaction: float, noise: float = 0.0, seed: int = 0, **options: Any
    ) -> None:
        super().__init__(**options)
        self.dimensions, self.choices, self.interaction = dimensions, choices, interaction
        self.noise, self.seed = noise, seed

    async def call(self, y_pred: Any) -> float:  # pyright: ignore[reportIncompatibleMethodOverride]  (by name)
        """Return the score."""
        chosen = y_pred["chosen"]
        tables = _qualities(self.dimensions, self.choices, self.interaction, self.seed)
        quality = _TOP + sum(table[tuple(chosen[2 * at : 2 * at + 2])] for at, table in enumerate(tables))
        is_right = _share_right(quality) >= y_pred["difficulty"]
        return float(is_right != (_share(self.seed, y_pred["row"], *chosen) < self.noise))


def _share_right(quality: float) -> float:
    """Return the share of rows that are right at a given quality."""
    return 1 / (1 + exp(-quality))


def ChoiceTask(  # noqa: N802
    dimensions: int = 6, choices: int = 6, interaction: float = 0.5, rows: int = 40, seed: int = 0, noise: float = 0.0
) -> Task:
    """Return a chain of modules, each text of which is chosen from known values; optimizers search for the best ones.

    The quality of a combination is the sum of the effects of its choices and of the pairs of choices in one module. A
    row is right if the logistic of the quality reaches its difficulty. Difficulties are spread evenly from 0 to 1, so
    the logistic is also the share of rows that are right, and the optimum is known without a run.

    Args:
        dimensions: The number of texts to choose, two per module.
        choices: Values per text.
        interaction: Standard deviation of the effects of pairs; that of single choices is 1.
        rows: Rows per split.
        seed: The seed of effects, rows and noise.
        noise: The share of outcomes to flip.

    Example:
        >>> task = ChoiceTask(dimensions=2, choices=3, rows=10)
        >>> task.proposals["0/style"], task.optimum
        (['choice 1', 'choice 2'], 1.0)

    Source: the additive models of factorial experiments.
    """
    modules = [Chooser(pair=at + 1 < dimensions) for at in range(0, dimensions, 2)]
    program = Sequential([Input(Vote), *modules], name="choice_task")
    texts = [f"choice {number}" for number in range(1, choices)]

    def rows_of(split: str) -> Iterator[Example]:
        draw = leaves.rng(seed, 0, f"rows/{split}")
        levels = [(number + draw.random()) / rows for number in range(rows)]
        for number, level in enumerate(draw.sample(levels, rows)):
            row = f"{split}-{number}"
            yield Example(row, {"row": row, "difficulty": level, "chosen": []})

    splits = [[*rows_of(split)] for split in _SPLITS]
    return Task(
        program,
        *splits,
        reward=ChoiceReward(dimensions, choices, interaction, noise, seed),
        seed=seed,
        optimum=sum(row.inputs["difficulty"] <= _share_right(_TOP) for row in splits[-1]) / rows,
        proposals={leaves.path_str(path): texts for path in tree.state(program)},
    )


# -- tickets -----------------------------------------------------------------------------------------------------------


class Request(data.DataModel):
    """What a customer wrote."""

    text: str


class Desk(data.DataModel):
    """Who answers it."""

    desk: Literal["billing", "shipping", "technical"]


_TEMPLATES: Final = {
    "billing": (
        "I was charged twice for {item}",
        "the invoice for {item} shows another amount than the order",
        "where is the refund for {item} that I sent back",
        "the voucher for {item} was not taken off the total",
        "please send the receipt for {item} once more, our accountant wants the tax number on it",
    ),
    "shipping": (
        "{item} was to be here {day} and the courier never came",
        "the parcel with {item} stands still at the depot since {day}",
        "please send {item} to my office, I moved",
        "you sent {item} in another colour than in the order",
    ),
    "technical": (
        "{item} freezes since the update of {day}",
        "I cannot log in to set up {item}, the password is not taken",
        "the screen of {item} stays black",
        "{item} does not pair with my phone",
    ),
}
_WORDS: Final = {
    "opening": ("Hello,", "Good morning,", "Dear team,", "Hi, me again:", "I wrote {day} and nobody answered:"),
    "item": ("the blue speaker", "the camera", "my new headphones", "the travel kettle", "the desk lamp", "the tablet"),
    "day": ("Monday", "Tuesday", "last week", "yesterday", "Friday"),
    "ending": ("Thank you,", "Please help soon.", "What now?", "Best wishes from", "I am a customer since {year}."),
    "year": ("2019", "2020", "2021", "2022"),
    "name": ("Ada", "Bram", "Chen", "Dora", "Emil", "Fatou"),
}


def tickets(seed: int = 0) -> Task:
    """Return requests to the desks of a shop, for a Generator that learns from its examples alone.

    Each desk has a few kinds of request, and the kinds share most of their words. So a set of examples is as good as
    the kinds that it covers.

    Args:
        seed: The seed of the requests: 60 to train on, 40 for validation, 80 for the test.

    Example:
        >>> task = tickets(0)
        >>> len(task.train), len(task.validation), len(task.test)
        (60, 40, 80)

    Source: the intent data sets on which few-shot prompts are compared.
    """
    draw = leaves.rng(seed, 0, "tickets")
    texts: dict[str, str] = {}
    while len(texts) < 180:
        desk = list(_TEMPLATES)[len(texts) % 3]
        words = {name: options[int(draw.random() * len(options))] for name, options in _WORDS.items()}
        template = _TEMPLATES[desk][int(draw.random() * len(_TEMPLATES[desk]))]
        text = f"{{opening}} {template}. {{ending}} {{name}}"
        while "{" in text:
            text = text.format_map(words)
        texts.setdefault(text, desk)
    pairs = enumerate(texts.items())
    rows = [Example(f"ticket-{number}", {"text": text}, {"desk": desk}) for number, (text, desk) in pairs]
    draw.shuffle(rows)
    program = Sequential([Input(Request), blocks.Generator(Desk, language_model="embedded/nearest")], name="tickets")
    return Task(program, rows[:60], rows[60:100], rows[100:], reward=ExactMatch(), seed=seed, optimum=1.0)
