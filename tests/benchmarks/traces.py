"""A traced call beside the same call without a trace, and a trace as JSON and as a page."""

import asyncio

import synmod as sm
from tests.benchmarks.calls import Pass, Question, Within
from tests.benchmarks.measure import alone, paired


def _run(times):
    """So many nested calls, untraced."""
    within, member, value = Within(), Pass(), sm.JsonDataModel(Question(text="x"))

    async def work(inputs):
        for _ in range(times):
            await member(inputs)

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
    yield paired("a traced call, beside one without a trace", traced, plain, budget=12, per=times)
    yield alone("a call with a trace open", traced, budget_us=25, per=times)
    t = traced()
    yield alone("a trace as JSON, a call", t.to_json, budget_us=60, per=times)
