"""Every way to answer is measured: the frontier of quality and dollars is close to the true one, and drawn."""

import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
def test_the_frontier_is_measured_and_drawn(tmp_path):
    """Nearly all true points are in it and hardly a wrong one; the best within the budget is applied."""
    command = [sys.executable, ROOT / "examples" / "frontier.py", "--folder", tmp_path / "out"]
    run = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", cwd=tmp_path, timeout=300)
    assert run.returncode == 0, run.stderr
    assert "15 combinations, 3,000 rollouts" in run.stdout
    right, true = map(int, re.search(r"measured as such: (\d+) of (\d+)", run.stdout).groups())
    assert right >= true - 2
    assert len(re.findall(r"  no$", run.stdout, re.MULTILINE)) <= 1
    assert "the best for 0.002 USD per letter: middle, votes: 1" in run.stdout
    svg = (tmp_path / "out" / "frontier.svg").read_text(encoding="utf-8")
    assert len(ET.fromstring(svg).findall("{*}circle")) == 15
    assert "middle x3" in svg
    assert (tmp_path / "out" / "history.html").exists()
