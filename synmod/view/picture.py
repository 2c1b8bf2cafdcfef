"""A picture before it is drawn: nodes and edges, as every format shows them. Its JSON form is a contract."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal

if TYPE_CHECKING:
    from synmod.leaves.frozen import Json

NodeKind = Literal["module", "function", "input", "output"]
EdgeKind = Literal["data", "skip", "shared"]

STYLES: Final[dict[EdgeKind, str]] = {"data": "solid", "skip": "dashed", "shared": "dotted"}
"""How each kind of edge is drawn."""


@dataclass(slots=True)
class Node:
    """A box, or what goes into or comes out of one.

    Attributes:
        id: The path of a module; for an input or output that of its module, `#` and its name.
        kind: What it is.
        label: What stands in the box.
        detail: The class of a module, the schema of an input or output.
        parent: The module that it stands in; None for the root and for what goes into and out of a root that is a
            single box.
        facts: What the JSON form says besides.
        members: What stands in it, in definition order.
    """

    id: str
    kind: NodeKind
    label: str
    detail: str = ""
    parent: Node | None = None
    facts: dict[str, Json] = field(default_factory=dict[str, Any])
    members: list[Node] = field(default_factory=list["Node"])

    def holds(self, other: Node) -> bool:
        """Tell whether another node stands in this one, or is it."""
        at: Node | None = other
        while at is not None and at is not self:
            at = at.parent
        return at is self


@dataclass(frozen=True, slots=True)
class Edge:
    """A line from one node to another."""

    source: Node
    target: Node
    kind: EdgeKind
    label: str = ""

    @property
    def style(self) -> str:
        """How it is drawn."""
        return STYLES[self.kind]


@dataclass(frozen=True, slots=True)
class Picture:
    """All nodes, those that hold others before them, and all edges, each once."""

    name: str
    nodes: list[Node]
    edges: list[Edge]

    def lines(self) -> list[Edge]:
        """The edges as they are drawn: of several skips, or shared Variables, between two nodes one line."""
        lines: dict[tuple[str, str, EdgeKind], Edge] = {}
        for edge in self.edges:
            key = edge.source.id, edge.target.id, edge.kind
            known = lines.get(key)
            label = edge.label if known is None else f"{known.label}, {edge.label}"
            lines[key] = Edge(edge.source, edge.target, edge.kind, label)
        return list(lines.values())

    def to_json(self) -> Json:
        """Give the stable form."""
        return {
            "nodes": [
                {
                    "id": node.id,
                    "kind": node.kind,
                    "label": node.label,
                    "class": node.detail,
                    "parent": None if node.parent is None else node.parent.id,
                    **node.facts,
                }
                for node in self.nodes
            ],
            "edges": [
                {
                    "source": edge.source.id,
                    "target": edge.target.id,
                    "kind": edge.kind,
                    "style": edge.style,
                    "label": edge.label,
                }
                for edge in self.edges
            ],
        }
