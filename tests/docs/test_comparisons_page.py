"""The page of comparisons has a row for every part that the benchmark command measures."""

import re
from pathlib import Path

from tests.benchmarks.__main__ import PARTS

PAGE = (Path(__file__).parents[2] / "docs" / "pages" / "comparisons.md").read_text(encoding="utf-8")


def test_every_part_has_a_row():
    """Each part has a row in the first table."""
    rows = set(re.findall(r"^\| `(\w+)` \|", PAGE, re.MULTILINE))
    assert set(PARTS) - rows == set(), "add a row to the first table of docs/pages/comparisons.md"
