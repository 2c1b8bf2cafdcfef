"""Feedback: what a reward says of one output."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from synmod.leaves.frozen import thaw


@dataclass(frozen=True, slots=True)
class Feedback:
    """A score, and what would make it better.

    Attributes:
        score: Higher is better, inside the reward's `range`; None where there is nothing to score.
        critique: What is wrong, in words.
        target: What should have come out.
        objectives: Further numbers by name.
        parts: Critique by module path or glob, for these modules alone.

    Example:
        >>> Feedback(0.5, critique="No source is given.").to_json()["score"]
        0.5

    Source: textual gradients (TextGrad), GEPA's feedback functions.
    """

    score: float | None
    critique: str | None = None
    target: Any = None
    objectives: Mapping[str, float] = field(default_factory=dict[str, float])
    parts: Mapping[str, str] = field(default_factory=dict[str, str])

    def to_json(self) -> dict[str, Any]:
        """The feedback as plain JSON.

        Raises:
            DataError: The target is no JSON.
        """
        return thaw(self.record())

    def record(self) -> dict[str, Any]:
        """The feedback by name of its fields, its target as it is."""
        return {
            "score": self.score,
            "critique": self.critique,
            "target": self.target,
            "objectives": dict(self.objectives),
            "parts": dict(self.parts),
        }
