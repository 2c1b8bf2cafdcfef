"""A training run that is killed in the middle goes on with the same line, and ends with the same bytes."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
def test_the_killed_run_ends_with_the_same_bytes(tmp_path):
    """The second process dies by SIGKILL, the third one pays for the rest alone; all files are equal."""
    command = [sys.executable, ROOT / "examples" / "train_resume.py"]
    run = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", cwd=tmp_path, timeout=300)
    assert run.returncode == 0, run.stderr
    assert re.search(r"^killed: killed; \d+ records in the journal$", run.stdout, re.MULTILINE)
    alone, resumed = re.findall(r": (\d+) rollouts, ([\d,]+) model calls, ([\d,]+) of them here", run.stdout)
    assert alone[:2] == resumed[:2]
    assert int(resumed[2].replace(",", "")) < int(alone[2].replace(",", ""))
    assert re.findall(r"^(\S+): [\d,]+ bytes, (.*)$", run.stdout, re.MULTILINE) == [
        ("desk.json", "the same"),
        ("history.json", "the same"),
        ("history.svg", "the same"),
    ]
    drawn = (tmp_path / "out" / "runs" / "alone" / "history.svg").read_text(encoding="utf-8")
    assert drawn == (ROOT / "docs/pages/assets/run.svg").read_text(encoding="utf-8"), "copy out/runs/alone/history.svg"
