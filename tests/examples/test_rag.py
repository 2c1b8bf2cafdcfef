"""Questions about a folder: answered from its passages, piece by piece, with quotations that are there."""

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest

import synmod as sm
from synmod.testing import FunctionLM

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "rag.py"
NOTES = ROOT / "examples" / "data" / "notes"


@pytest.fixture(scope="module")
def example():
    """The example as a module."""
    spec = importlib.util.spec_from_file_location("rag", EXAMPLE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.slow
def test_it_answers_from_the_folder(tmp_path):
    """Each answer quotes a note word for word, or says that there is none; a second run adds nothing."""
    for new in ("32 of them new", "0 of them new"):
        run = subprocess.run([sys.executable, EXAMPLE], capture_output=True, text=True, encoding="utf-8", cwd=tmp_path)
        assert run.returncode == 0, run.stderr
        assert new in run.stdout
        pond, fish, opera = run.stdout.strip().split("\n\n")[1:]
        assert "the water of the pond is clear down to the gravel" in pond
        assert "[water/2024-07-13-low-water.txt#2] Small fish stand in the deep pool" in fish
        assert opera.splitlines()[1:] == ["  The notes do not say."]


async def test_what_is_invented_is_left_out(example, capsys):
    """A quote of another passage, of none, of other words, or empty is counted; a true one is kept."""
    words, meaning = sm.KeywordIndex(), sm.VectorIndex("embedded/hash")
    for index in (words, meaning):
        await index.add([sm.Passage(id="a", text="The pond is deep."), sm.Passage(id="b", text="The sky\n is blue.")])
    given = [("b", "sky is BLUE"), ("a", "sky is blue"), ("c", "The pond"), ("a", "shallow"), ("a", " ")]
    reply = {"answer": "Blue.", "quotes": [{"passage": passage, "words": text} for passage, text in given]}
    program = example.assistant(words, meaning, FunctionLM(lambda request: json.dumps(reply)))
    result = await program(example.Question(question="How blue is the sky?"))
    assert (result["quotes"], result["invented"]) == ([{"passage": "b", "words": "sky is BLUE"}], 4)
    await example.ask(program, "How blue is the sky?")
    assert "  Blue.\n  [b] sky is BLUE\n  (4 quotes are not in the notes" in capsys.readouterr().out


async def test_the_answer_appears_piece_by_piece(example):
    """The program is not done when the first words are there."""
    words, meaning = sm.KeywordIndex(), sm.VectorIndex("embedded/hash")
    passages = list(example.passages_of(NOTES))
    await words.add(passages)
    await meaning.add(passages)
    model = sm.LanguageModel("own/quoting", adapter=example.Quoting())
    program = example.assistant(words, meaning, model)
    async with sm.stream(program, example.Question(question="How clear is the water of the pond?")) as s:
        pieces = [chunk async for chunk in s]
    assert len(pieces) > 10
    assert {chunk.path.rpartition("/")[2] for chunk in pieces} == {"answer"}
    assert s.result["quotes"][0]["passage"] == "water/2024-04-20-mill-pond.txt#2"
