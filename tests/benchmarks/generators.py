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
    yield _nearest(max(int(200 * scale), 5))
    yield _missing_key(max(int(200 * scale), 5))


def _nearest(count):
    """A call of `embedded/nearest` with 64 short examples."""
    examples = [
        {"inputs": {"text": f"request {index} about the {word}"}, "outputs": {"answer": word}}
        for index, word in enumerate(["lamp", "bill"] * 32)
    ]
    generator = sm.Generator(Answer, examples=examples, language_model="embedded/nearest")
    value = sm.JsonDataModel(Question(text="the lamp is late"))

    async def work():
        for _ in range(count):
            await generator(value)

    return alone("embedded/nearest with 64 short examples", lambda: asyncio.run(work()), budget_us=1_000, per=count)


def _missing_key(count):
    """A call that has no key to send."""
    lm = sm.LanguageModel("xai/no-key-here")

    async def work():
        for _ in range(count):
            try:
                await lm("?")
            except sm.AuthError:
                continue

    return alone("a call without a key, refused", lambda: asyncio.run(work()), budget_us=50_000, per=count)
