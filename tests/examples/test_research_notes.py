"""Field notes become data: all of them are read, checked against the text, merged and saved as JSON lines."""

import importlib.util
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

import synmod as sm
from synmod.testing import FunctionLM

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "research_notes.py"
NOTES = ROOT / "examples" / "data" / "notes"


@pytest.fixture(scope="module")
def example():
    """The example as a module."""
    spec = importlib.util.spec_from_file_location("research_notes", EXAMPLE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_notes_are_read_and_saved(tmp_path):
    """Each note has a row, in order, with a quote and a reading from its text; every topic has a headline."""
    run = subprocess.run([sys.executable, EXAMPLE], capture_output=True, text=True, encoding="utf-8", cwd=tmp_path)
    assert run.returncode == 0, run.stderr
    rows = [json.loads(line) for line in (tmp_path / "research_notes.jsonl").read_text("utf-8").splitlines()]
    assert len(rows) >= 12
    assert [row["file"] for row in rows] == [p.relative_to(NOTES).as_posix() for p in sorted(NOTES.rglob("*.txt"))]
    for row in rows:
        text = " ".join((NOTES / row["file"]).read_text("utf-8").split())
        assert row["error"] is None
        assert row["quote_is_there"]
        assert row["quote"] in text
        assert f"Gauge {row['gauge_cm']} cm" in text
    assert re.findall(r"^(\w+): \d+ notes", run.stdout, re.MULTILINE) == ["water", "birds", "plants", "people"]
    assert f"read: {len(rows)}; filed as by hand:" in run.stdout


def test_a_quote_that_is_made_up_is_marked_and_a_failure_is_a_row(example):
    """Neither affects the other notes, and no prompt of a topic contains either."""

    def answer(request):
        fields, told = request.schema["properties"], str(request.messages)
        if "choice" in fields:
            return {"choice": "birds"}
        if "headline" in fields:
            assert "swan" in told
            assert "dragon" not in told
            return {"headline": "A swan."}
        if "storm" in told:
            return "I would rather not."
        return {"concern": "none", "gauge_cm": 1, "quote": "A dragon." if "owl" in told else "A swan."}

    texts = ("A swan.  Asleep.", "An owl.", "A storm.")
    shelf = example.Shelf(documents=[example.Document(title=text, text=text) for text in texts])
    with sm.use_language_models(FunctionLM(answer)):
        notes, topics = sm.run(example.research, shelf)
    swan, owl, storm = notes["documents"]
    assert (swan["value"]["quote_is_there"], owl["value"]["quote_is_there"]) == (True, False)
    assert (storm["value"], storm["error"]["type"]) == (None, "BadReplyError")
    assert topics.get_json() == {
        "topics": [
            {"topic": "birds", "notes": 2, "most_worrying": "none", "quotes": ["A swan."], "headline": "A swan."}
        ]
    }
