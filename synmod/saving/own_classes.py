"""synmod's own classes of the rooms below: their ids."""

from __future__ import annotations

from synmod.lm import LanguageModel
from synmod.registry import register_own
from synmod.tree import Intermediate, Memory, OptState, Param, Stat, Variable

for _own in (Intermediate, LanguageModel, Memory, OptState, Param, Stat, Variable):
    register_own()(_own)
