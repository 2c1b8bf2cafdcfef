"""Saving and loading a thousand Generators, beside json.dump with an fsync and the least that a load must do."""

import json
import os
import tempfile
from pathlib import Path

import synmod as sm
from tests.benchmarks.measure import paired, wall


class Answer(sm.DataModel):
    """What a model replies."""

    answer: str
    score: float


def _program(count):
    return sm.Sequential([sm.Generator(Answer, instructions=f"Rule {index}.") for index in range(count)])


def _dump(document, path):
    """The floor of a save: write the document as any program would, and sync it."""
    with path.open("w", encoding="utf-8") as file:
        json.dump(document, file, indent=2)
        file.flush()
        os.fsync(file.fileno())


def _no_doubles(pairs):
    """Refuse a key that stands twice, as any careful reader does."""
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key stands twice")
    return found


def _floor_load(path, count):
    """The floor of a load: read, parse with a hook for doubles, construct."""
    json.loads(path.read_text(encoding="utf-8"), object_pairs_hook=_no_doubles)
    return [sm.Generator(Answer, instructions=f"Rule {index}.") for index in range(count)]


def rows(scale=1.0):
    """Measure."""
    count = max(int(1_000 * scale), 5)
    program = _program(count)
    with tempfile.TemporaryDirectory() as folder:
        ours, floor = Path(folder, "ours.json"), Path(folder, "floor.json")
        document = json.loads(sm.dumps(program))
        yield paired(
            "saving 1,000 Generators",
            lambda: sm.save(program, ours),
            lambda: _dump(document, floor),
            budget=2,
            rounds=9,
            clock=wall,  # the fsync waits
        )
        yield paired("loading 1,000 Generators", lambda: sm.load(ours), lambda: _floor_load(ours, count), budget=3)
