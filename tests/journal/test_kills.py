"""`kill -9` at any moment: the same lines go on, to the same result, and pay for nothing twice."""

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from .desk import AT_ONCE

ROOT = Path(__file__).parents[2]
KILLS = 40


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory):
    """What an uninterrupted run left, and what those left that were killed 40 times in all."""
    command = [sys.executable, "-W", "error", ROOT / "tests/journal/desk.py", tmp_path_factory.mktemp("desk"), KILLS, 7]
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, cwd=ROOT, timeout=600)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def counted(outcome, kind):
    """Return how often each thing was done."""
    return Counter(line.split()[1] for line in outcome["lines"] if line.startswith(f"{kind} "))


@pytest.mark.slow
def test_the_result_is_that_of_an_uninterrupted_run(outcomes):
    """Result and files are the same."""
    whole, *killed = outcomes
    assert sum(outcome["killed"] for outcome in killed) >= KILLS
    for outcome in killed:
        assert (outcome["result"], outcome["files"]) == (whole["result"], whole["files"])


@pytest.mark.slow
def test_no_model_call_is_paid_for_twice_beyond_those_in_flight(outcomes):
    """The requests are those of the uninterrupted run, and at most so many more as were under way at the kills."""
    whole, *killed = outcomes
    expected = counted(whole, "paid")
    assert set(expected.values()) == {1}
    for outcome in killed:
        paid = counted(outcome, "paid")
        assert paid.keys() == expected.keys()
        assert paid.total() - expected.total() <= outcome["killed"] * AT_ONCE
    assert sum(counted(outcome, "paid").total() for outcome in killed) < 1.5 * expected.total() * len(killed) + KILLS


@pytest.mark.slow
def test_each_finished_tool_runs_once(outcomes):
    """Again at most those in flight; with `once=True` none at all."""
    whole, *killed = outcomes
    for outcome in killed:
        assert counted(outcome, "wrote").total() - counted(whole, "wrote").total() <= outcome["killed"] * AT_ONCE
        assert counted(outcome, "charged") == counted(whole, "charged")
    assert set(counted(whole, "charged").values()) == {1}
