"""Thinking: the field in which a model reasons before it answers."""

from __future__ import annotations

from pydantic import Field

from synmod.data import TOLD_BRIEFLY, DataModel
from synmod.registry import register_own


@register_own()
class Thinking(DataModel):
    """Think step by step, then answer.

    Example:
        >>> Thinking(thinking="It is the capital, so Paris.").thinking
        'It is the capital, so Paris.'

    Source: chain-of-thought prompting (Wei et al. 2022), Synalinks' `Thinking`.
    """

    model_config = TOLD_BRIEFLY

    thinking: str = Field(description="the reasoning, step by step")
