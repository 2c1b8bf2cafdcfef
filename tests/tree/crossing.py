"""A program for the tests of boundaries, and what restructures it."""

import synmod as sm
from tests.module.models import Query


@sm.register(package="tests_crossing")
class Part(sm.Module):
    """A prompt, a memory, a setting, a language model, a handle made by the constructor."""

    def __init__(self, text="x", language_model=None, retry=1):
        super().__init__()
        self.prompt = sm.Param(text, name="prompt")
        self.memory = sm.Memory([], schema={"type": "array"})
        self.language_model = language_model
        self.retry = retry
        self.handle = sm.static(object())

    async def call(self, inputs: Query) -> Query:
        self.memory.assign([*self.memory.value, inputs["question"]])
        return Query(question=f"{self.prompt.value} {inputs['question']}")


@sm.register(package="tests_crossing")
class Whole(sm.Module):
    """Two parts, a list with one of them again, and one that will go."""

    def __init__(self, language_model=None):
        super().__init__()
        self.a, self.b = Part("a", language_model), Part("b", language_model)
        self.parts = [self.a]
        self.old = Part("old", language_model)
        self.retry = 1

    async def call(self, inputs: Query) -> Query:
        for part in (self.a, self.b, *self.parts, self.old):
            inputs = await part(inputs)
        return inputs


def restructure(inner):
    """Swap, add, remove, share, close a cycle, set values, labels and statics."""
    inner.a, inner.b = inner.b, inner.a
    inner.new = Part("new")
    del inner.old
    inner.parts.append(inner.new)
    inner.tied = inner.b.prompt
    inner.me = inner
    inner.retry = 3
    inner.a.trainable = False
    inner.a.prompt.assign("changed")
    inner.b.memory.trainable = True
