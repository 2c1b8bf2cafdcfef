"""Reflect by hand: on critiques alone, and with proof."""

import pytest

import synmod as sm
from synmod.errors import TrainerError
from synmod.optimizers import Reflect
from synmod.testing.tasks import Case, RuleProposer, RuleTask
from synmod.train import Batch, FeedbackItem, Trainer, records_of
from tests.optimizers.doubles import Scripted


async def bound(task, optimizer, **options):
    """Return a trainer that is ready to step."""
    trainer = Trainer(task.program, **options)
    await trainer.bind(Case)
    await trainer.init_params()
    trainer.init_optimizer(optimizer)
    return trainer


async def test_critiques_alone_change_a_program():
    """Without a reward, by `accept="always"` and `out_grads`: no proof, no rollout."""
    task = RuleTask(stages=1, rows=4)
    trainer = await bound(task, Reflect(proposer=RuleProposer(), accept="always"))
    await trainer.forward(Batch(list(task.train)), is_train=True)
    critiques = [sm.Feedback(None, critique="missing: rule a0") for _ in task.train]
    await trainer.backward(critiques)
    await trainer.update()
    assert "rule a" in trainer.get_params()[0].to_json()["0/instructions"]


async def test_rows_that_are_right_blame_nothing():
    """A judge may praise: a critique beside the highest score, or none at all, changes nothing."""
    task = RuleTask(stages=1, rows=4)
    proposer = Scripted([])
    trainer = await bound(task, Reflect(proposer=proposer, accept="always"), reward=task.reward)
    before = trainer.get_params()[0].to_json()
    await trainer.forward(Batch(list(task.train)), is_train=True)
    await trainer.backward([sm.Feedback(1.0, critique="Well done.") for _ in task.train])
    await trainer.update()
    assert trainer.get_params()[0].to_json() == before
    assert not proposer.hints


async def test_other_words_are_refused():
    """Either `gain` or `always`."""
    with pytest.raises(TrainerError, match="accept must be 'gain' or 'always', got 'maybe'"):
        Reflect(accept="maybe")


def test_a_proposer_reads_a_word_in_place_of_an_image():
    """The records have room for text alone."""
    photo = sm.Image.from_bytes(b"x" * 50_000, "image/png").get_json()
    feedback = sm.Feedback(0.0, critique="It is a cat.", target={"shot": [photo]})
    item = FeedbackItem(row=0, path="", inputs={"photo": photo}, outputs={"label": "dog"}, feedback=feedback)
    (record,) = records_of([item], 1.0)
    assert (record["inputs"], record["expected"]) == ({"photo": "(image/png)"}, {"shot": ["(image/png)"]})
