"""synmod's own classes of the rooms below: their ids, and those that are loaded lazily."""

from __future__ import annotations

from synmod import blocks, data
from synmod.lm import LanguageModel
from synmod.registry import register_own
from synmod.tree import Intermediate, Memory, OptState, Param, Stat, Variable

__all__ = ["load_lazy_classes"]

for _own in (Intermediate, LanguageModel, Memory, OptState, Param, Stat, Variable):
    register_own()(_own)


def load_lazy_classes() -> None:
    """Load what our rooms load lazily, so that its ids are known.

    The first load of a process asks for it, whatever its file says: which modules are imported never depends on a file.
    """
    for room in (data, blocks):
        for name in room.__all__:
            getattr(room, name)
