"""A program on `embedded/nearest` gets better by reflection on `embedded/rules`, without a key or a network."""

import pytest

import synmod.optimizers  # noqa: F401  (registers them)
from tests.optimizers.tickets import accuracy, batches, trainer


@pytest.mark.parametrize("optimizer", ["gepa", "reflect"])
async def test_rules_make_a_program_better(optimizer):
    """From little more than chance to most, on rows that nothing was chosen by."""
    training = trainer()
    bare = await accuracy(training.program)
    history = await training.fit(
        batches(40, 8),
        eval_data=batches(30, 30, seed=1),
        optimizer=optimizer,
        optimizer_params={"language_model": "embedded/rules"},
        budget=600,
    )
    trained = await accuracy(training.program)
    assert bare < 0.4
    assert trained > 0.75
    assert history.spent.rollouts <= 600
