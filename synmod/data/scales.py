"""The scales of a judge, and scores on them as numbers from 0 to 1."""

from enum import Enum
from math import isfinite
from typing import Any

from synmod import registry
from synmod.errors import DataError


@registry.register_own()
class Score(float, Enum):
    """From 0.0 to 1.0 by 0.1, named by percent: `Score.P90 == 0.9`."""

    P0 = 0.0
    P10 = 0.1
    P20 = 0.2
    P30 = 0.3
    P40 = 0.4
    P50 = 0.5
    P60 = 0.6
    P70 = 0.7
    P80 = 0.8
    P90 = 0.9
    P100 = 1.0


@registry.register_own()
class Rating(int, Enum):
    """From 1 to 5: `Rating.R4 == 4`."""

    R1 = 1
    R2 = 2
    R3 = 3
    R4 = 4
    R5 = 5


def normalize_score(value: Any, scale: type[Enum]) -> float:
    """Return a score on the range from 0 to 1.

    Args:
        value: A member of the scale, or a number between its ends.
        scale: An Enum whose members are all ints or all floats, finite, at least two.

    Returns:
        `(value - low) / (high - low)`.

    Raises:
        DataError: The value is outside the scale, a bool, NaN or not a number; or `scale` is not a scale.

    Example:
        >>> normalize_score(Rating.R4, Rating)
        0.75

    Source: Synalinks' score enums; differs: a 7 on a scale of 5 is an error, not a 1.0.
    """
    low, high = _ends(scale)
    number = value.value if isinstance(value, scale) else value
    if isinstance(number, bool) or not isinstance(number, int | float) or not low <= number <= high:
        raise DataError(f"{value!r:.100} is not on the scale {scale.__name__}: write a number from {low} to {high}.")
    return float((number - low) / (high - low))


def _ends(scale: Any) -> tuple[float, float]:
    """Return the lowest and the highest member of a scale (DataError if it is not one)."""
    if isinstance(scale, type) and issubclass(scale, Enum):
        numbers: list[Any] = [member.value for member in scale]
        kinds: set[Any] = {type(number) for number in numbers}
        if len(numbers) > 1 and kinds in ({int}, {float}) and all(map(isfinite, numbers)):
            return min(numbers), max(numbers)
    raise DataError(
        f"{scale!r:.100} is not a scale: write an Enum with at least two members, all ints or all floats, finite."
    )
