"""Reading a cache: a row of a file, parsed and frozen, beside the bare row; memory; a hit."""

import asyncio
import json
import sqlite3
import tempfile
from pathlib import Path

import synmod as sm
from synmod.cache import key_of
from tests.benchmarks.calls import Question
from tests.benchmarks.measure import alone, paired

SELECT = "SELECT body FROM entry WHERE key = ?"


def _found(cache, keys):
    """Find each entry, as a program would: without opening a loop for each."""

    async def work():
        for key in keys:
            await cache.find(key)

    return lambda: asyncio.run(work())


def rows(scale=1.0):
    """Measure."""
    keys = [key_of(number) for number in range(max(int(2_000 * scale), 5))]
    with tempfile.TemporaryDirectory() as folder:
        yield from _rows(Path(folder) / "cache.db", keys)


def _rows(path, keys):
    """Measure with a file."""
    caches = sm.Cache(path), sm.Cache()

    async def fill(cache):
        await asyncio.gather(*(cache.keep(key, {"answer": "yes", "thinking": "x" * 200}) for key in keys))

    for cache in caches:
        asyncio.run(fill(cache))
    reader = sqlite3.connect(path, isolation_level=None)

    def floor():
        for key in keys:
            json.loads(reader.execute(SELECT, (key,)).fetchone()[0])

    yield paired("a read of a cache file", _found(caches[0], keys), floor, budget=4, per=len(keys))
    reader.close()
    caches[0].close()
    yield alone("a read of a cache in memory", _found(caches[1], keys), budget_us=20, per=len(keys))
    yield _hit(len(keys) // 5 or 1)


def _hit(count):
    """A hit of a Cached Generator."""
    cached = sm.Cached(sm.Generator(Question, language_model="embedded/nearest"))
    value = sm.JsonDataModel(Question(text="What?"))

    async def work():
        for _ in range(count):
            await cached(value)

    return alone("a hit of Cached around a Generator", lambda: asyncio.run(work()), budget_us=1_000, per=count)
