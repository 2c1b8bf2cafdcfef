"""A hundred candidates at once on one live program: the best one helps on unseen tickets, and a diff shows why."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
def test_the_best_of_a_hundred_candidates_is_applied(tmp_path):
    """The live program does not change until the end; then it answers better, and only instructions differ."""
    command = [sys.executable, ROOT / "examples" / "population.py"]
    run = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", cwd=tmp_path, timeout=300)
    assert run.returncode == 0, run.stderr
    before, worst, best, after = map(float, re.findall(r"\d\.\d\d", run.stdout)[:4])
    assert worst < best
    assert before + 0.1 < after
    assert "100 candidates" in run.stdout
    assert "live program untouched: True" in run.stdout
    changed = set(re.findall(r"^(\S+/\S+):$", run.stdout, re.MULTILINE))
    assert changed
    assert changed <= {"category/instructions", "urgency/instructions", "language/instructions"}
