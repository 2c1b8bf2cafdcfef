"""Calls in a durable block: what recording adds to a call and its commit, and what a call costs that is found."""

import asyncio
import itertools
import tempfile
from pathlib import Path

import synmod as sm
from synmod.cache import key_of
from synmod.testing import FunctionLM
from tests.benchmarks.calls import Question
from tests.benchmarks.measure import alone, paired

REPLY = {"text": "x" * 200}
ENTRY = {"path": "", "kind": "model", "name": "testing/function", "when": 1.0, "value": {"text": str(REPLY)}}


def rows(scale=1.0):
    """Measure."""
    count = max(int(1_000 * scale), 5)
    writer = sm.Generator(Question, language_model=FunctionLM(lambda _: REPLY))
    values = [sm.JsonDataModel(Question(text=f"What is {number}?")) for number in range(count)]
    with tempfile.TemporaryDirectory() as name:
        folders = (Path(name) / str(number) for number in itertools.count())

        async def call_all():
            for value in values:
                await writer(value)

        async def recorded(folder):
            async with sm.durable(folder):
                await call_all()

        async def committed(folder):
            await call_all()
            cache = sm.Cache(folder / "journal.db", max_bytes=None, shared=False)
            for number in range(count):
                await cache.keep(key_of(number), ENTRY)
            await cache.aclose()

        yield paired(
            "a recorded call, beside the call and its commit",
            lambda: asyncio.run(recorded(next(folders))),
            lambda: asyncio.run(committed(next(folders))),
            budget=150,
            unit="µs",
            per=count,
        )
        full = next(folders)
        asyncio.run(recorded(full))
        yield alone("a call that is found", lambda: asyncio.run(recorded(full)), budget_us=250, per=count)
