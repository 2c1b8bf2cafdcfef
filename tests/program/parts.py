"""Data models and modules that the tests of this room share."""

import asyncio

from synmod.data import DataModel
from synmod.module import Module


class Query(DataModel):
    """What a user asks."""

    question: str


class Hint(DataModel):
    """What may help."""

    hint: str


class Answer(DataModel):
    """What comes back."""

    answer: str


class Reply(Module):
    """Answers with the question."""

    async def call(self, inputs: Query) -> Answer:
        return Answer(answer=inputs["question"])


class Shout(Module):
    """Answers in capitals."""

    async def call(self, inputs: Answer) -> Answer:
        return Answer(answer=inputs["answer"].upper())


class Echo(Module):
    """Returns its input."""

    async def call(self, inputs):
        return inputs


class Noted(Module):
    """Has state that depends on the schema of its input."""

    async def build(self, inputs):
        self.notes = self.add_variable({"fields": list(inputs.keys())}, name="notes")

    async def call(self, inputs):
        return inputs


class WaitingBuild(Noted):
    """Its build waits for the loop."""

    async def build(self, inputs):
        await asyncio.sleep(0)
        await super().build(inputs)


class Pair(Module):
    """Two outputs."""

    async def call(self, inputs: Query) -> tuple[Query, Answer]:
        return inputs, Answer(answer=inputs["question"])


class Nothing(Module):
    """Takes a branch that is not there."""

    async def call(self, inputs: Query) -> Answer | None:
        return None


class TakesNone(Module):
    """Answers also where nothing came."""

    async def call(self, inputs: Query | None = None) -> Answer:
        return Answer(answer="none" if inputs is None else inputs["question"])


def query(text="Who?"):
    return Query(question=text)
