"""A Generator call on a double that answers at once: everything but the model."""

import asyncio

import synmod as sm
from synmod.testing import FunctionLM
from tests.benchmarks.calls import Question
from tests.benchmarks.measure import alone


class Answer(sm.DataModel):
    """What a model replies."""

    answer: str


def rows(scale=1.0):
    """Measure."""
    lm = FunctionLM(lambda request: '{"answer": "yes"}')
    generator = sm.Generator(Answer, language_model=lm)
    value = sm.JsonDataModel(Question(text="What?"))
    count = max(int(1_000 * scale), 5)

    async def work():
        for _ in range(count):
            await generator(value)

    def run():
        lm.requests.clear()
        asyncio.run(work())

    yield alone("a Generator call on a zero-latency double", run, budget_us=120, per=count)
