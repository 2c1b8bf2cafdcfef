"""The picture of a run: the reward over rollouts, from the values that it began with to those that it ended with."""

import re

import synmod as sm
from synmod.train import Candidate, History


def points_of(svg):
    """Return the points of each line, as text."""
    return [each.split() for each in re.findall(r'<polyline points="([^"]*)"', svg)]


def test_the_lines_go_from_the_seed_to_the_end():
    """Both begin at no rollouts with the score of the seed, have a point per epoch, and end with what was kept."""
    rows = [
        {"rollouts": 10, "val_reward": 0.125, "best_val_reward": 0.125},
        {"rollouts": 20, "val_reward": 0.75, "best_val_reward": 0.75},
    ]
    seed = Candidate("c0", sm.State(), scores={"validation": {"a": 0.5, "b": 0.0}})
    kept = Candidate("c1", sm.State(), scores={"validation": {"a": 1.0, "b": 0.5}})
    history = History(rows, candidates=[seed, kept], best=kept, spent=sm.Budget(rollouts=30))
    svg = history.plot()
    best, present = points_of(svg)
    assert best[0::2] == [present[0], *best[2:5:2], present[-1]]
    heights = [float(point.split(",")[1]) for point in best]
    assert heights == sorted(heights, reverse=True)  # the seed was completed after the first epoch
    assert len(present) == 4
    for before, corner, after in zip(best[0::2], best[1::2], best[2::2], strict=False):  # a score holds until the next
        assert corner == f"{after.split(',')[0]},{before.split(',')[1]}"
    assert "30 rollouts" in svg
    assert "<circle" not in svg


def test_means_over_a_part_of_the_rows_are_circles():
    """On no line: neither those of the epochs, nor the seed or the end where they saw a part."""
    rows = [
        {"rollouts": 10, "val_reward": None, "val_reward_estimate": 1.0, "best_val_reward": None},
        {"rollouts": 20, "val_reward": 0.5, "val_reward_estimate": None, "best_val_reward": 0.5},
    ]
    seed = Candidate("c0", sm.State(), scores={"validation": {"a": 1.0}})
    kept = Candidate("c1", sm.State(), scores={"validation": {"a": 1.0, "b": 0.5}})
    svg = History(rows, candidates=[seed, kept], best=kept, spent=sm.Budget(rollouts=30)).plot()
    best, present = points_of(svg)
    assert (len(best), len(present)) == (3, 2)
    assert svg.count("<circle") == 1
    assert "estimate" in svg


def test_a_run_without_rows_is_drawn(tmp_path):
    """There is a frame where there is nothing to draw, as a page, too."""
    page = History(candidates=[Candidate("c0", sm.State())]).plot(tmp_path / "run.html")
    assert page.startswith("<!doctype html>")
    assert "<svg" in page


def test_a_score_that_stays_is_drawn_within_the_range_of_rewards():
    """From 0 to 1, or as far as it goes."""
    for score, ends in ((0.2, ("1", "0")), (5.0, ("5", "0")), (-2.0, ("1", "-2"))):
        seed = Candidate("c0", sm.State(), scores={"validation": {"a": score}})
        svg = History(candidates=[seed], best=seed, spent=sm.Budget(rollouts=9)).plot()
        assert tuple(re.findall(r'x="42"[^>]*>([^<]+)<', svg)) == ends
