"""Programs to look at: functional, in a row, hand-written, shared, in circles, deep and wide."""

import synmod as sm
from synmod.testing import SchemaLM


class Query(sm.DataModel):
    """What is asked."""

    query: str


class Answer(sm.DataModel):
    """What is answered."""

    answer: str


class Note(sm.DataModel):
    """What is noted."""

    note: str


class Leaf(sm.Module):
    """Holds a trainable and a frozen Variable."""

    def __init__(self):
        super().__init__()
        self.prompt = sm.Param("Be brief.")
        self.seen = sm.Memory([])

    async def call(self, inputs: Query) -> Answer:
        return Answer(answer=inputs["query"])


class Agent(sm.Module):
    """Hand-written: notes, then answers what was noted."""

    def __init__(self):
        super().__init__()
        self.take = sm.Generator(Note, language_model=SchemaLM(1))
        self.write = sm.Generator(Answer, language_model=SchemaLM(2))

    async def call(self, inputs: Query) -> Answer:
        note = await self.take(inputs)
        return await self.write(Query(query=note["note"]))


class Tied(sm.Module):
    """Holds what somebody else may hold, too."""

    def __init__(self, held):
        super().__init__()
        self.held = held


class Link(sm.Module):
    """One link of a chain."""

    def __init__(self, child=None):
        super().__init__()
        self.p = sm.Param("x")
        if child is not None:
            self.child = child


class Wide(sm.Module):
    """Holds many."""

    def __init__(self, count):
        super().__init__()
        self.parts = [Link() for _ in range(count)]


def chain(length):
    """Links in one another."""
    link = None
    for _ in range(length):
        link = Link(link)
    return link


def generator(model, **options):
    """A generator on a double."""
    return sm.Generator(model, language_model=SchemaLM(3), **options)


def diamond():
    """Two branches that meet in an operator and a last module."""

    @sm.compose
    async def diamond(query: Query):
        first = await generator(Answer, name="first")(query)
        second = await generator(Note, name="second")(query)
        return await generator(Answer, name="last")(first + second)

    return diamond


def run(module, query="Who?"):
    """Run once, recorded."""
    with sm.trace() as trace:
        sm.run(module, Query(query=query))
    return trace
