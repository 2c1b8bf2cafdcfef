"""The Trainer by hand: bind, forward, backward, update."""

import synmod as sm
from synmod.optimizers import Reflect
from synmod.train import Batch, Optimizer, Trainer


class Ticket(sm.DataModel):
    """A ticket."""

    text: str


class Team(sm.DataModel):
    """A team."""

    team: str


class Note(Optimizer):
    """Keeps the paths that it was told about."""

    kinds = ("instruction",)

    async def update(self, state, feedback, bench):
        self.told = sorted(feedback)
        return state


def test_targets_may_be_data_models():
    """A target's schema is bound as a data model; a label that nobody asks for is looked up in it."""

    async def main():
        trainer = Trainer(sm.Generator(Team), reward="exact_match", label_names=["team"])
        await trainer.bind(Ticket, Team)
        return trainer.label_schemas

    assert [name for name, _ in sm.run(main)] == ["label"]


def test_an_optimizer_is_told_of_its_own_targets_alone():
    """Feedback is routed to every param; an optimizer of instructions does not get that of examples."""

    async def main():
        trainer = Trainer(sm.Generator(Team, language_model="embedded/nearest"), reward="exact_match")
        await trainer.bind(Ticket)
        await trainer.init_params()
        trainer.init_optimizer(Note())
        await trainer.forward_backward(Batch([Ticket(text="Hello")], [{"team": "billing"}]))
        await trainer.update()
        return sorted(trainer.feedback), trainer.optimizer.told

    assert sm.run(main) == (["examples", "instructions"], ["instructions"])


def test_reflect_lives_on_critiques_without_a_reward():
    """`accept="always"` takes feedback of `out_grads`, and changes the instructions alone."""

    async def main():
        trainer = Trainer(sm.Generator(Team, language_model="embedded/nearest"))
        await trainer.bind(Ticket)
        await trainer.init_params()
        trainer.init_optimizer(Reflect(language_model="embedded/rules", accept="always"))
        await trainer.forward(Batch([Ticket(text="My invoice is wrong")]))
        await trainer.backward([sm.Feedback(0.0, "not for them", target={"team": "billing"})])
        await trainer.update()
        return trainer.program.instructions.value

    assert "billing: invoice" in sm.run(main)
