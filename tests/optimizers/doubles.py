"""What the tests of optimizers share: a short run on a `RuleTask`, and proposers and rewards that misbehave."""

from hashlib import sha256

import synmod as sm
from synmod.lm import current_sample
from synmod.testing.tasks import RuleTask
from synmod.train import Batch, Trainer


def answer(value):
    """What a proposer returns."""
    return sm.JsonDataModel({"value": value}, schema={"type": "object", "properties": {"value": {}}})


class Numbered(sm.Module):
    """Writes another text each time."""

    async def call(self, inputs):
        return answer(f"rule {current_sample()}")


class Failing(sm.Module):
    """A model that is out of order."""

    async def call(self, inputs):
        raise sm.ModelError("no answer")


class Scripted(sm.Module):
    """Gives values in order, and keeps the hints that it got."""

    def __init__(self, values):
        super().__init__()
        self._values, self.hints = iter(values), []

    async def call(self, inputs):
        self.hints.append(inputs["hint"])
        return answer(next(self._values))


class Constant(sm.rewards.Reward):
    """All rows are equally bad."""

    needs_target = False

    async def call(self, y_pred):
        return 0.5


class Chance(sm.rewards.Reward):
    """Right or wrong by a hash of the row and the rules that were read."""

    needs_target = False

    async def call(self, y_pred):
        return float(sha256(f"{y_pred['read']}{y_pred['row']}".encode()).digest()[0] < 128)


async def run(optimizer, task=None, *, reward=None, batch=40, budget=400, seed=0, **options):
    """Train a task; return the history and the trainer."""
    task = task or RuleTask(seed=seed)
    trainer = Trainer(task.program, reward=reward or task.reward, seed=seed, **options)
    rows = list(task.train)
    train = [Batch(rows[at : at + batch]) for at in range(0, len(rows), batch)]
    history = await trainer.fit(train, eval_data=[Batch(list(task.validation))], optimizer=optimizer, budget=budget)
    return history, trainer
