"""Evaluation.compare: two evaluations row by row."""

import pytest

import synmod as sm


class Number(sm.DataModel):
    """A number."""

    n: int


async def scored(rule, rows=40, **options):
    """An evaluation of numbers by a rule."""
    data = [sm.Example(f"row {n}", Number(n=n)) for n in range(rows)]
    return await sm.evaluate(sm.Identity(), data, reward=lambda y_pred: float(rule(y_pred["n"])), **options)


async def test_the_difference_is_paired_and_seeded():
    """Equal seeds give equal intervals; the other way round the signs change."""
    better, worse = await scored(lambda n: n % 4 != 0), await scored(lambda n: n % 2)
    found = better.compare(worse)
    assert (found.difference, found.won, found.lost, found.rows) == (0.25, 10, 0, 40)
    assert 0 < found.low < 0.25 < found.high < 0.5
    assert found == better.compare(worse)
    back = worse.compare(better)
    assert (back.difference, back.won, back.lost) == (-0.25, 0, 10)
    assert (back.low, back.high) == pytest.approx((-found.high, -found.low), abs=0.05)
    assert found.to_json()["rows"] == 40


async def test_only_common_rows_count():
    """A row that has no score on one side, or is not there, is left out."""
    short, long = await scored(lambda n: 1, rows=10), await scored(lambda n: 0.5, rows=20)
    assert short.compare(long).rows == 10
    assert short.compare(short) == sm.Comparison(0.0, 0.0, 0.0, 0, 0, 10)

    def fails(n):
        if n < 3:
            raise KeyError(n)
        return 1

    assert short.compare(await scored(fails, rows=10)).rows == 7


@pytest.mark.filterwarnings("ignore:evaluate. the reward")
async def test_samples_of_a_row_are_one():
    """Their mean is the score of the row."""
    found = (await scored(lambda n: 1, rows=5, samples=3)).compare(await scored(lambda n: 0, rows=5))
    assert (found.difference, found.won, found.rows) == (1.0, 5, 5)


async def test_nothing_in_common_is_said():
    """Without results, or without a common id, there is nothing to compare."""
    here = await scored(lambda n: 1, rows=3)
    with pytest.raises(sm.ArgumentError, match="keep_results"):
        here.compare(await scored(lambda n: 1, rows=3, keep_results=False))
