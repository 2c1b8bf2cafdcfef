"""Questions about a folder: answered from its passages, piece by piece, with quotations that are there."""

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
EXAMPLE = ROOT / "examples" / "rag.py"
NOTES = ROOT / "examples" / "data" / "notes"


@pytest.fixture(scope="module")
def example():
    """The example as a module."""
    spec = importlib.util.spec_from_file_location("rag", EXAMPLE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


NOTES_QUESTION = "How clear is the water of the pond?"


def answers_of(folder, *options):
    """What the example prints."""
    run = subprocess.run(
        [sys.executable, EXAMPLE, *options], capture_output=True, text=True, encoding="utf-8", cwd=folder
    )
    assert run.returncode == 0, run.stderr
    return run.stdout


@pytest.mark.slow
def test_it_answers_from_a_folder(tmp_path):
    """Each answer quotes a note word for word; a second run adds nothing."""
    options = ("--folder", NOTES, "--ask", NOTES_QUESTION)
    first, second = answers_of(tmp_path, *options), answers_of(tmp_path, *options)
    assert " 0 of them new" not in first
    assert " 0 of them new" in second
    assert "the water of the pond is clear down to the gravel" in second


@pytest.mark.slow
def test_both_indexes_together_find_more_than_each_alone(tmp_path):
    """Of 40 questions about the documentation; what it does not answer is not answered."""
    out = answers_of(tmp_path)
    words, meaning, both = (int(rate) for rate in re.findall(r"by \w+: (\d+)%", out))
    assert both > max(words, meaning)
    assert out.rstrip().endswith("Who sings at the opera?\n  The pages do not say.")


async def test_what_is_invented_is_left_out(example, capsys):
    """A quote of another passage, of none, of other words, or empty is counted; a true one is kept."""
    index = sm.HybridIndex(sm.KeywordIndex(), sm.VectorIndex("embedded/hash"))
    await index.add([sm.Passage(id="a", text="The pond is deep."), sm.Passage(id="b", text="The sky\n is blue.")])
    given = [("b", "sky is BLUE"), ("a", "sky is blue"), ("c", "The pond"), ("a", "shallow"), ("a", " ")]
    reply = {"answer": "Blue.", "quotes": [{"passage": passage, "words": text} for passage, text in given]}
    program = example.assistant(index, FunctionLM(lambda request: json.dumps(reply)))
    result = await program(example.Question(question="How blue is the sky?"))
    assert (result["quotes"], result["invented"]) == ([{"passage": "b", "words": "sky is BLUE"}], 4)
    await example.ask(program, "How blue is the sky?")
    assert "  Blue.\n  [b] sky is BLUE\n  (4 quotes are not in the pages" in capsys.readouterr().out


async def test_the_answer_appears_piece_by_piece(example):
    """The program is not done when the first words are there."""
    index = sm.HybridIndex(sm.KeywordIndex(), sm.VectorIndex("embedded/hash"))
    await index.add(sm.passages(NOTES))
    model = sm.LanguageModel("own/quoting", adapter=example.Quoting())
    program = example.assistant(index, model)
    async with sm.stream(program, example.Question(question=NOTES_QUESTION)) as s:
        pieces = [chunk async for chunk in s]
    assert len(pieces) > 10
    assert "clear down to the gravel" in s.result["quotes"][0]["words"]
