"""A program is restructured while it serves; the live objects stay the same."""

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_live_program_is_edited_in_place(tmp_path):
    """The edit adds and swaps steps in the same objects, while calls are answered."""
    command = [sys.executable, ROOT / "examples" / "hot_edit.py"]
    run = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", cwd=tmp_path, timeout=300)
    assert run.returncode == 0, run.stderr
    before, after = (
        json.loads(line.partition(":")[2]) for line in run.stdout.splitlines() if line.startswith(("before:", "after:"))
    )
    assert list(before) == ["text", "topic", "tone"]
    assert list(after) == ["text", "language", "tone", "topic"]
    assert after["topic"] == "shipping"
    assert "['language', 'tone', 'topic'], v2, version 1" in run.stdout
    assert "answered meanwhile: True; the same desk: True; the route holds the live part: True" in run.stdout
