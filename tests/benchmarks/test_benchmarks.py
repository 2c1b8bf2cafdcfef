"""Every benchmark still runs and says what it measured; none is held to a time here."""

from types import SimpleNamespace

import pytest

import synmod as sm
from tests.benchmarks import optimizers, real
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


async def line_of(program, seed=0):
    """The line of a program on the model in the process."""
    (train, label), (test, _) = (real.read_rows(real.HERE, split) for split in ("train", "test"))
    assert (len(train), len(test), label) == (64, 100, "intent")
    data = SimpleNamespace(train=train, test=test, label=label, instructions=real.INSTRUCTIONS, budget=250)
    return await real.measure(program, "turns", sm.LanguageModel("embedded/nearest"), data, seed)


@pytest.mark.parametrize("program", ["examples", "random", "bootstrap", "mipro"])
async def test_prompts_are_measured_on_any_model(program):
    """A line names program and layout, how many test rows were right, and what the calls took."""
    line = await line_of(program)
    assert line.startswith(f"{program:<12}turns")
    assert " of 100 " in line
    assert ("validation" in line) == (program != "examples")


async def test_examples_chosen_per_input_beat_as_many_fixed_ones():
    """By more than the intervals, whichever are drawn: the claim of the page on retrieval."""

    async def right(program, seed=0):
        return int((await line_of(program, seed)).split(" of 100")[0].split()[-1])

    fixed = max([await right("examples", seed) for seed in range(3)])
    assert real.wilson(await right("nearest"), 100)[0] > real.wilson(fixed, 100)[0] + 0.1


def test_an_interval_holds_the_share():
    """Wilson's: never beyond 0 and 1."""
    assert [round(end, 2) for end in real.wilson(75, 100)] == [0.66, 0.82]
    assert real.wilson(0, 10)[0] == 0 < real.wilson(0, 10)[1] < real.wilson(10, 10)[0] < 1
