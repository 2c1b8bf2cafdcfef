"""Mipro: an exact posterior, draws that keep to budgets and seeds, and an end that is never below the seed."""

import math
import random
from itertools import product

import pytest

import synmod as sm
from synmod.errors import TrainerError
from synmod.optimizers import Mipro
from synmod.optimizers.mipro import LinearScores
from synmod.testing import ChoiceTask, FunctionLM, tickets
from synmod.train import Batch, Trainer

from .doubles import Failing


async def fitted(task, optimizer=None, concurrency=64, **options):
    """Run Mipro on a task; return its History."""
    trainer = Trainer(task.program, reward=task.reward, seed=task.seed, concurrency=concurrency)
    optimizer = optimizer or Mipro(max_examples=0, proposals=task.proposals)
    options = {"budget": 250} | options
    return await trainer.fit([Batch(list(task.train))], eval_data=list(task.validation), optimizer=optimizer, **options)


def solved(matrix, right):
    """Solve a linear system by elimination: written out, to check against."""
    rows = [[*row, value] for row, value in zip(matrix, right, strict=True)]
    for at in range(len(rows)):
        pivot = max(range(at, len(rows)), key=lambda row: abs(rows[row][at]))
        rows[at], rows[pivot] = rows[pivot], rows[at]
        for other in range(len(rows)):
            if other != at:
                share = rows[other][at] / rows[at][at]
                rows[other] = [a - share * b for a, b in zip(rows[other], rows[at], strict=True)]
    return [row[-1] / row[at] for at, row in enumerate(rows)]


SEEN = [((0, 1, 0), 0.3, 8), ((1, 0, 1), -0.2, 8), ((0, 1, 1), 0.1, 3), ((0, 1, 0), 0.25, 5), ((1, 1, 0), 0.0, 1)]


def observed(width=1.0):
    """Return a model of three dimensions, two of them in one module, that has seen something."""
    model = LinearScores(["a", "a", "b"], [2, 2, 2], width)
    for choice, gain, rows in SEEN:
        model.observe(choice, gain * width, rows)
    return model


def features(choice):
    """Return the weights of a choice: one for all, one per choice, one per pair of the module `a`."""
    x, y, z = choice
    found = [1.0] + [0.0] * 10
    for at in (1 + x, 3 + y, 5 + z, 7 + 2 * x + y):
        found[at] = 1.0
    return found


def test_the_posterior_is_that_of_the_normal_equations():
    """Rank-one updates come to what solving for the mean at once does."""
    prior = [0.15] * 7 + [0.08] * 4
    matrix = [[1 / prior[a] ** 2 if a == b else 0.0 for b in range(11)] for a in range(11)]
    right = [0.0] * 11
    for choice, gain, rows in SEEN:
        x = features(choice)
        for a in range(11):
            right[a] += x[a] * gain * rows / 0.25
            for b in range(11):
                matrix[a][b] += x[a] * x[b] * rows / 0.25
    expected = solved(matrix, right)
    model = observed()
    assert model.weights() == pytest.approx(expected)
    for choice in product(range(2), repeat=3):
        gain = sum(w * x for w, x in zip(expected, features(choice), strict=True))
        assert model.gain(model.weights(), choice) == pytest.approx(gain)


def test_draws_have_the_mean_and_the_spread_of_the_posterior():
    """A perturbed solve is a draw: over many of them mean and variance of a gain are those that are known exactly."""
    model, choice, rng = observed(), (0, 1, 0), random.Random(1)
    gains = [model.gain(model.weights(rng), choice) for _ in range(4000)]
    middle = sum(gains) / len(gains)
    deviation = math.sqrt(sum((gain - middle) ** 2 for gain in gains) / len(gains))
    unit = [[float(a == b) for b in range(11)] for a in range(11)]
    prior = [0.15] * 7 + [0.08] * 4
    matrix = [
        [unit[a][b] / prior[a] ** 2 + sum(features(c)[a] * features(c)[b] * n / 0.25 for c, _, n in SEEN)
         for b in range(11)] for a in range(11)
    ]  # fmt: skip
    variance = sum(w * x for w, x in zip(solved(matrix, features(choice)), features(choice), strict=True))
    assert middle == pytest.approx(model.gain(model.weights(), choice), abs=0.01)
    assert deviation == pytest.approx(math.sqrt(variance), rel=0.05)


def test_the_best_choice_is_that_of_enumeration():
    """Coordinate ascent from four starts finds it on small spaces."""
    rng = random.Random(3)
    for _ in range(20):
        model = LinearScores(["a", "a", "b"], [3, 4, 3])
        weights = model.weights(rng)
        every = list(product(range(3), range(4), range(3)))
        best = max(every, key=lambda choice: model.gain(weights, choice))
        assert model.gain(weights, model.best(weights, rng)) >= model.gain(weights, best) - 0.1


def test_the_width_of_the_range_scales_everything():
    """Scores from 0 to 100 are chosen by as scores from 0 to 1 are."""
    wide, narrow = observed(100.0), observed()
    assert wide.weights() == pytest.approx([100 * weight for weight in narrow.weights()])


async def test_it_finds_better_texts_without_a_model():
    """With enough proposals nothing is asked, and no train row runs."""
    task = ChoiceTask(dimensions=4, choices=3, rows=24, seed=2)
    before = (await sm.evaluate(task.program, task.test, reward=task.reward, progress=False)).score
    history = await fitted(task, Mipro(instructions=3, max_examples=0, proposals=task.proposals), budget=300)
    after = (await sm.evaluate(task.program, task.test, reward=task.reward, progress=False)).score
    assert history.spent.lm_calls == 0
    assert after > before
    assert after >= task.optimum - 0.1
    assert not any(candidate.scores.get("train") for candidate in history.candidates)


@pytest.mark.parametrize("budget", [112, 171, 250])
async def test_a_budget_is_never_exceeded(budget):
    """Whatever the step and the end need was looked at before."""
    history = await fitted(ChoiceTask(seed=1), budget=budget)
    assert history.spent.rollouts <= budget
    assert history.stopped == "budget"


@pytest.mark.parametrize("seed", range(4))
async def test_the_end_is_never_below_the_seed(seed):
    """On the validation rows, also where half of all outcomes are chance."""
    task = ChoiceTask(dimensions=2, choices=2, seed=seed, noise=0.5)
    history = await fitted(task, Mipro(2, max_examples=0, proposals=task.proposals, steps=3))
    assert history.best.score >= history.candidates[0].score


async def test_examples_and_instructions_are_chosen_together():
    """Sets from labels, texts from a proposer that sees a hint of its own each time."""

    class Writer(sm.Module):
        async def call(self, inputs):
            hints.append(inputs["hint"])
            return sm.JsonDataModel({"value": f"Route it. {len(hints)}"}, schema={"type": "object"})

    hints, task = [], tickets()
    optimizer = Mipro(instructions=4, sets=3, proposer=Writer(), steps=2)
    history = await fitted(task, optimizer, budget=400)
    sizes = {path: len(values) for path, values in optimizer.choices.value.items()}
    assert sorted(sizes.values()) == [3, 4]
    assert len(hints) == len(set(hints)) == 3
    assert hints[0] == ""
    assert history.best.score >= history.candidates[0].score


async def test_what_it_cannot_choose_from_is_an_error():
    """Nothing to choose, a path that is none, numbers below 1."""
    task = ChoiceTask(2, 2)
    with pytest.raises(TrainerError, match="nothing to choose from"):
        await fitted(task, Mipro(instructions=1, max_examples=0))
    with pytest.raises(TrainerError, match="Did you mean '0/style'"):
        await fitted(task, Mipro(max_examples=0, proposals={"0/stile": ["choice 1"]}))
    with pytest.raises(TrainerError, match="width must be .*, got 0"):
        Mipro(width=0)
    with pytest.raises(TrainerError, match="give a list of texts"):
        Mipro(proposals={"0/style": "choice 1"})
    with pytest.raises(TrainerError, match="gave no text: ModelError: no answer"):
        await fitted(task, Mipro(max_examples=0, proposer=Failing()))


@pytest.mark.slow
async def test_it_ends_near_the_optimum():
    """Six dimensions of six choices, 650 rollouts: 0.05 below the optimum at most, in the mean of eight seeds."""
    missed = []
    for seed in range(8):
        task = ChoiceTask(seed=seed)
        await fitted(task, budget=650)
        found = await sm.evaluate(task.program, task.test, reward=task.reward, progress=False)
        missed.append(task.optimum - found.score)
    assert sum(missed) / len(missed) <= 0.05


class Query(sm.DataModel):
    """A question."""

    query: str


class Answer(sm.DataModel):
    """An answer."""

    answer: str


ROWS = [(Query(query=f"q{number}"), Answer(answer="good")) for number in range(12)]


def test_with_proposals_no_model_is_asked():
    """However few they are, and for no other instruction; more are asked for where `instructions` is given."""
    lm = FunctionLM(lambda request: {"answer": "good" if "Think first" in str(request.messages[0]) else "bad"})
    program = sm.Sequential(
        [sm.Input(Query), sm.Generator(Answer, language_model=lm), sm.Generator(Answer, language_model=lm)]
    )
    program.compile(
        reward="exact_match", optimizer=Mipro(max_examples=0, proposals={"1/instructions": ["Think first."]})
    )
    history = sm.run(program.fit(ROWS, budget=100, verbose=0))
    assert history.best.score == 1.0
    assert program.get_module("1").instructions.value == "Think first."
    program.compile(
        reward="exact_match", optimizer=Mipro(6, max_examples=0, proposals={"1/instructions": ["Be brief."]})
    )
    with pytest.raises(sm.EvaluationError, match="the proposer cannot be asked: .*no language model"):
        sm.run(program.fit(ROWS, budget=100, verbose=0))


class Toned(sm.Module):
    """Answers by the value of a Variable."""

    def __init__(self, schema, value):
        super().__init__()
        self.tone = sm.Param(value, schema=schema)

    async def call(self, inputs: Query) -> Answer:
        return Answer(answer="good" if self.tone.value in ("right", 7) else "bad")


@pytest.mark.parametrize(
    "schema", [{"enum": ["wrong", "off", "right"]}, {"type": "string", "enum": ["wrong", "right"]}]
)
def test_a_variable_that_lists_its_values_is_chosen_from_them(schema):
    """No model is asked, and none is needed."""
    program = sm.Sequential([sm.Input(Query), Toned(schema, "wrong")])
    program.compile(reward="exact_match", optimizer=Mipro())
    assert sm.run(program.fit(ROWS, budget=100, verbose=0)).best.score == 1.0
    assert program.get_module("0").tone.value == "right"


def test_proposals_of_other_values_satisfy_the_schema():
    """Any JSON may be proposed; a value that the Variable cannot have is named before anything runs."""
    program = sm.Sequential([sm.Input(Query), Toned({"type": "integer"}, 1)])
    for values, message in ((["7"], r"proposals\['0/tone'\] has \"7\"; its schema wants integer"), ([3, 7], None)):
        program.compile(reward="exact_match", optimizer=Mipro(proposals={"0/tone": values}))
        if message:
            with pytest.raises(sm.TrainerError, match=message):
                sm.run(program.fit(ROWS, budget=100, verbose=0))
        else:
            assert sm.run(program.fit(ROWS, budget=100, verbose=0)).best.score == 1.0
