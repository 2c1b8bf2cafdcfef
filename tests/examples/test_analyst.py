"""The analyst: code over a long text and a table, right to the cent."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parents[2] / "examples" / "analyst.py"


@pytest.mark.slow
def test_it_computes_the_answer(tmp_path):
    """From 5,000 rows that no prompt holds."""
    run = subprocess.run([sys.executable, EXAMPLE], capture_output=True, text=True, encoding="utf-8", cwd=tmp_path)
    assert run.returncode == 0, run.stderr
    first, second = run.stdout.strip().splitlines()
    import importlib.util

    spec = importlib.util.spec_from_file_location("analyst", EXAMPLE)
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    price, earned = {"tea": 2.5, "cake": 4.0, "juice": 3.0}, {}
    for line in example.sample_sales().splitlines()[1:]:
        _, item, count = line.split(",")
        earned[item] = earned.get(item, 0) + int(count) * price[item]
    best = max(earned, key=earned.get)
    assert first == f"{best} earned {earned[best]:,.2f}"
    whole, sent = (int(number.replace(",", "")) for number in re.findall(r"[\d,]{4,}", second))
    assert sent < whole / 10
