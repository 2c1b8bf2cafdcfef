"""A picture before it is drawn: nodes and edges, as every format shows them. Its JSON form is a contract."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any, Final, Literal, NamedTuple

from synmod.data import JsonDataModel
from synmod.flow import FlowGraph, SymbolRef, leaves, leaves_with_path
from synmod.leaves.frozen import FrozenDict, FrozenList, Json
from synmod.leaves.names import unused
from synmod.module import Execution, Module
from synmod.scope import TraceNode
from synmod.skip import skip_layout
from synmod.tree import is_trainable, walk

from .outline import Contract, Member, Outline, Part, calls_below, nest_text, row_of, steps_to, title_text
from .summary import skip_name

# -- what a picture holds ----------------------------------------------------------------------------------------------

NodeKind = Literal["module", "input", "output"]
EdgeKind = Literal["data", "skip", "shared"]

STYLES: Final[dict[EdgeKind, str]] = {"data": "solid", "skip": "dashed", "shared": "dotted"}
"""How each kind of edge is drawn."""

_PLACES = {"input": 0, "module": 1, "output": 2}


@dataclass(slots=True)
class Node:
    """A box, or what goes into or comes out of one.

    Attributes:
        id: The path of a module; for an input or output that of its module, `#` and its name.
        kind: What it is.
        label: What stands in the box.
        detail: The class of a module; empty for an input or output.
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


class Edge(NamedTuple):
    """A line from one node to another."""

    source: Node
    target: Node
    kind: EdgeKind
    label: str = ""


class Picture:
    """Everything that a picture of a program shows.

    Attributes:
        outline: The outline of the program.
        boxes: The nodes by their ids.
        known: The paths of the modules whose insides are drawn.
        nodes: All nodes: a holder before what it holds, there inputs first and outputs last.
    """

    def __init__(self, module: Module) -> None:
        self.outline = Outline(module)
        self.boxes: dict[str, Node] = {}
        self.known: set[str] = set()
        self._labels: dict[tuple[str, str, EdgeKind], dict[str, None]] = {}
        for member in self.outline.places.values():
            self._draw_module(member)
        for member in self.outline.places.values():
            if member.module._record.flow is not None:
                _draw_graph(self, member)
            elif row_of(member.module) is not None:
                _draw_row(self, member)
        modules = {member.path: member.module for member in self.outline.places.values()}
        for call in calls_below(self.outline.call):
            if call.children and call.inputs is not None and call.path in modules and call.path not in self.known:
                _draw_call(self, call, modules[call.path])
        if "" not in self.known:
            self._draw_around(self.boxes[""], self.outline.members[0].contract)
        _draw_skips(self)
        _draw_shared(self)
        self.nodes: list[Node] = []
        waiting = _in_order(node for node in self.boxes.values() if node.parent is None)[::-1]
        while waiting:
            node = waiting.pop()
            node.members = _in_order(node.members)
            self.nodes.append(node)
            waiting += reversed(node.members)

    def _draw_module(self, member: Member) -> None:
        """Draw the box of a module."""
        label = member.path if member.above is None else member.path[len(member.above.path) :].removeprefix("/")
        label = label if "/" in label and label.rpartition("/")[2].isdigit() else label.rpartition("/")[2]
        if not label or label.isdigit():  # the name of a member is clearer than its place in a row
            label = member.module.name
        facts: dict[str, Any] = {
            "built": member.built,
            "schema": str(member.contract),
            "variables": [steps_to(visit) for visit in member.variables],
            "trainable": [steps_to(visit) for visit in member.variables if is_trainable(visit)],
            "language_models": member.model_names(),
        }
        above = None if member.above is None else self.boxes[member.above.path]
        self._add(Node(member.path, "module", label, type(member.module).__name__, above, facts))

    def _draw_around(self, root: Node, contract: Contract) -> None:
        """Draw what goes into the program and comes out of it, around a box whose inside is not known."""
        for index, (name, nest) in enumerate(contract.inputs):
            port = self.port(root, "input", name or f"input_{index}", nest, outside=True)
            self.connect(port, root, "data")
        if contract.outputs is not None:
            self.connect(root, self.port(root, "output", "output", contract.outputs, outside=True), "data")

    def port(self, holder: Node, kind: NodeKind, name: str, schema: Any, *, outside: bool = False) -> Node:
        """Return what goes into a module, or comes out of it, made when it is asked for first."""
        path = f"{holder.id}#{kind}s/{name}"
        if path not in self.boxes:
            label = name if schema is None or isinstance(schema, (tuple, list)) else title_text(schema)
            facts: dict[str, Any] = {"schema": "" if schema is None else nest_text(schema)}
            self._add(Node(path, kind, label, "", None if outside else holder, facts))
        return self.boxes[path]

    def _add(self, node: Node) -> None:
        self.boxes[node.id] = node
        if node.parent is not None:
            node.parent.members.append(node)

    def node_of(self, module: Any) -> Node | None:
        """Return the box of a module."""
        member = self.outline.places.get(id(module))
        return None if member is None else self.boxes[member.path]

    def connect(self, source: Node, target: Node, kind: EdgeKind, label: str = "") -> None:
        """Draw a line; a second one for data between two nodes only adds its label."""
        labels = self._labels.setdefault((source.id, target.id, kind), {})
        if label:
            labels[label] = None

    @property
    def name(self) -> str:
        """The name of the program."""
        return self.outline.members[0].module.name

    def edges(self) -> list[Edge]:
        """Return all edges, each once; of skips and shared Variables one for each name."""
        return [
            Edge(self.boxes[source], self.boxes[target], kind, label)
            for (source, target, kind), labels in self._labels.items()
            for label in ([", ".join(labels)] if kind == "data" else labels)
        ]

    def lines(self) -> list[Edge]:
        """Return the edges as they are drawn: one line for all names of one kind between two nodes."""
        return [
            Edge(self.boxes[source], self.boxes[target], kind, ", ".join(labels))
            for (source, target, kind), labels in self._labels.items()
        ]

    def to_json(self) -> Json:
        """Return the stable form."""
        nodes: list[Json] = [
            {
                "id": node.id,
                "kind": node.kind,
                "label": node.label,
                "class": node.detail,
                "parent": None if node.parent is None else node.parent.id,
                **node.facts,
            }
            for node in self.nodes
        ]
        edges: list[Json] = [
            {"source": source.id, "target": target.id, "kind": kind, "style": STYLES[kind], "label": label}
            for source, target, kind, label in self.edges()
        ]
        return {"nodes": nodes, "edges": edges}


def _in_order(nodes: Iterable[Node]) -> list[Node]:
    """Return inputs first, outputs last, the rest as it was defined."""
    return sorted(nodes, key=lambda node: _PLACES[node.kind])


# -- what flows where --------------------------------------------------------------------------------------------------


def _draw_skips(picture: Picture) -> None:
    """Draw a line from each module that stashes a value to each that pops or peeks at it."""
    members = picture.outline.members
    aliases = {member.path: member.stands_for.path for member in members if member.stands_for is not None}
    declares = any(member.module._record.declaration.skips for member in members)
    for route in skip_layout(members[0].module).routes if declares else ():
        source, target = (picture.boxes[aliases.get(path, path)] for path in (route.producer, route.consumer))
        picture.connect(source, target, "skip", skip_name(route.key))


def _draw_shared(picture: Picture) -> None:
    """Draw a line between modules that hold the same Variable, themselves or in a module that both hold."""
    for (first, _), *others in picture.outline.holders:
        for member, step in others:
            if member is not first:
                picture.connect(picture.boxes[first.path], picture.boxes[member.path], "shared", str(step))
    for member in picture.outline.members:
        if member.stands_for is not None and member.above is not None and member.above.path not in picture.known:
            source, target = picture.boxes[member.stands_for.path], picture.boxes[member.above.path]
            is_apart = not (source.holds(target) or target.holds(source))
            if is_apart and any(visit.kind == "variable" for visit in walk(member.module)):
                picture.connect(source, target, "shared", source.label)


def _draw_graph(picture: Picture, member: Member) -> None:
    """Draw the graph of a functional program; operators are not drawn, lines go through them."""
    flow: FlowGraph = member.module._record.flow
    holder, attributes = picture.boxes[member.path], vars(member.module)
    origins: dict[int, dict[int, Node]] = {}
    """By symbol: the inputs and outputs of modules that it is made of, with who gives them."""

    def draw_to(target: Node, needs: dict[int, Node]) -> None:
        for number, source in needs.items():
            picture.connect(source, target, "data", title_text(flow.symbols[number].schema))

    picture.known.add(member.path)
    names: set[str] = set()
    for ref in leaves(flow.inputs):
        declared = flow.symbols[int(ref.index)]
        name = unused(str(declared.name), names)
        names.add(name)
        origins[ref.index] = {ref.index: picture.port(holder, "input", name, declared.schema)}
    for step in flow.steps:
        node = None if step.node is None else picture.node_of(attributes.get(step.node))
        needs = {number: giver for need in step.needs for number, giver in origins.get(need, {}).items()}
        if node is not None:
            draw_to(node, needs)
        for ref in leaves(step.gives):
            if isinstance(ref, SymbolRef):
                origins.setdefault(ref.index, needs if node is None else {ref.index: node})
    for path, ref in leaves_with_path(flow.outputs):
        name = "/".join(map(str, path)) or "output"
        draw_to(picture.port(holder, "output", name, flow.symbols[int(ref.index)].schema), origins.get(ref.index, {}))


def _draw_row(picture: Picture, member: Member) -> None:
    """Draw parts that run one after the other, between what goes into the first and comes out of the last."""
    picture.known.add(member.path)
    holder, known = picture.boxes[member.path], member.contract.inputs or (("input", None),)
    sources = [
        picture.port(holder, "input", name or f"input_{index}", nest) for index, (name, nest) in enumerate(known)
    ]
    for part in row_of(member.module) or ():
        sources = _draw_part(picture, part, sources)
    output = picture.port(holder, "output", "output", member.contract.outputs)
    for source in sources:
        picture.connect(source, output, "data")


def _draw_part(picture: Picture, part: Part, sources: list[Node]) -> list[Node]:
    """Draw the lines into a part of a row; return the nodes that come out of it. Alternatives stand side by side."""
    if isinstance(part, Execution):
        if part.order == "in order":
            for inner in part.parts:
                sources = _draw_part(picture, inner, sources)
            return sources
        return [node for inner in part.parts for node in _draw_part(picture, inner, sources)]
    node = None if part is None else picture.node_of(part.module)
    if node is None:
        return sources
    for source in sources:
        picture.connect(source, node, "data")
    return [node]


_MOST_PARTS: Final = 1000
_SHORTEST_TEXT: Final = 2  # Python keeps one object for each shorter text, whoever made it


def _draw_call(picture: Picture, call: TraceNode, module: Module) -> None:
    """Draw what flowed inside a recorded call: a value comes from who gave it last, a part from who gave it first.

    A module may hand on what it was given, and a field may go on in the values of others.
    """
    picture.known.add(call.path)
    holder = picture.boxes[call.path]
    events: list[tuple[float, bool, list[JsonDataModel[Any]], Node]] = []
    """When a node gave values, or took them (True)."""
    for name, value in _arguments(module, call):
        events.append((call.start, False, [value], picture.port(holder, "input", name, value._schema)))
    for child in call.children:
        node = picture.boxes.get(child.path)
        if node is not None:
            events.append((child.start, True, _values([child.inputs, child.kwargs]), node))
            if child.end is not None:
                events.append((child.end, False, _values(child.outputs), node))
    for index, value in enumerate(_values(call.outputs)):
        port = picture.port(holder, "output", f"output_{index}" if index else "output", value._schema)
        events.append((float("inf"), True, [value], port))
    last: dict[int, Node] = {}
    first: dict[int, Node] = {}
    for _, takes, values, node in sorted(events, key=itemgetter(0, 1)):
        for value in values:
            if not takes:
                last[id(value)] = node
                for part in _parts(value):
                    first.setdefault(id(part), node)
            elif id(value) in last:
                picture.connect(last[id(value)], node, "data", title_text(value._schema))
            else:
                for source in {giver.id: giver for part in _parts(value) if (giver := first.get(id(part)))}.values():
                    picture.connect(source, node, "data", title_text(value._schema))


def _arguments(module: Module, call: TraceNode) -> Iterator[tuple[str, JsonDataModel[Any]]]:
    """Yield the values that went into a call, with the names of their parameters."""
    signature = module._record.declaration.call
    parameters = [(signature.parameter(index), argument) for index, argument in enumerate(call.inputs or ())]
    named = [(f"input_{i}" if found is None else found.name, given) for i, (found, given) in enumerate(parameters)]
    for name, argument in [*named, *(call.kwargs or {}).items()]:
        for index, value in enumerate(_values(argument)):
            yield f"{name}_{index}" if index else name, value


def _values(nest: Any) -> list[JsonDataModel[Any]]:
    """Return the values of a nest."""
    return [leaf for leaf in leaves(nest) if isinstance(leaf, JsonDataModel)]


def _parts(value: JsonDataModel[Any]) -> Iterator[Any]:
    """Yield the texts, lists and objects in a value that are objects of their own."""
    waiting: list[Any] = [value._json]
    for _ in range(_MOST_PARTS):
        if not waiting:
            return
        part = waiting.pop()
        if isinstance(part, FrozenDict | FrozenList):
            yield part
            waiting += part.values() if isinstance(part, FrozenDict) else part
        elif isinstance(part, float) or (isinstance(part, str) and len(part) >= _SHORTEST_TEXT):
            yield part
