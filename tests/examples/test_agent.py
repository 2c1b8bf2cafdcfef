"""The shop's desk: a person decides on refunds, it is killed once, and nothing is paid or refunded twice."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

import synmod as sm

ROOT = Path(__file__).parents[2]


def run_desk(folder, *options):
    """Return what the example prints."""
    command = [sys.executable, ROOT / "examples" / "agent.py", "--run", folder, *options]
    done = subprocess.run(
        command, capture_output=True, text=True, encoding="utf-8", stdin=subprocess.DEVNULL, timeout=300
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
def test_the_desk_asks_and_survives_a_kill(tmp_path):
    """Two refunds wait for a person, one is made, and each model call is paid for once in four processes."""
    printed = run_desk(tmp_path / "desk")
    starts = printed.split("start ")[1:]
    assert "waits for 2 answers" in starts[0]
    assert "ended with status -9" in starts[1]
    assert "paid for 0 model calls, and is done" in starts[3]
    assert starts[2].splitlines()[2:] == starts[3].splitlines()[2:-1]
    assert "45.00 euros are refunded for order 18 (kettle)." in starts[2]
    assert "not approved: We need a photo of" in starts[2]
    assert "There is no order 99" in starts[2]
    assert "refunds: [(18, 45.0)]; model calls paid for in all: 10" in printed
    calls = sm.Run(tmp_path / "desk").calls
    assert sum(call.kind == "model" for call in calls) == 10
    assert re.findall(r"^start (\d)", printed, re.MULTILINE) == ["1", "2", "3", "4"]


@pytest.mark.slow
def test_questions_of_ones_own(tmp_path):
    """`--ask` replaces the questions."""
    printed = run_desk(tmp_path / "desk", "--ask", "How many plates are in stock?")
    assert "How many plates are in stock?" in printed
    assert "refunds: []" in printed
