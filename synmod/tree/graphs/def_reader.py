"""How the walk reads a graph definition: the same order and the same paths as over the live objects."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from synmod.tree.graphs.defs import ContainerDef, NodeRef, StaticDef, VariableRef
from synmod.tree.walking.kinds import NODE, SEQUENCE, STATIC, VARIABLE, Kinds

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from synmod.tree.graphs.defs import Definition, NodeDef
    from synmod.tree.walking.walk import Pairs, Visit


class DefReader:
    """Follows references to their definitions."""

    __slots__ = ("definitions", "kinds")

    def __init__(self, definitions: Mapping[int, Definition]) -> None:
        self.definitions = definitions
        self.kinds = Kinds({NodeRef: NODE, VariableRef: VARIABLE, ContainerDef: SEQUENCE, StaticDef: STATIC})

    @property
    def entity(self) -> Callable[[Any], Any]:
        """What follows a reference to its definition."""
        return self.definition_of

    def definition_of(self, value: Any) -> Any:
        """Give the definition that a reference leads to; the reference itself where another split has it."""
        return self.definitions.get(value.index, value)

    def enter(self, node: NodeDef | NodeRef, visit: Visit) -> tuple[Pairs, bool]:  # noqa: ARG002
        """Give the children of a definition; of a reference into another split there are none."""
        return [] if isinstance(node, NodeRef) else list(node.attributes), False

    def open(self, value: ContainerDef, kind: int, visit: Visit) -> tuple[Pairs, Any]:  # noqa: ARG002
        """Give the children of a container."""
        return list(zip(value.steps, value.children, strict=True)), None
