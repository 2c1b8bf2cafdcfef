"""Prune: useless lines and examples go, needed ones stay, and what is left is not worse on rows it has not seen."""

import json
import random

import pytest

import synmod as sm
from synmod.optimizers import Prune
from synmod.testing import FunctionLM, RuleTask
from synmod.train import Batch, History, Trainer

PATH = "0/instructions"


class Row(sm.DataModel):
    number: int


def is_right(outputs):
    """Reward: the answer is yes."""
    return float(outputs["answer"] == "yes")


def program(instructions, needs, examples=None):
    """A generator that is right on a row if all texts that the row needs are in its prompt."""

    def reply(request):
        prompt = "\n".join(str(message["content"]) for message in request.messages[:-1])
        number = json.loads(request.messages[-1]["content"])["number"]
        return {"answer": "yes" if all(text in prompt for text in needs(number)) else "no"}

    return sm.Generator({"answer": str}, instructions=instructions, examples=examples, language_model=FunctionLM(reply))


async def prune(made, count=40, *, train=4, budget=None, run=None, **options):
    """The History of a run with Prune; validation rows have the numbers from 0."""
    rows = [sm.Example(str(at), Row(number=at), None) for at in range(count)]
    others = [sm.Example(f"t{at}", Row(number=1_000 + at), None) for at in range(train)]
    trainer = Trainer(made, reward=is_right)
    return await trainer.fit([Batch(others)], eval_data=rows, optimizer=Prune(**options), budget=budget, run=run)


async def test_useless_lines_go_and_needed_ones_stay():
    """The blank lines before a line go with it; what remains is as it was."""
    made = program("Be polite.\n\nUse A.\n  - or B\n\n\nThink twice.\n", lambda n: ["Use A.", "  - or B"][n % 2 :][:1])
    history = await prune(made)
    assert made.instructions.value == "Use A.\n  - or B"
    assert history.stopped == "done"
    assert [line["word"] for line in history.lines] == ["accepted", "worse", "worse", "accepted"]
    assert history.best.state == sm.state(made)
    assert history.best.operator == "leave out"


async def test_examples_are_parts():
    """A useless one goes; one that a row needs stays."""
    examples = [{"inputs": {"number": n}, "outputs": {"answer": text}} for n, text in enumerate(("first", "second"))]
    made = program("Answer.", lambda n: ["second"] if n % 3 == 0 else ["Answer."], examples)
    history = await prune(made)
    assert [entry["outputs"]["answer"] for entry in made.examples.value] == ["second"]
    parts = {part.path: part for part in history.worth() if part.worth == 0}
    assert json.loads(parts["examples"].text)["outputs"] == {"answer": "first"}


async def test_a_single_row_holds_a_part_without_a_margin():
    """Of validation or of train; with a margin it goes, if the bound is within it."""
    for number in (7, 1_003):
        for margin, rest in ((0.0, "Use A."), (0.02, "Use A."), (0.1, "")):
            made = program("Use A.", lambda n, number=number: ["Use A."] if n == number else [])
            await prune(made, margin=margin)
            assert made.instructions.value == rest


async def test_a_few_rows_prove_no_margin():
    """That none of ten rows got worse does not show a loss of at most 0.02."""
    made = program("Be polite.", lambda n: [])
    history = await prune(made, 10, margin=0.02)
    assert made.instructions.value == "Be polite."
    assert history.lines[0]["word"] == "no_gain"


async def test_small_losses_do_not_add_up_beyond_the_margin():
    """Each of ten lines is worth 0.02; together they would cost 0.2."""
    made = program("\n".join(f"Line {n}." for n in range(10)), lambda n: [f"Line {n % 10}."] if n < 40 else [])
    history = await prune(made, 200, margin=0.1, train=1)
    assert made.instructions.value.count("Line") in (5, 6, 7)
    assert 0.9 <= history.best.score < history.seed.score


async def test_a_budget_ends_it_where_it_is():
    """What was tried until then is proved; without room for more, validation rows alone are run."""
    made = program("\n".join(f"Remark {n}." for n in range(10)), lambda n: [])
    history = await prune(made, 20, train=20, budget=110)
    assert history.stopped == "budget"
    assert history.spent.rollouts <= 110
    assert made.instructions.value == "\n".join(f"Remark {n}." for n in range(6))
    assert not history.best.scores.get("train")


class Texts(sm.Module):
    """Holds a text that must not be empty, and one that may."""

    def __init__(self):
        super().__init__()
        self.title = self.add_variable("A title", schema={"type": "string", "minLength": 1}, name="title")
        self.note = self.add_variable("A note", schema={"type": "string"}, name="note")

    async def call(self, inputs: Row) -> Row:
        return inputs


async def test_a_value_satisfies_its_schema_and_other_variables_stay():
    """A part that its schema requires is kept, and `only` limits what is tried."""
    for only, note in ((None, ""), ("title", "A note")):
        texts = Texts()
        rows = [sm.Example(str(at), Row(number=at), None) for at in range(4)]
        trainer = Trainer(texts, reward=lambda outputs: 1.0)
        await trainer.fit([Batch(rows)], eval_data=rows, optimizer=Prune(only=only))
        assert (texts.title.value, texts.note.value) == ("A title", note)


async def test_a_margin_is_a_number():
    """Of at least 0."""
    with pytest.raises(sm.TrainerError, match="Prune: margin must be a number of at least 0"):
        Prune(margin=-0.1)


async def test_a_history_has_the_worth_of_each_part(tmp_path):
    """The mean loss without it, with bounds, the most first; a record and a run that is over have the same."""
    made = program("Be polite.\nUse A.\nUse B.", lambda n: ["Use A."] if n % 2 else ["Use B."] if n % 8 == 0 else [])
    history = await prune(made, run=tmp_path / "run")
    worth = history.worth()
    assert [(part.path, part.text) for part in worth] == [
        ("instructions", "Use A."), ("instructions", "Use B."), ("instructions", "Be polite."),
    ]  # fmt: skip
    assert [part.worth for part in worth] == [0.5, 0.125, 0.0]
    assert all(part.low < part.worth < part.high for part in worth)
    assert isinstance(worth[0], sm.Worth)
    assert History.of_record(history.record(), history.seed.state).worth() == worth
    fresh = program("Be polite.\nUse A.\nUse B.", lambda n: [])
    assert (await prune(fresh, run=tmp_path / "run")).worth() == worth


async def test_only_prune_measures_worth():
    """Another History is a LookupError with the line to write."""
    made = program("Be polite.", lambda n: [])
    rows = [sm.Example(str(at), Row(number=at), None) for at in range(4)]
    history = await Trainer(made, reward=is_right).fit(
        [Batch(rows)], eval_data=rows, optimizer="mipro", optimizer_params={"proposals": {"instructions": ["x"]}}
    )
    with pytest.raises(LookupError, match=r"optimizer=sm\.optimizers\.Prune\(\)"):
        history.worth()


async def pruned(seed, rows, margin, noise):
    """The share of the useless lines that went, and the loss on 400 rows that Prune has not seen."""
    task, fresh = (RuleTask(1, 3, count, noise, seed) for count in (rows, 400))
    lines = [f"rule {name}" for name in ("a0", "a1", "a2", "z0", "z1", "z2")] + [f"Remark {n}." for n in range(4)]
    random.Random(seed).shuffle(lines)
    sm.update(task.program, {PATH: "\n".join(lines)})

    async def score():
        return (await sm.evaluate(task.program, fresh.test, reward=task.reward, progress=False)).score

    before = await score()
    trainer = Trainer(task.program, reward=task.reward, seed=seed)
    await trainer.fit([Batch(list(task.train))], eval_data=list(task.validation), optimizer=Prune(margin))
    left = sm.state(task.program)[PATH].value.splitlines()
    return 1 - sum("z" in line or "Remark" in line for line in left) / 7, before - await score()


@pytest.mark.slow
@pytest.mark.parametrize(("rows", "margin", "noise"), [(40, 0.0, 0.0), (40, 0.05, 0.0), (100, 0.1, 0.04)])
async def test_useless_lines_go_and_the_rest_is_not_worse_on_fresh_rows(rows, margin, noise):
    """At least 80 % of them, and a loss within the margin, in 19 of 20 seeds; also where outcomes are noisy."""
    results = [await pruned(seed, rows, margin, noise) for seed in range(20)]
    assert sum(share for share, _ in results) / 20 >= 0.8
    assert sum(loss > margin + 1e-9 for _, loss in results) <= 1
