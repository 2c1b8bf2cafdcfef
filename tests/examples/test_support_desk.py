"""The main job: it runs offline, learns from rules and examples, and its file gives equal answers elsewhere."""

import json
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_help_desk_runs_improves_and_reloads(tmp_path):
    """All held-out tickets are answered in three states; the saved program answers alike in a fresh process."""
    saved = tmp_path / "out" / "desk.json"  # where it goes if nothing is said
    command = [sys.executable, ROOT / "examples" / "support_desk.py"]
    run = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", cwd=tmp_path, timeout=300)
    assert run.returncode == 0, run.stderr
    shares = [float(x) for x in re.findall(r"category (0\.\d\d) \(\d+ of 80\)", run.stdout)]
    assert len(shares) == 3
    assert shares[0] < shares[1] < shares[2]
    right = re.findall(r"category 0\.\d\d \((\d+) of 80\)", run.stdout)
    told = re.search(r"sorts (\d+) of the 80 .*?, (\d+) with .*? and (\d+) with", README, re.DOTALL)
    assert list(told.groups()) == right
    assert "├─ category" in run.stdout
    assert "category/decision" in run.stdout
    assert re.search(r"category/branches/(billing|shipping|technical|account|feedback)", run.stdout)
    drafts = re.search(r"drafts by the right team: (0\.\d\d) of all, (0\.\d\d) of the best of 3", run.stdout).groups()
    assert float(drafts[1]) > float(drafts[0]) + 0.1
    assert re.search(r"(0\.\d\d) of all drafts are by the right team, (0\.\d\d) of those", README).groups() == drafts
    assert run.stdout.count("├─ draft/module") + run.stdout.count("└─ draft/module") == 9
    assert "draft/module" in saved.with_name("desk_trace.html").read_text(encoding="utf-8")
    assert "equal answers (80 of 80)" in run.stdout
    assert "80 of 80 tickets" in run.stderr
    assert json.loads(saved.read_text(encoding="utf-8"))["header"]["kind"] == "program"


def test_the_tickets_are_what_the_example_says():
    """At least 150 distinct tickets, 60 of them held out, in five categories and three languages."""
    rows = [json.loads(line) for line in (ROOT / "examples/data/tickets.jsonl").read_text("utf-8").splitlines()]
    assert len(rows) >= 150
    assert len({row["text"] for row in rows}) == len(rows)
    counts = Counter(row["split"] for row in rows)
    assert counts["heldout"] >= 60
    assert {row["language"] for row in rows} == {"en", "de", "es"}
    assert len({row["category"] for row in rows}) == 5
