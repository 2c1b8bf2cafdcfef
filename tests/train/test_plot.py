"""The picture of a run: the reward over rollouts, from the values that it began with to those that it ended with."""

import re

import synmod as sm
from synmod.train import Candidate, History


def points_of(svg):
    """Return the points of each line, as text."""
    return [each.split() for each in re.findall(r'<polyline points="([^"]*)"', svg)]


def test_the_lines_go_from_the_seed_to_the_end(tmp_path):
    """Both begin at no rollouts with the score of the seed, have a point per epoch, and end with what was kept."""
    rows = [
        {"rollouts": 10, "val_reward": 0.25, "best_val_reward": 0.5},
        {"rollouts": 20, "val_reward": 0.75, "best_val_reward": 0.75},
    ]
    seed = Candidate("c0", sm.State(), scores={"validation": {"a": 0.5, "b": 0.0}})
    kept = Candidate("c1", sm.State(), scores={"validation": {"a": 1.0, "b": 0.5}})
    history = History(rows, candidates=[seed, kept], best=kept, spent=sm.Budget(rollouts=30))
    svg = history.plot(tmp_path / "run.svg").read_text("utf-8")
    best, present = points_of(svg)
    assert (len(best), len(present)) == (4, 4)
    assert best[0] == present[0]
    assert best[1] != present[1]
    assert best[2:] == present[2:]
    assert "30 rollouts" in svg


def test_a_run_without_rows_is_drawn(tmp_path):
    """There is a frame where there is nothing to draw, as a page, too."""
    page = History(candidates=[Candidate("c0", sm.State())]).plot(tmp_path / "run.html").read_text("utf-8")
    assert page.startswith("<!doctype html>")
    assert "<svg" in page
