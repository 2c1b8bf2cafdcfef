"""Critique: what a critic says of something, and how good it finds it."""

from __future__ import annotations

from pydantic import Field

from synmod.data import TOLD_BRIEFLY, DataModel, Score
from synmod.registry import register_own


@register_own()
class Critique(DataModel):
    """Say what is wrong with the inputs and what would make them better, then score them.

    Example:
        >>> Critique(critique="No source is given.", score=0.4).score
        <Score.P40: 0.4>

    Source: Synalinks' `CritiqueWithReward`.
    """

    model_config = TOLD_BRIEFLY

    critique: str = Field(description="what is wrong, and what would make it better")
    score: Score = Field(description="how good it is, from 0.0 to 1.0")
