"""A program on `embedded/nearest` gets better by reflection on `embedded/rules`, without a key or a network."""

from dataclasses import replace

import pytest

import synmod as sm
from synmod.testing import tickets
from synmod.train import Batch, Trainer


@pytest.mark.parametrize("is_bare", [False, True])
@pytest.mark.parametrize("optimizer", ["gepa", "reflect"])
async def test_rules_make_a_program_better(optimizer, is_bare):
    """From little more than chance to most, on rows that nothing was chosen by; a bare label does as well."""
    task = tickets()
    train = [replace(row, target=row.target["desk"]) for row in task.train] if is_bare else task.train

    async def accuracy():
        return (await sm.evaluate(task.program, task.test, reward=task.reward, progress=False)).score

    bare = await accuracy()
    history = await Trainer(task.program, reward=task.reward).fit(
        [Batch(list(train[start : start + 8])) for start in range(0, len(train), 8)],
        eval_data=task.validation,
        optimizer=optimizer,
        optimizer_params={"language_model": "embedded/rules"},
        budget=600,
    )
    assert bare < 0.4
    assert await accuracy() > bare + 0.3
    assert history.spent.rollouts <= 600
