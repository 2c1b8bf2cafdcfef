"""Noise of a temperature above 0: drawn from seed, sample and prompt, so that a run can be repeated."""

from __future__ import annotations

from hashlib import sha256, shake_256
from typing import Final

_STEPS: Final = 1 << 53


class Noise:
    """Adds a drawn number, from 0 to the temperature, to what is compared: at 1 it weighs up to two hits of a rule.

    Args:
        temperature: The temperature of the request; 0 adds nothing.
        key: What the draws depend on; `""` for a silent noise.
    """

    __slots__ = ("_scale", "key")

    def __init__(self, temperature: float, key: str) -> None:
        self._scale = max(0.0, temperature)
        self.key = key

    @property
    def silent(self) -> bool:
        """Whether nothing is added."""
        return self._scale == 0.0

    def added(self, values: list[float], purpose: str) -> list[float]:
        """Add noise to each value; the draws depend on the purpose."""
        if self._scale == 0.0 or not values:
            return values
        drawn = shake_256(f"{self.key}\n{purpose}".encode("utf-8", "surrogatepass")).digest(8 * len(values))
        return [
            value + self._scale * ((int.from_bytes(drawn[8 * index : 8 * index + 8], "big") >> 11) / _STEPS)
            for index, value in enumerate(values)
        ]


def hashed(*parts: object) -> int:
    """A number that depends on nothing but its parts: the SHA-256 of their texts."""
    return int.from_bytes(sha256("\n".join(map(str, parts)).encode("utf-8", "surrogatepass")).digest(), "big")
