"""A traced call beside the same call without a trace, and a trace as JSON and as a page."""

import asyncio

import synmod as sm
from synmod.lm import LMReply
from synmod.scope import Usage
from tests.benchmarks.calls import Pass, Question, Within
from tests.benchmarks.measure import alone, paired


class Ready:
    """A provider whose reply is there at once."""

    name, version = "ready", 1

    async def send(self, request):
        return LMReply("so", usage=Usage(1, 1, 5, 6))


def _run(times):
    """So many nested calls, untraced."""
    within, member, value = Within(), Pass(), sm.JsonDataModel(Question(text="x"))

    async def work(inputs):
        for _ in range(times):
            await member(inputs)

    return lambda: asyncio.run(within(value, work=work))


def _asked(times):
    """So many model calls inside a call, untraced."""
    within, value = Within(), sm.JsonDataModel(Question(text="x"))
    lm = sm.LanguageModel("ready/one", adapter=Ready())

    async def work(_):
        for _ in range(times):
            await lm("Why?")

    return lambda: asyncio.run(within(value, work=work))


def _traced(plain):
    def run():
        with sm.trace() as t:
            plain()
        return t

    return run


def rows(scale=1.0):
    """Measure."""
    times = max(int(10_000 * scale), 10)
    plain = _run(times)
    traced = _traced(plain)
    yield paired("a traced call, beside one without a trace", traced, plain, budget=8, per=times)
    yield paired("a call after a trace was closed, beside one before", plain, _run(times), budget=1.25, per=times)
    yield alone("a call with a trace open", traced, budget_us=25, per=times)
    few = max(times // 10, 10)
    asked = _asked(few)
    yield paired("a traced model call, beside one without a trace", _traced(asked), asked, budget=2, per=few)
    t = traced()
    yield alone("a trace as JSON, a call", t.to_json, budget_us=60, per=times)
