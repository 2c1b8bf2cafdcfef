"""synmod's own classes of the rooms below: their ids."""

from __future__ import annotations

from synmod.lm import LanguageModel
from synmod.registry import own_later, register_own
from synmod.tree import Intermediate, Memory, OptState, Param, Stat, Variable

for _own in (Intermediate, LanguageModel, Memory, OptState, Param, Stat, Variable):
    register_own()(_own)


def _load_skip() -> None:
    """Load the room of skips, whose Namespaces stand in files."""
    from synmod.skip import namespace  # noqa: F401  # pyright: ignore[reportUnusedImport]  # for its id


own_later(_load_skip)
