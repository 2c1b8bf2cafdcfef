"""Modules for the tests of this room."""

import synmod as sm
from tests.module.models import Query


@sm.register(package="tests_tree")
class Leaf(sm.Module):
    """Has a prompt and a plain attribute."""

    def __init__(self, text="x", limit=1):
        super().__init__()
        self.prompt = sm.Param(text)
        self.limit = limit

    async def call(self, inputs: Query) -> Query:
        return inputs

    def read(self, by=""):
        """Read the prompt."""
        return self.prompt.value + by

    async def write(self, text):
        """Write the prompt."""
        self.prompt.assign(text)
        return len(text)

    async def stream(self, *texts):
        """Write one text after the other."""
        for text in texts:
            self.prompt.assign(text)
            yield text


@sm.register(package="tests_tree")
class Wrapped(sm.Module):
    """Holds another one."""

    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    async def call(self, inputs: Query) -> Query:
        return await self.inner(inputs)


@sm.register(package="tests_tree")
class Tree(sm.Module):
    """Holds two, one of them twice."""

    def __init__(self):
        super().__init__()
        self.note = sm.Memory("note", tag="log")
        self.more = {"again": Leaf("a"), "own": sm.Stat(0)}
        self.a, self.b = self.more["again"], Leaf("b", limit=2)

    async def call(self, inputs: Query) -> Query:
        return await self.a(inputs)
