"""Drawing texts and numbers within their bounds."""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from random import Random
from typing import Final

from synmod.leaves.frozen import Json
from synmod.testing.instances.pattern_texts import text_for

__all__ = ["number_of", "text_of", "word"]

_WORDS: Final = ("amber", "birch", "cedar", "delta", "ember", "flint", "grove", "harbour", "iris", "juniper", "kelp")
_FORMATS: Final[Mapping[str, str]] = {
    "date": "2024-05-17",
    "date-time": "2024-05-17T10:30:00Z",
    "duration": "PT5M",
    "email": "amber@example.com",
    "hostname": "example.com",
    "ipv4": "192.0.2.1",
    "ipv6": "2001:db8::1",
    "time": "10:30:00Z",
    "uri": "https://example.com/a",
    "uuid": "6fa459ea-ee8a-4ca4-894e-db77e160355e",
}
_USUAL_LENGTH: Final = 60
_USUAL_SPAN: Final = 100


def word(random: Random) -> str:
    """Draw a word."""
    return random.choice(_WORDS)


def text_of(part: Mapping[str, Json], random: Random) -> str:
    """Draw a text of the right length, by its pattern or format where it has one."""
    least, most = int(part.get("minLength", 0)), part.get("maxLength", math.inf)
    if "pattern" in part:
        text = text_for(part["pattern"], random)
        return text + (text[-1:] or "a") * (least - len(text))
    usual = _FORMATS.get(str(part.get("format")), "")
    if usual and least <= len(usual) <= most:
        return usual
    text = " ".join(word(random) for _ in range(1 + int(random.random() * 3)))
    return text.ljust(least, "a")[: int(min(most, max(least, _USUAL_LENGTH)))]


def number_of(part: Mapping[str, Json], random: Random, *, whole: bool) -> int | float:
    """Draw a number within its bounds, a multiple where that is asked."""
    step = Fraction(str(part["multipleOf"])) if "multipleOf" in part else Fraction(1, 1 if whole else 4)
    if whole:
        step = Fraction(step.numerator)  # the smallest whole multiple of a fraction in lowest terms
    low, high = _bounds(part, step)
    if low > high and "multipleOf" not in part and not whole:
        step /= 2**20  # the bounds are closer than a quarter
        low, high = _bounds(part, step)
    if low == -math.inf:
        low = 0 if high >= 0 else high - _USUAL_SPAN
    high = min(high, low + _USUAL_SPAN)
    number = step * (int(low) + int(random.random() * (max(high - low, 0) + 1)))
    if number.denominator == 1 and (whole or random.random() < 0.5):
        return int(number)
    return float(number)


def _bounds(part: Mapping[str, Json], step: Fraction) -> tuple[float, float]:
    """The bounds of a number, counted in steps."""
    low, high = -math.inf, math.inf
    if "minimum" in part:
        low = math.ceil(Fraction(str(part["minimum"])) / step)
    if "exclusiveMinimum" in part:
        low = max(low, math.floor(Fraction(str(part["exclusiveMinimum"])) / step) + 1)
    if "maximum" in part:
        high = math.floor(Fraction(str(part["maximum"])) / step)
    if "exclusiveMaximum" in part:
        high = min(high, math.ceil(Fraction(str(part["exclusiveMaximum"])) / step) - 1)
    return low, high
