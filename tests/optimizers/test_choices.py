"""Choices that are trained: the best combination, what it costs, and the frontier of quality, dollars and seconds."""

import random

import pytest

import synmod as sm
from synmod.errors import ArgumentError, TrainerError
from synmod.optimizers import GridSearch, Mipro
from synmod.testing import FunctionLM
from synmod.train import Batch, Trainer

MODELS = {"small": (0.55, 1.0), "middle": (0.75, 4.0), "waste": (0.6, 9.0), "large": (0.95, 20.0)}
"""Name of a model -> how often it is right, and the USD for a million of its tokens; "waste" is dominated."""
TEXTS = ["Answer.", "Answer with care.", "Guess."]
WORTH = {"Answer.": 0.0, "Answer with care.": 0.05, "Guess.": -0.3}
HEAT = {0.0: 0.0, 0.5: -0.05, 1.0: -0.3}


class Row(sm.DataModel):
    number: str


def double(name, seed):
    """A model that is right on a known share of the rows, by its instructions and its temperature."""
    share, usd = MODELS[name]

    def reply(request):
        text, number = request.messages[0]["content"], request.messages[-1]["content"]
        right = share + WORTH[text.partition("\n")[0]] + HEAT[request.params["temperature"]]
        draw = random.Random(f"{seed}/{name}/{number}/{request.params}/{text}").random()
        answer = "yes" if draw < right else "no"
        return sm.LMReply(f'{{"answer": "{answer}"}}', usage=sm.Usage(prompt_tokens=1_000, completion_tokens=0))

    return FunctionLM(reply, name=name, price=(usd, usd))


def program(seed=0, text=TEXTS[2], heat=2):
    """A generator whose model and temperature are choices; it begins with the worst."""
    return sm.Generator(
        {"answer": str},
        instructions=text,
        language_model=sm.Choice({name: double(name, seed) for name in MODELS}),
        temperature=sm.Choice(list(HEAT), index=heat),
    )


def is_right(outputs):
    """Reward: the answer is yes."""
    return float(outputs["answer"] == "yes")


def rows(count):
    return [sm.Example(str(at), Row(number=str(at)), None) for at in range(count)]


async def fit(optimizer, seed, *, reward=is_right, count=40, budget=2_000, **options):
    """The program after training, and the History."""
    trained = program(seed, **options)
    trainer = Trainer(trained, reward=reward, seed=seed)
    history = await trainer.fit(
        [Batch(rows(4))], eval_data=rows(count), optimizer=optimizer, budget=sm.Budget(rollouts=budget)
    )
    return trained, history


@pytest.mark.slow
async def test_mipro_finds_the_best_combination():
    """Of models, instructions and temperatures, in 18 of 20 seeds, within the budget."""
    hits = 0
    for seed in range(20):
        optimizer = Mipro(max_examples=0, proposals={"instructions": TEXTS[:2]})
        trained, history = await fit(optimizer, seed, count=100, budget=1_000)
        best = trained.language_model.value, trained.instructions.value, trained.temperature.value
        hits += best == ("large", "Answer with care.", 0.0)
        assert history.spent.rollouts <= 1_000
    assert hits >= 18


async def test_a_grid_is_searched_as_far_as_the_budget_goes():
    """All combinations are candidates; with less budget a part of them, the same with the same seed."""
    trained, history = await fit(GridSearch(), 0)
    assert len(history.candidates) == 12
    assert trained.language_model.value == "large"
    assert trained.temperature.value < 1.0
    parts = [(await fit(GridSearch(), seed, budget=40 * 5))[1] for seed in (1, 1, 2)]
    values = [[candidate.state.to_json() for candidate in part.candidates] for part in parts]
    assert values[0] == values[1] != values[2]
    assert len(values[0]) <= 6
    assert parts[0].spent.rollouts <= 200


async def test_a_grid_needs_options():
    """A program without a choice is refused."""
    lm = FunctionLM(lambda request: {"answer": "yes"})
    trainer = Trainer(sm.Generator({"answer": str}, language_model=lm), reward=is_right)
    with pytest.raises(TrainerError, match="nothing to optimise"):
        await trainer.fit([Batch(rows(4))], eval_data=rows(4), optimizer=GridSearch())


@pytest.mark.slow
async def test_the_frontier_is_the_true_one():
    """Of score and cost: what nothing dominates, in 18 of 20 seeds; 95 % intervals hold the true shares."""
    hits, covered = 0, []
    for seed in range(20):
        _, history = await fit(GridSearch(only=["language_model"]), seed, count=200, text=TEXTS[0], heat=0)
        points = history.frontier("score", "cost_usd")
        names = [point.candidate.state["language_model"].value for point in points]
        hits += names == ["large", "middle", "small"]
        for name, point in zip(names, points, strict=True):
            low, high = point.intervals["score"]
            assert low <= point.means["score"] <= high
            covered.append(low <= MODELS[name][0] <= high)
        assert history.pick(cost_usd=0.0045).state["language_model"].value == "middle"
        with pytest.raises(LookupError, match="cost_usd <= 0"):
            history.pick(cost_usd=0.0)
    assert hits >= 18
    assert sum(covered) >= 0.9 * len(covered)


async def test_a_frontier_takes_known_names_alone():
    """A misspelt objective is named; without a price a cost is not known."""
    _, history = await fit(GridSearch(only=["language_model"]), 0, count=4)
    with pytest.raises(ArgumentError, match="Did you mean 'cost_usd'"):
        history.frontier("score", "cost_usb")
    with pytest.raises(sm.ArgumentError, match=r"pick: cost_usd must be a number"):
        history.pick(cost_usd="cheap")
    assert history.pick().score == max(point.means["score"] for point in history.frontier())
    lm = FunctionLM(lambda request: {"answer": "yes"})
    trainer = Trainer(sm.Generator({"answer": str}, language_model=lm, seed=sm.Choice([1, 2])), reward=is_right)
    history = await trainer.fit([Batch(rows(4))], eval_data=rows(4), optimizer=GridSearch())
    with pytest.raises(LookupError, match="price="):
        history.frontier("score", "cost_usd")


async def test_a_reward_may_take_cost_and_time():
    """Those of the program's calls, so that the cheapest of the good wins."""

    def reward(outputs, usage, elapsed_s):
        assert elapsed_s >= 0
        return max(0.0, is_right(outputs) - 40 * usage.cost_usd)

    trained, history = await fit(GridSearch(only=["language_model"]), 0, reward=reward, count=100)
    assert trained.language_model.value == "middle"
    assert "elapsed_s" not in str(history.to_json())
    evaluation = await sm.evaluate(trained, rows(3), metrics=[cost])
    assert evaluation.metrics["cost"] == pytest.approx(0.004)


def cost(usage):
    """Metric: what a row costs."""
    return usage.cost_usd
