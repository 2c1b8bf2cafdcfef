"""Code that training writes: Gepa finds the optimum, and its proposer reads the tracebacks."""

import argparse
import importlib.util
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parents[2] / "examples" / "trained_code.py"


@pytest.mark.slow
def test_training_finds_the_code(tmp_path, monkeypatch, capsys):
    """From a tenth of the rows to all; the proposer was told that it is code, and what failed where."""
    spec = importlib.util.spec_from_file_location("trained_code", EXAMPLE)
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    monkeypatch.chdir(tmp_path)
    proposer = example.scripted_proposer()
    example.sm.run(example.main, argparse.Namespace(model=proposer))
    out = capsys.readouterr().out
    assert "after 1.00" in out
    assert "import re" in out
    asked = str(proposer.requests[0].messages)
    assert "Python code that defines" in asked
    assert "Traceback" in asked and "ValueError" in asked
