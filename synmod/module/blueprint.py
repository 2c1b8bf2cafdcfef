"""What a graph definition keeps of a module besides its children: enough to make it again without a constructor."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from synmod.module.module import Module


@dataclass(frozen=True, slots=True)
class Blueprint:
    """A module without its children."""

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
    redundant: frozenset[str] = frozenset()
    flow: Any = None
    done: frozenset[str] = frozenset()
    isolated: Mapping[str, Any] = field(default_factory=dict[str, Any])
    ignored: Mapping[str, Any] = field(default_factory=dict[str, Any])

    def replaced(self, **changes: Any) -> Blueprint:
        """The same blueprint with some fields changed."""
        return replace(self, **changes)
