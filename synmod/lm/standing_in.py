"""Standing in: the one ContextVar that says which models answer for which, inside a block.

Nothing in a program changes; the innermost block that knows a model wins. The block itself is `use_language_models`
of `choice.py`; this file only answers, so that a model can ask it without knowing how models are made.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextvars import ContextVar, Token
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from synmod.lm.model import LanguageModel

__all__ = ["STAND_INS", "StandIns", "for_all", "stand_in_for", "stand_ins_in_force"]


class StandIns:
    """What one block says: a model for all, or models by saved name; and the block around it.

    Attributes:
        token: What gives back the block around; set when the block begins.
    """

    __slots__ = ("around", "by_name", "everybody", "opener", "token")

    def __init__(self, opener: object, everybody: LanguageModel | None, by_name: Mapping[str, LanguageModel]) -> None:
        self.opener = opener
        self.everybody = everybody
        self.by_name = by_name
        self.around = STAND_INS.get()
        self.token: Token[StandIns | None]


STAND_INS: ContextVar[StandIns | None] = ContextVar("synmod_stand_ins", default=None)


def stand_in_for(name: str) -> LanguageModel | None:
    """Tell which model answers for the model of this name; None if it answers itself."""
    block = STAND_INS.get()
    while block is not None:
        found = block.everybody or block.by_name.get(name) or block.by_name.get(name.partition("#")[0])
        if found is not None:
            return found
        block = block.around
    return None


def for_all() -> LanguageModel | None:
    """Tell which model answers for every model, even where there is none to stand in for."""
    block = STAND_INS.get()
    while block is not None:
        if block.everybody is not None:
            return block.everybody
        block = block.around
    return None


def stand_ins_in_force() -> list[tuple[str | None, LanguageModel]]:
    """List who stands in for whom, the innermost block first; None means for everybody."""
    found: list[tuple[str | None, LanguageModel]] = []
    block = STAND_INS.get()
    while block is not None:
        if block.everybody is not None:
            return [*found, (None, block.everybody)]
        found += sorted(block.by_name.items())
        block = block.around
    return found
