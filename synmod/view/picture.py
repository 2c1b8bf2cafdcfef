"""A picture before it is drawn: nodes and edges, as every format shows them. Its JSON form is a contract."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from synmod.leaves.frozen import Json
from synmod.module import Module

from .schemas import nest_text, title_text

NodeKind = Literal["module", "input", "output"]
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
        facts: What the JSON form holds besides.
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
        """Whether another node stands in this one, or is it."""
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
        """Return the stable form."""
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


class Sketch:
    """Nodes and edges while they are found.

    Attributes:
        root: The node of the whole program.
        by_path: The nodes by their ids.
    """

    def __init__(self) -> None:
        self.by_path: dict[str, Node] = {}
        self._by_module: dict[int, Node] = {}
        self._labels: dict[tuple[str, str, EdgeKind], dict[str, None]] = {}

    def module(self, module: Module, path: str, parent: Node | None, facts: dict[str, Json]) -> Node:
        """Add the box of a module."""
        above = "" if parent is None else parent.id
        label = path[len(above) + 1 :] if above else path
        label = label if "/" in label and label.rpartition("/")[2].isdigit() else label.rpartition("/")[2]
        if not label or label.isdigit():  # the name of a member is clearer than its place in a row
            label = module.name
        node = self._add(Node(path, "module", label, type(module).__name__, parent, facts))
        self._by_module[id(module)] = node
        return node

    def port(self, holder: Node, kind: NodeKind, name: str, schema: Any, *, outside: bool = False) -> Node:
        """Add what goes into a module, or comes out of it; one that is there already is given again."""
        path = f"{holder.id}#{kind}s/{name}"
        known = self.by_path.get(path)
        if known is not None:
            return known
        label = name if schema is None or isinstance(schema, (tuple, list)) else title_text(schema)
        facts = {"schema": "" if schema is None else nest_text(schema)}
        return self._add(Node(path, kind, label, "", None if outside else holder, facts))

    def _add(self, node: Node) -> Node:
        """Take a node in."""
        self.by_path[node.id] = node
        if node.parent is not None:
            node.parent.members.append(node)
        return node

    def node_of(self, module: Any) -> Node | None:
        """The box of a module."""
        return self._by_module.get(id(module))

    def connect(self, source: Node, target: Node, kind: EdgeKind, label: str = "") -> None:
        """Draw a line; a second one for data between two nodes only adds its label."""
        labels = self._labels.setdefault((source.id, target.id, kind), {})
        if label:
            labels[label] = None

    def picture(self, name: str) -> Picture:
        """Return what was found: a holder before what it holds, there inputs first and outputs last."""
        roots = [node for node in self.by_path.values() if node.parent is None]
        nodes: list[Node] = []
        waiting = _in_order(roots)[::-1]
        while waiting:
            node = waiting.pop()
            node.members = _in_order(node.members)
            nodes.append(node)
            waiting += reversed(node.members)
        edges = [
            Edge(self.by_path[source], self.by_path[target], kind, label)
            for (source, target, kind), labels in self._labels.items()
            for label in ([", ".join(labels)] if kind == "data" else labels)
        ]
        return Picture(name, nodes, edges)


_PLACES = {"input": 0, "module": 1, "output": 2}


def _in_order(nodes: Iterable[Node]) -> list[Node]:
    """Inputs first, outputs last, the rest as it was defined."""
    return sorted(nodes, key=lambda node: _PLACES[node.kind])
