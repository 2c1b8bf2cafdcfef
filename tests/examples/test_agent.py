"""The shop's assistant: it runs offline, calls its three tools, and gives back only what it may."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
def test_the_assistant_looks_up_and_refunds(tmp_path):
    """Each question meets the right tool; refusals are told, and change nothing; the saved agent answers alike."""
    command = [sys.executable, ROOT / "examples" / "agent.py"]
    run = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", cwd=tmp_path, timeout=120)
    assert run.returncode == 0, run.stderr
    blocks = run.stdout.strip().split("\n\n")
    answers = {lines[0]: lines[1:] for lines in (block.split("\n") for block in blocks) if lines[0][-1] in "?.!"}
    called = {question: re.findall(r"tools/(\w+)", " ".join(lines)) for question, lines in answers.items()}
    assert [*called.values()] == [["order_status"], ["stock"], ["refund"], ["refund"], ["refund"], ["order_status"], []]
    assert "  3 pieces in stock, 45.00 euros each." in answers["How many pieces of the kettle are in stock?"]
    assert "not approved" in answers["Please refund order 18, the kettle is too loud."][0]
    assert "There is no order 99" in answers["What is the status of order 99?"][0]
    assert "orders now: {17: 'on its way', 18: 'delivered', 19: 'refunded'}" in run.stdout
    assert run.stdout.count("  Order 17 (mug) is on its way.") == 2


@pytest.mark.slow
def test_questions_of_ones_own(tmp_path):
    """`--ask` replaces the questions."""
    command = [sys.executable, ROOT / "examples" / "agent.py", "--ask", "How many plates are in stock?"]
    run = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", cwd=tmp_path, timeout=120)
    assert run.stdout.startswith("\nHow many plates are in stock?\n  ")
