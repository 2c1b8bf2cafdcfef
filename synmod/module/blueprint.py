"""What a graph definition keeps of a module besides its children: enough to make it again without a constructor."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from synmod.module.module import Module


class Blueprint(NamedTuple):
    """A module without its children; a tuple, because a split makes one for each module, and tuples are cheap."""

    cls: type[Module]
    name: str
    description: str
    trainable: bool
    arguments: Mapping[str, Any] | None
    given: tuple[str, str, bool] | None
    build_config: Mapping[str, Any] | None
    built: bool
    sealed: bool
    reassigned: frozenset[str] = frozenset()
    removed: tuple[str, ...] = ()
    made_in_build: frozenset[str] = frozenset()
    flow: Any = None
    isolated: Mapping[str, Any] = {}
    ignored: Mapping[str, Any] = {}
    referring: tuple[str, ...] = ()
    """The arguments in which nodes and Variables, or references to them, may stand."""
