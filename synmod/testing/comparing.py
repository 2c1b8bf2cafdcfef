"""A program that is not worse than another one: a test with as few rollouts as the evidence needs."""

import os
from collections.abc import Sequence
from contextlib import AsyncExitStack
from math import fsum, inf, log, log1p, sqrt
from typing import Any, Final

from synmod import errors, journal, leaves, train, tree

_ALPHA: Final = 0.05
_BLOCK: Final = 20
_SHOWN: Final = 5
_MOST_BET: Final = 0.5
_BOLD_BET, _CALM = 0.75, 0.02  # the highest bet while the variance is low, which proves equality sooner


async def assert_not_worse(
    new: Any,
    old: Any,
    rows: Any,
    *,
    reward: Any,
    margin: float = 0.0,
    budget: int = 400,
    run: str | os.PathLike[str] | None = None,
    seed: int = 0,
) -> None:
    """Raise unless a program is as good as another one, up to a margin: for a test that a change must pass.

    Both run on the same rows, in a seeded order, as long as it is open which way the evidence points: the bounds of the
    mean difference hold at every moment at once, so that looking at them after each block is not a second chance.

    Args:
        new: The changed program.
        old: The program that it is compared with.
        rows: Rows with targets, or a file or table of them, as for `sm.load_examples`.
        reward: Scores them, as in `sm.evaluate`.
        margin: How much worse the new one may be in the mean, in the units of the reward.
        budget: The most rollouts of both programs together.
        run: A folder in which the calls are recorded: those that have not changed are not paid for again.
        seed: Of the order of the rows.

    Raises:
        AssertionError: It is worse: the upper bound is below `-margin`, or all rows were run and the mean is. Or that
            is not known at the end: the budget is over, or rows have no score, since a provider or the reward failed.
            Has the mean, the diff of the Variables, and rows that got worse.
        EvaluationError: A program cannot be run, or all rows of a block have failed.
        ArgumentError: There are no rows, or the budget is too small for one.
        DataError: Rows that cannot be read; lists all of them.

    Example:
        >>> import synmod as sm
        >>> class Answer(sm.DataModel):
        ...     answer: str
        >>> rows = [(Answer(answer="Paris"), Answer(answer="Paris"))] * 3
        >>> sm.run(assert_not_worse(sm.Identity(), sm.Identity(), rows, reward="exact_match"))

    Source: Waudby-Smith and Ramdas 2024 (always-valid bounds by empirical Bernstein).
    """
    examples = await train.load_examples(rows, program=new)
    order = leaves.rng(seed, 0, "assert_not_worse").sample(range(len(examples)), len(examples))
    most = min(len(examples), budget // 2)
    if most < 1:
        raise errors.ArgumentError("assert_not_worse: give at least one row, and a budget of two rollouts.")
    judge, differences = train.rewards.reward_from(reward), dict[int, float]()
    width = judge.range[1] - judge.range[0]
    low, high = -width, width
    async with AsyncExitStack() as stack:
        if run is not None:
            await stack.enter_async_context(journal.durable(run))
        for start in range(0, most, _BLOCK):
            places = order[start : min(start + _BLOCK, most)]
            block = [examples[place] for place in places]
            scores = [await _scores(program, block, judge) for program in (new, old)]
            pairs = zip(places, *scores, strict=True)
            differences |= {place: a - b for place, a, b in pairs if a is not None and b is not None}
            low, high = (width * end for end in bounds([gain / width for gain in differences.values()]))
            if low >= -margin:
                return
            if high < -margin:
                break
    mean = fsum(differences.values()) / max(1, len(differences))
    is_all = len(differences) == len(examples)
    if is_all and mean >= -margin:
        return
    open_for = "the budget is over" if most < len(examples) else "some rows have no score"
    verdict = "is worse" if high < -margin or is_all else f"may be worse, and {open_for}"
    known = (
        f"95 % bounds {low:+.4g} and {high:+.4g}), allowed {-margin:g}, on {len(differences)} of {len(examples)} rows"
    )
    lines = [
        f"the new program {verdict}: mean difference {mean:+.4g} ({known}.",
        *_diff(new, old),
        *(f"  row {place}: {differences[place]:+.4g}" for place in _worst(differences)),
    ]
    raise AssertionError("\n".join(lines))


async def _scores(program: Any, rows: Sequence[Any], reward: Any) -> list[float | None]:
    """Return the scores of a program; None for a row that an outage or the reward has left without one."""
    evaluation = await train.evaluate(program, rows, reward=reward, progress=False)
    return [result.score for result in evaluation.results]


def bounds(differences: Sequence[float]) -> tuple[float, float]:
    """Return bounds of a mean, each of which holds at all times together with a probability of 95 %.

    Args:
        differences: Numbers from -1 to 1, in the order in which they came.

    Example:
        >>> low, high = bounds([0.5, -0.5] * 200)
        >>> -0.3 < low < 0 < high < 0.3
        True

    Source: Waudby-Smith and Ramdas 2024, Theorem 2 (predictable plug-in empirical Bernstein).
    """
    mean, variance, total, squares = 0.5, 0.25, 0.5, 0.25  # what is expected before the first number
    bets = centre = width = 0.0
    for number, difference in enumerate(differences, 1):
        value = (difference + 1) / 2
        most = _MOST_BET if variance > _CALM else _BOLD_BET
        bet = min(most, sqrt(2 * log(1 / _ALPHA) / (variance * number * log(1 + number))))
        bets += bet
        centre += bet * value
        width += (value - mean) ** 2 * (-log1p(-bet) - bet)
        total += value
        mean = total / (number + 1)
        squares += (value - mean) ** 2
        variance = squares / (number + 1)
    half, centre = ((log(1 / _ALPHA) + width) / bets, centre / bets) if bets else (inf, 0.0)
    return 2 * (centre - half) - 1, 2 * (centre + half) - 1


def _worst(differences: dict[int, float]) -> list[int]:
    """Return the rows that got worse most."""
    worse = [place for place, difference in differences.items() if difference < 0]
    return sorted(worse, key=lambda place: differences[place])[:_SHOWN]


def _diff(new: Any, old: Any) -> list[str]:
    """Return how the Variables of two programs differ, a line for each."""
    before, after = (tree.state(program, tree.Param).to_json() for program in (old, new))
    paths = sorted(path for path in {*before, *after} if before.get(path) != after.get(path))
    return [f"  {path}: was {before.get(path)!r:.200}, is {after.get(path)!r:.200}" for path in paths]
