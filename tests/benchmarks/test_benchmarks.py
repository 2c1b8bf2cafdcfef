"""Every benchmark still runs and says what it measured; none is held to a time here."""

import pytest

from tests.benchmarks import optimizers
from tests.benchmarks.__main__ import PARTS
from tests.benchmarks.measure import table

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("part", sorted(PARTS))
def test_a_benchmark_gives_rows(part):
    """At a small scale, each row has a name, a positive figure and a budget."""
    rows = list(PARTS[part].rows(scale=0.005))
    if part == "flax_graphs" and not rows:
        pytest.skip("flax is not installed: pip install synmod-lm[benchmark]")
    assert rows
    for row in rows:
        assert row.what
        assert row.got > 0
        assert row.budget > 0
    assert rows[0].what in table(rows)


async def test_optimizers_are_compared():
    """One seed: each line names its double, its optimizer and a figure; a peer that is not installed says so."""
    lines = [line async for line in optimizers.on_tickets([0])]
    assert all(line.startswith("tickets") for line in lines)
    assert len(lines) == 5
    assert "of test rows" in lines[-1] or "skipped" in lines[-1]
