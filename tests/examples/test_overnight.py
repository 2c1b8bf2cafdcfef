"""Half the price: batch jobs, with a kill in the middle, give the same results, and nothing is paid twice."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
def test_jobs_cost_half_and_survive_a_kill(tmp_path):
    """An evaluation and a fit: killed while a job is under way, the same line goes on; the bill is half of it."""
    command = [sys.executable, ROOT / "examples" / "overnight.py"]
    run = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", cwd=tmp_path, timeout=300)
    assert run.returncode == 0, run.stderr
    for work in ("evaluate", "fit"):
        before = re.search(rf"^{work}: at once, score 0\.\d+ for ([\d.]+) USD$", run.stdout, re.MULTILINE)
        assert re.search(rf"^{work}: killed in job \d+$", run.stdout, re.MULTILINE)
        after = re.search(rf"^{work}: overnight, the same result for ([\d.]+) USD", run.stdout, re.MULTILINE)
        assert float(after[1]) == pytest.approx(float(before[1]) / 2, abs=1e-5)
    assert re.search(r"^\d+ lines in jobs, 0 of them paid twice$", run.stdout, re.MULTILINE)
