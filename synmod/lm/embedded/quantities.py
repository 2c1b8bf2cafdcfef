"""Number fields: the mean of the nearest examples, else a number of the input, within the bounds of the schema."""

from __future__ import annotations

import re
from fractions import Fraction
from math import ceil, floor
from typing import TYPE_CHECKING, Final, NamedTuple

from synmod.lm.embedded.columns import Field
from synmod.lm.embedded.noise import hashed
from synmod.lm.embedded.scene import NEAREST, Scene

if TYPE_CHECKING:
    from collections.abc import Mapping

    from synmod.leaves.frozen import Json

_NUMBER: Final = re.compile(r"-?\d+(?:\.\d+)?")
_MOST_DIGITS: Final = 300  # a longer one is no float
_STEPS: Final = 1 << 32


class _Bounds(NamedTuple):
    """The least and the greatest number to answer, and the step between numbers; None where there is none."""

    low: Fraction | None
    high: Fraction | None
    step: Fraction | None


def number(target: Mapping[str, Json], field: Field, scene: Scene) -> int | float:
    """Answer a number field."""
    whole = target.get("type") == "integer"
    bounds = _bounds(target, whole)
    value = _mean(field, scene)
    if value is None:
        value = _first_number(scene.asked)
    if value is None:
        value = _drawn(bounds, field, scene)
    value = _within(value, bounds)
    return int(value) if whole else float(value)


def _mean(field: Field, scene: Scene) -> Fraction | None:
    """The mean of the numbers of the three nearest examples, weighted by similarity; None without any."""
    near = [
        (Fraction(scene.similarities[index]), Fraction(field.seen[index]))
        for index in scene.nearest[:NEAREST]
        if isinstance(field.seen[index], (int, float)) and not isinstance(field.seen[index], bool)
    ]
    if weight := sum(similarity for similarity, _ in near):
        return sum((similarity * value for similarity, value in near), Fraction(0)) / weight
    return sum((value for _, value in near), Fraction(0)) / len(near) if near else None


def _first_number(text: str) -> Fraction | None:
    """The first number that stands in a text."""
    found = _NUMBER.search(text)
    return Fraction(found[0]) if found and len(found[0]) <= _MOST_DIGITS else None


def _drawn(bounds: _Bounds, field: Field, scene: Scene) -> Fraction:
    """A number between two bounds, chosen by the hash of seed, field, text and noise; 0 without two bounds."""
    if bounds.low is None or bounds.high is None:
        return Fraction(0)
    share = Fraction(hashed(scene.seed, field.path, scene.asked, scene.noise.key) % (_STEPS + 1), _STEPS)
    return bounds.low + (bounds.high - bounds.low) * share


def _bounds(target: Mapping[str, Json], whole: bool) -> _Bounds:
    """The bounds of a schema, exclusive ones replaced by a number that is allowed."""
    step = _exact(target["multipleOf"]) if "multipleOf" in target else None
    if whole and step is None:
        step = Fraction(1)
    low = _exact(target["minimum"]) if "minimum" in target else None
    high = _exact(target["maximum"]) if "maximum" in target else None
    above = _exact(target["exclusiveMinimum"]) if "exclusiveMinimum" in target else None
    below = _exact(target["exclusiveMaximum"]) if "exclusiveMaximum" in target else None
    least = _lower(high, below)
    if above is not None and (low is None or above >= low):
        low = (floor(above / step) + 1) * step if step else above + _inwards(above, least)
    if below is not None and (high is None or below <= high):
        high = (ceil(below / step) - 1) * step if step else below - _inwards(low, below)
    return _Bounds(low, high, step)


def _lower(one: Fraction | None, other: Fraction | None) -> Fraction | None:
    """The lower of two upper bounds."""
    return min((bound for bound in (one, other) if bound is not None), default=None)


def _inwards(low: Fraction | None, high: Fraction | None) -> Fraction:
    """How far to step off a bound that is itself not allowed: 1, or half of a narrower range."""
    return Fraction(1) if low is None or high is None else min(Fraction(1), (high - low) / 2)


def _exact(number: Json) -> Fraction:
    """A number as it is written in decimal: 0.1 is a tenth."""
    return Fraction(str(number))


def _within(value: Fraction, bounds: _Bounds) -> Fraction:
    """The number allowed that is nearest to a value; half goes to the even one."""
    low, high, step = bounds
    if step:
        value = round(value / step) * step
        low = None if low is None else ceil(low / step) * step
        high = None if high is None else floor(high / step) * step
    if high is not None and value > high:
        value = high
    return low if low is not None and value < low else value
