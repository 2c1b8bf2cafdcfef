"""Data models and modules that the tests of this room share."""

from synmod.data import DataModel
from synmod.module import Module


class Query(DataModel):
    """What a user asks."""

    question: str


class Answer(DataModel):
    """What comes back."""

    answer: str


class Notes(DataModel):
    """Something to remember."""

    lines: list[str] = []


class Echo(Module):
    """Returns its input."""

    async def call(self, inputs):
        return inputs


class Reply(Module):
    """Answers with the question."""

    async def call(self, inputs: Query) -> Answer:
        return Answer(answer=inputs["question"])


class Built(Module):
    """Has state that depends on the schema of its input."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.builds = []

    async def build(self, inputs):
        self.builds = [*self.builds, inputs]
        self.notes = self.add_variable({"fields": list(inputs.keys())}, name="notes")

    async def call(self, inputs):
        return inputs
