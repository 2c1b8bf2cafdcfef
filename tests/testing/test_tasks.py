"""The tasks that optimizers are measured by: the same for one seed, and their optimum is what the best values score."""

from itertools import product

import pytest

import synmod as sm
from synmod.testing import ChoiceTask


async def scored(task, values, rows=None):
    """Return the mean score of values by path."""
    with sm.using(task.program, sm.state(task.program).replace(values)):
        evaluation = await sm.evaluate(task.program, rows or task.test, reward=task.reward, progress=False)
    return evaluation.score


@pytest.mark.parametrize("dimensions", [1, 2, 3])
async def test_the_best_choice_scores_the_optimum(dimensions):
    """No combination is better, and one is as good."""
    task = ChoiceTask(dimensions, 3, rows=20, seed=4)
    assert len(task.proposals) == dimensions
    values = [["choice 0", *texts] for texts in task.proposals.values()]
    scores = [await scored(task, dict(zip(task.proposals, each, strict=True))) for each in product(*values)]
    assert max(scores) == task.optimum >= 0.95


async def test_choices_of_one_module_interact():
    """Which text is better depends on the other one of its module."""

    task = ChoiceTask(2, 3, interaction=2.0, rows=400, seed=8)

    async def at(first, second):
        return await scored(task, {"0/instructions": f"choice {first}", "0/style": f"choice {second}"})

    gains = [await at(1, second) - await at(0, second) for second in range(3)]
    assert min(gains) < -0.01 < 0.01 < max(gains)


async def test_a_task_depends_on_its_seed_alone():
    """Equal rows and scores for one seed, others for another; the splits have rows of their own."""
    one, two, other = ChoiceTask(seed=1), ChoiceTask(seed=1), ChoiceTask(seed=2)
    assert one.train == two.train != other.train
    levels = [row.inputs["difficulty"] for split in (one.train, one.validation, one.test) for row in split]
    assert len(set(levels)) == 120
    assert await scored(one, {}) == await scored(two, {})


async def test_noise_flips_a_share_of_the_outcomes():
    """By a hash of choices and row: the same each time."""
    clean, noisy = ChoiceTask(rows=200), ChoiceTask(rows=200, noise=0.1)
    best, seen = await scored(clean, {}), await scored(noisy, {})
    assert seen == await scored(noisy, {}) != best
    assert seen == pytest.approx(0.9 * best + 0.1 * (1 - best), abs=0.06)
