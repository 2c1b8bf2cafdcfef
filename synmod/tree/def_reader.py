"""How the walk reads a graph definition: the same order and the same paths as over the live objects."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from synmod.errors import StateError
from synmod.leaves.paths import path_str
from synmod.tree.defs import ContainerDef, NodeRef, StaticDef, VariableRef
from synmod.tree.kinds import NODE, SEQUENCE, STATIC, VARIABLE, Kinds

if TYPE_CHECKING:
    from collections.abc import Mapping

    from synmod.tree.defs import Definition, NodeDef
    from synmod.tree.walk import Pairs, Visit


class DefReader:
    """Follows references to their definitions."""

    __slots__ = ("definitions", "kinds")

    def __init__(self, definitions: Mapping[int, Definition]) -> None:
        self.definitions = definitions
        self.kinds = Kinds({NodeRef: NODE, VariableRef: VARIABLE, ContainerDef: SEQUENCE, StaticDef: STATIC})

    def entity(self, value: Any) -> Any:
        """Give the definition that a reference leads to; the reference itself where another split has it."""
        return self.definitions.get(value.index, value)

    def enter(self, node: NodeDef | NodeRef, visit: Visit) -> tuple[Pairs, bool]:
        """Give the children of a definition."""
        if isinstance(node, NodeRef):
            raise foreign(node, path_str(visit.path))
        return list(node.attributes), False

    def open(self, value: ContainerDef, kind: int, visit: Visit) -> tuple[Pairs, Any]:  # noqa: ARG002
        """Give the children of a container."""
        return list(zip(value.steps, value.children, strict=True)), None


def foreign(ref: NodeRef | VariableRef, path: str) -> StateError:
    """The error for a reference into another split."""
    return StateError(
        f"At {path!r}: reference to index {ref.index} ({ref.type.__name__}) of another split: merge what was split "
        "together in one merge_context()."
    )
