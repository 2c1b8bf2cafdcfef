"""The nodes and edges of a picture, which every format draws; their JSON form is stable."""

import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final, Literal, NamedTuple

from synmod import data, leaves, scope, skip, tree
from synmod.flow import SymbolRef
from synmod.module import Execution, Module

from .outline import CallSchemas, Member, Outline, Part, calls_below, nest_text, row_of, steps_to, title_text
from .summary import skip_name

# -- nodes and edges ---------------------------------------------------------------------------------------------------

NodeKind = Literal["module", "input", "output"]
EdgeKind = Literal["data", "skip", "shared"]

STYLES: Final[dict[EdgeKind, str]] = {"data": "solid", "skip": "dashed", "shared": "dotted"}
"""How each kind of edge is drawn."""

_PLACES = {"input": 0, "module": 1, "output": 2}


@dataclass(slots=True)
class Node:
    """A module, or an input or output of one.

    Attributes:
        id: The path of a module; for an input or output, the path of its module with `#inputs/name` or `#outputs/name`.
        kind: Module, input or output.
        label: The text in the box.
        detail: The class of a module; empty for an input or output.
        parent: The module that contains it; None for the root, and for the inputs and outputs of a root that is drawn
            as a single box.
        facts: Further fields of the JSON form.
        members: The nodes that it contains: inputs first, outputs last, modules in definition order.
    """

    id: str
    kind: NodeKind
    label: str
    detail: str = ""
    parent: "Node | None" = None
    facts: dict[str, leaves.Json] = field(default_factory=dict[str, Any])
    members: "list[Node]" = field(default_factory=list["Node"])

    def holds(self, node: "Node | None") -> bool:
        """Whether a node is this one or lies inside it."""
        while node is not None and node is not self:
            node = node.parent
        return node is self


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
        boxes: The nodes by id.
        known: The paths of the modules whose insides are drawn.
        nodes: All nodes: each before its members, siblings in the order of `Node.members`.
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
            self._draw_around(self.boxes[""], self.outline.members[0].schemas)
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
        label = member.path if member.parent is None else member.path[len(member.parent.path) :].removeprefix("/")
        label = label if "/" in label and label.rpartition("/")[2].isdigit() else label.rpartition("/")[2]
        if not label or label.isdigit():  # the name of a module is clearer than its index
            label = member.module.name
        facts: dict[str, Any] = {
            "built": member.built,
            "schema": str(member.schemas),
            "variables": [steps_to(visit) for visit in member.variables],
            "trainable": [steps_to(visit) for visit in member.variables if tree.is_trainable(visit)],
            "language_models": member.model_names(),
        }
        parent = None if member.parent is None else self.boxes[member.parent.path]
        self._add(Node(member.path, "module", label, type(member.module).__name__, parent, facts))

    def _draw_around(self, root: Node, schemas: CallSchemas) -> None:
        """Draw the inputs and outputs of the program around a root whose inside is unknown."""
        for index, (name, nest) in enumerate(schemas.inputs):
            port = self.port(root, "input", name or f"input_{index}", nest, outside=True)
            self.connect(port, root, "data")
        if schemas.outputs is not None:
            self.connect(root, self.port(root, "output", "output", schemas.outputs, outside=True), "data")

    def port(self, holder: Node, kind: NodeKind, name: str, schema: Any, *, outside: bool = False) -> Node:
        """Return the node of an input or output of a module; the first call creates it."""
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
        """Draw a line, or add a label to the line of the same kind between the same nodes."""
        labels = self._labels.setdefault((source.id, target.id, kind), {})
        if label:
            labels[label] = None

    @property
    def name(self) -> str:
        """The name of the program."""
        return self.outline.members[0].module.name

    def lines(self) -> list[Edge]:
        """Return the edges as they are drawn: one line per kind between two nodes, with all its names."""
        return [
            Edge(self.boxes[source], self.boxes[target], kind, ", ".join(labels))
            for (source, target, kind), labels in self._labels.items()
        ]

    def to_json(self) -> leaves.Json:
        """Return the stable JSON form."""
        nodes: list[leaves.Json] = [
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
        edges: list[leaves.Json] = [  # skips and shared Variables have one edge per name
            {"source": source, "target": target, "kind": kind, "style": STYLES[kind], "label": label}
            for (source, target, kind), labels in self._labels.items()
            for label in ([", ".join(labels)] if kind == "data" else labels)
        ]
        return {"nodes": nodes, "edges": edges}


def _in_order(nodes: Iterable[Node]) -> list[Node]:
    """Return inputs first, then modules in definition order, then outputs."""
    return sorted(nodes, key=lambda node: _PLACES[node.kind])


# -- lines -------------------------------------------------------------------------------------------------------------


def _draw_skips(picture: Picture) -> None:
    """Draw a line from each module that stashes a value to each that pops or peeks at it."""
    members = picture.outline.members
    aliases = {member.path: member.alias_of.path for member in members if member.alias_of is not None}
    declares = any(member.module._record.declaration.skips for member in members)
    for route in skip.skip_layout(members[0].module).routes if declares else ():
        source, target = (picture.boxes[aliases.get(path, path)] for path in (route.producer, route.consumer))
        picture.connect(source, target, "skip", skip_name(route.key))


def _draw_shared(picture: Picture) -> None:
    """Draw a line between modules that hold the same Variable, directly or in a module that they share."""
    for (first, _), *rest in picture.outline.holders:
        for member, step in rest:
            if member is not first:
                picture.connect(picture.boxes[first.path], picture.boxes[member.path], "shared", str(step))
    for member in picture.outline.members:
        if member.alias_of is not None and member.parent is not None and member.parent.path not in picture.known:
            source, target = picture.boxes[member.alias_of.path], picture.boxes[member.parent.path]
            is_apart = not (source.holds(target) or target.holds(source))
            if is_apart and any(visit.kind == "variable" for visit in tree.walk(member.module)):
                picture.connect(source, target, "shared", source.label)


def _draw_graph(picture: Picture, member: Member) -> None:
    """Draw the graph of a functional program; lines pass through operators, which are not drawn."""
    flow = member.module._record.flow
    assert flow is not None
    holder, attributes = picture.boxes[member.path], vars(member.module)
    origins: dict[int, dict[int, Node]] = {}
    """For each symbol, the symbols of inputs and module outputs that it is made of, with the node that gives each."""

    def draw_to(target: Node, needs: dict[int, Node]) -> None:
        for number, source in needs.items():
            picture.connect(source, target, "data", title_text(flow.symbols[number].schema))

    picture.known.add(member.path)
    names: set[str] = set()
    for ref in leaves.leaves(flow.inputs):
        declared = flow.symbols[int(ref.index)]
        name = leaves.unique_name(str(declared.name), names)
        names.add(name)
        origins[ref.index] = {ref.index: picture.port(holder, "input", name, declared.schema)}
    for step in flow.steps:
        node = None if step.node is None else picture.node_of(attributes.get(step.node))
        needs = {number: source for need in step.needs for number, source in origins.get(need, {}).items()}
        if node is not None:
            draw_to(node, needs)
        for ref in leaves.leaves(step.outputs):
            if isinstance(ref, SymbolRef):
                origins.setdefault(ref.index, needs if node is None else {ref.index: node})
    for path, ref in leaves.leaves_with_path(flow.outputs):
        name = "/".join(map(str, path)) or "output"
        draw_to(picture.port(holder, "output", name, flow.symbols[int(ref.index)].schema), origins.get(ref.index, {}))


def _draw_row(picture: Picture, member: Member) -> None:
    """Draw parts that run in order, between the inputs of the first and the output of the last."""
    picture.known.add(member.path)
    holder = picture.boxes[member.path]
    inputs = enumerate(member.schemas.inputs or (("input", None),))
    sources = [picture.port(holder, "input", name or f"input_{index}", nest) for index, (name, nest) in inputs]
    for part in row_of(member.module) or ():
        sources = _draw_part(picture, part, sources)
    output = picture.port(holder, "output", "output", member.schemas.outputs)
    for source in sources:
        picture.connect(source, output, "data")


def _draw_part(picture: Picture, part: Part, sources: list[Node]) -> list[Node]:
    """Draw the lines into a part of a row, and return its last nodes; alternatives are side by side."""
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


_MAX_PARTS: Final = 1000


def _draw_call(picture: Picture, call: scope.TraceNode, module: Module) -> None:
    """Draw the data flow of a recorded call: from the last node that gave a value, or the first that gave a part of it.

    A module may return its own input, and a field may be part of later values. A part that several nodes gave, without
    having taken it, is a constant of Python, which shows nothing.
    """
    picture.known.add(call.path)
    holder = picture.boxes[call.path]
    events: list[tuple[float, bool, list[data.JsonDataModel[Any]], Node]] = []
    """The time, whether the node took the values (True) or gave them, the values, and the node."""
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
    first: dict[int, Node | None] = {}
    """The giver of each part; None for a constant."""
    received: set[tuple[int, str]] = set()
    for _, takes, values, node in sorted(events, key=lambda event: event[:2]):
        for value in values:
            if takes:
                received.update((id(part), node.id) for part in _parts(value))
            else:
                last[id(value)] = node
                for part in _parts(value):
                    giver = first.setdefault(id(part), node)
                    if giver is not node and (id(part), node.id) not in received:
                        first[id(part)] = None
                continue
            if id(value) in last:
                picture.connect(last[id(value)], node, "data", title_text(value._schema))
            else:
                for source in {giver.id: giver for part in _parts(value) if (giver := first.get(id(part)))}.values():
                    picture.connect(source, node, "data", title_text(value._schema))


def _arguments(module: Module, call: scope.TraceNode) -> Iterator[tuple[str, data.JsonDataModel[Any]]]:
    """Yield the values passed to a call, each with the name of its parameter."""
    signature = module._record.declaration.call
    parameters = [(signature.parameter(index), argument) for index, argument in enumerate(call.inputs or ())]
    positional = [(f"input_{i}" if x is None else x.name, value) for i, (x, value) in enumerate(parameters)]
    for name, argument in [*positional, *(call.kwargs or {}).items()]:
        for index, value in enumerate(_values(argument)):
            yield f"{name}_{index}" if index else name, value


def _values(nest: Any) -> list[data.JsonDataModel[Any]]:
    """Return the values of a nest."""
    return [leaf for leaf in leaves.leaves(nest) if isinstance(leaf, data.JsonDataModel)]


def _parts(value: data.JsonDataModel[Any]) -> Iterator[Any]:
    """Yield the strings, floats, lists and dicts in a value, whose identity shows where they come from.

    Not interned strings: each equal constant of a program is the same object.
    """
    waiting: list[Any] = [value._json]
    for _ in range(_MAX_PARTS):
        if not waiting:
            return
        part = waiting.pop()
        if isinstance(part, leaves.FrozenDict | leaves.FrozenList):
            yield part
            waiting += part.values() if isinstance(part, leaves.FrozenDict) else part
        elif isinstance(part, float) or (isinstance(part, str) and sys.intern(part[:1] + part[1:]) is not part):
            yield part
