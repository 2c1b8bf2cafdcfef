"""A picture before it is drawn: nodes and edges, as every format shows them. Its JSON form is a contract."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any, Final, Literal

from synmod.data import JsonDataModel
from synmod.flow import FlowGraph, FlowStep, SymbolRef, leaves, leaves_with_path
from synmod.leaves.frozen import FrozenDict, FrozenList, Json
from synmod.leaves.names import path_str, unused
from synmod.module import Execution, Module
from synmod.scope import TraceNode

from .outline import (
    Contract,
    Member,
    Outline,
    Part,
    below_first,
    calls_below,
    contracts_in,
    nest_text,
    recorded_call,
    row_of,
    skip_routes,
    title_text,
    unbuilt_in,
)

# -- what a picture holds ----------------------------------------------------------------------------------------------

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


# -- the picture of a program ------------------------------------------------------------------------------------------


def picture_of(module: Module) -> Picture:
    """Return everything that a picture of a program shows."""
    outline, sketch = Outline(module), Sketch()
    contracts = contracts_in(outline)
    modules = _draw_modules(sketch, outline, contracts)
    known = _draw_static(sketch, modules, contracts)
    call = recorded_call(module)
    if call is not None:
        known |= draw_calls(sketch, call, modules, known)
    if "" not in known:
        _draw_around(sketch, sketch.by_path[""], contracts[id(module)])
    _draw_skips(sketch, outline)
    _draw_shared(sketch, outline, known)
    return sketch.picture(module.name)


def _draw_modules(sketch: Sketch, outline: Outline, contracts: dict[int, Contract]) -> dict[str, Module]:
    """Draw a box for each module; return the modules by path."""
    unbuilt, paths = unbuilt_in(outline), outline.paths()
    modules: dict[str, Module] = {}
    for member in outline.members:
        if member.stands_for is None:
            part = member.module
            names = [path_str(steps) for steps, _, _ in member.variables]
            facts: dict[str, Any] = {
                "built": id(part) not in unbuilt,
                "schema": str(contracts[id(part)]),
                "variables": names,
                "trainable": [name for name, (_, _, counts) in zip(names, member.variables, strict=True) if counts],
                "language_models": member.model_names(),
            }
            above = None if member.above is None else sketch.node_of(member.above.module)
            sketch.module(part, paths[id(part)], above, facts)
            modules[paths[id(part)]] = part
    return modules


def _draw_static(sketch: Sketch, modules: dict[str, Module], contracts: dict[int, Contract]) -> set[str]:
    """Draw the insides of modules that are known without a call; return their paths."""
    known: set[str] = set()
    for path, module in modules.items():
        if module._record.flow is not None:
            draw_graph(sketch, sketch.by_path[path], module)
        elif row_of(module) is not None:
            draw_row(sketch, sketch.by_path[path], module, contracts[id(module)])
        else:
            continue
        known.add(path)
    return known


def _draw_around(sketch: Sketch, root: Node, contract: Contract) -> None:
    """Draw what goes into the program and comes out of it, around a box whose inside is not known."""
    for index, (name, nest) in enumerate(contract.inputs):
        port = sketch.port(root, "input", name or f"input_{index}", nest, outside=True)
        sketch.connect(port, root, "data")
    if contract.outputs is not None:
        sketch.connect(root, sketch.port(root, "output", "output", contract.outputs, outside=True), "data")


def _draw_skips(sketch: Sketch, outline: Outline) -> None:
    """Draw a line from each module that stashes a value to each that pops or peeks at it."""
    aliases: dict[str, str] = {}
    for route in skip_routes(outline):
        if not aliases:
            aliases = outline.aliases()
        ends = [sketch.by_path[aliases.get(path, path)] for path in (route.producer, route.consumer)]
        sketch.connect(ends[0], ends[1], "skip", route.name)


def _draw_shared(sketch: Sketch, outline: Outline, known: set[str]) -> None:
    """Draw a line between modules that hold the same Variable, themselves or in a module that both hold."""
    for (first, _), *others in outline.holders:
        source = sketch.node_of(first.module)
        for member, step in others:
            target = sketch.node_of(member.module)
            if source is not None and target is not None and source is not target:
                sketch.connect(source, target, "shared", str(step))
    full = _with_variables(outline)
    for member in outline.members:
        if member.stands_for is None or member.above is None or id(member.module) not in full:
            continue
        source, target = sketch.node_of(member.module), sketch.node_of(member.above.module)
        if source is None or target is None or target.id in known:
            continue
        if not (source.holds(target) or target.holds(source)):
            sketch.connect(source, target, "shared", source.label)


def _with_variables(outline: Outline) -> set[int]:
    """The ids of the modules that hold a Variable, themselves or below, be it one that others hold as well."""
    full = {id(member.module) for holders in outline.holders for member, _ in holders}
    for member in below_first(outline.members[0]):
        if _has_any(member, full):
            full.add(id(member.module))
    return full


def _has_any(member: Member, full: set[int]) -> bool:
    """Whether a member holds a Variable, given which of those below do."""
    return bool(member.variables) or any(id(part.module) in full for part in member.below)


def draw_graph(sketch: Sketch, holder: Node, module: Module) -> None:
    """Draw the graph of a functional program; operators are not drawn, lines go through them."""
    flow: FlowGraph = module._record.flow
    attributes = vars(module)
    givers: dict[int, Node | FlowStep] = {}
    names: set[str] = set()
    for ref in leaves(flow.inputs):
        declared = flow.symbols[int(ref.index)]
        name = unused(str(declared.name), names)
        names.add(name)
        givers[ref.index] = sketch.port(holder, "input", name, declared.schema)
    steps = [(step, None if step.node is None else sketch.node_of(attributes.get(step.node))) for step in flow.steps]
    for step, node in steps:
        for ref in leaves(step.gives):
            if isinstance(ref, SymbolRef):
                givers.setdefault(ref.index, step if node is None else node)
    for step, node in steps:
        if node is not None:
            _draw_to(sketch, flow, givers, step.needs, node)
    for path, ref in leaves_with_path(flow.outputs):
        name = "/".join(map(str, path)) or "output"
        given = flow.symbols[int(ref.index)]
        port = sketch.port(holder, "output", name, given.schema)
        _draw_to(sketch, flow, givers, [ref.index], port)


def _draw_to(
    sketch: Sketch, flow: FlowGraph, givers: dict[int, Node | FlowStep], numbers: Iterable[int], target: Node
) -> None:
    """Draw a line to a node from each that gives one of these symbols."""
    for number, node in _origins(givers, numbers):
        sketch.connect(node, target, "data", title_text(flow.symbols[number].schema))


def _origins(givers: dict[int, Node | FlowStep], numbers: Iterable[int]) -> Iterator[tuple[int, Node]]:
    """Return the nodes behind symbols, back through operators; without recursion, each symbol once."""
    waiting = list(numbers)[::-1]
    seen: set[int] = set()
    while waiting:
        number = waiting.pop()
        giver = givers.get(number)
        if giver is None or number in seen:
            continue
        seen.add(number)
        if isinstance(giver, FlowStep):
            waiting += reversed(giver.needs)
        else:
            yield number, giver


def draw_row(sketch: Sketch, holder: Node, module: Module, contract: Contract) -> None:
    """Draw parts that run one after the other, between what goes into the first and comes out of the last."""
    known = contract.inputs or (("input", None),)
    sources = [sketch.port(holder, "input", name or f"input_{index}", nest) for index, (name, nest) in enumerate(known)]
    for part in row_of(module) or ():
        sources = _draw_part(sketch, part, sources)
    output = sketch.port(holder, "output", "output", contract.outputs)
    for source in sources:
        sketch.connect(source, output, "data")


def _draw_part(sketch: Sketch, part: Part, sources: list[Node]) -> list[Node]:
    """Draw the lines into a part of a row; return the nodes that come out of it. Alternatives stand side by side."""
    if isinstance(part, Execution):
        if part.order == "in order":
            for inner in part.parts:
                sources = _draw_part(sketch, inner, sources)
            return sources
        ends = [_draw_part(sketch, inner, sources) for inner in part.parts]
        return [node for end in ends for node in end]
    node = None if part is None else sketch.node_of(part.module)
    if node is None:
        return sources
    for source in sources:
        sketch.connect(source, node, "data")
    return [node]


_MOST_PARTS: Final = 1000
_SHORTEST_TEXT: Final = 2  # Python keeps one object for each shorter text, whoever made it

Giver = tuple["Node", float]
"""A node that gave a value, and when it was there."""


def draw_calls(sketch: Sketch, root: TraceNode, modules: dict[str, Module], drawn: set[str]) -> set[str]:
    """Draw what flowed inside the modules of a recorded call whose insides are not drawn yet.

    Args:
        sketch: Where to.
        root: The recorded entry call.
        modules: The modules by path.
        drawn: The paths of those whose insides are known better, from their graph.

    Returns:
        The paths of those that were drawn here.
    """
    found: set[str] = set()
    for call in calls_below(root):
        if call.children and call.inputs is not None and call.path in modules and call.path not in drawn:
            found.add(call.path)
            _Inside(sketch, call, modules[call.path]).draw()
    return found


class _Inside:
    """One call of a module, seen from inside: who gave which value, when."""

    def __init__(self, sketch: Sketch, call: TraceNode, module: Module) -> None:
        self.sketch = sketch
        self.call = call
        self.holder = sketch.by_path[call.path]
        self.module = module
        self.values: dict[int, list[Giver]] = {}
        self.parts: dict[int, list[Giver]] = {}

    def draw(self) -> None:
        """Draw the lines between what went in, the calls below, and what came out."""
        for name, value in self._arguments():
            port = self.sketch.port(self.holder, "input", name, getattr(value, "_schema", None))
            self._give(value, port, self.call.start)
        children = [(child, self.sketch.by_path.get(child.path)) for child in self.call.children]
        for child, node in children:
            if node is not None and child.end is not None:
                for value in _values(child.outputs):
                    self._give(value, node, child.end)
        for givers in (*self.values.values(), *self.parts.values()):
            givers.sort(key=itemgetter(1))
        for child, node in children:
            if node is not None:
                for value in _values([child.inputs, child.kwargs]):
                    self._take(value, node, child.start)
        for index, value in enumerate(_values(self.call.outputs)):
            name = "output" if not index else f"output_{index}"
            port = self.sketch.port(self.holder, "output", name, value._schema)
            self._take(value, port, float("inf"))

    def _arguments(self) -> Iterator[tuple[str, JsonDataModel[Any]]]:
        """The values that went in, with the names of their parameters."""
        signature = self.module._record.declaration.call
        named: list[tuple[str, Any]] = []
        for index, argument in enumerate(self.call.inputs or ()):
            parameter = signature.parameter(index)
            named.append((f"input_{index}" if parameter is None else parameter.name, argument))
        for name, argument in [*named, *(self.call.kwargs or {}).items()]:
            for index, value in enumerate(_values(argument)):
                yield f"{name}_{index}" if index else name, value

    def _give(self, value: JsonDataModel[Any], node: Node, at: float) -> None:
        """Note that a node gave a value."""
        self.values.setdefault(id(value), []).append((node, at))
        for part in _parts(value):
            self.parts.setdefault(id(part), []).append((node, at))

    def _take(self, value: JsonDataModel[Any], node: Node, at: float) -> None:
        """Draw the lines to a node that took a value."""
        title = title_text(value._schema)
        giver = _latest(self.values.get(id(value), ()), at)
        found = [giver] if giver else [_first(self.parts.get(id(part), ()), at) for part in _parts(value)]
        for source in dict.fromkeys(each.id for each in found if each is not None):
            self.sketch.connect(self.sketch.by_path[source], node, "data", title)


def _latest(givers: Sequence[Giver], at: float) -> Node | None:
    """The node that gave a value last before a moment: a module may hand on what it was given."""
    index = bisect_right(givers, at, key=itemgetter(1))
    return givers[index - 1][0] if index else None


def _first(givers: Sequence[Giver], at: float) -> Node | None:
    """The node that gave a part first: it may have gone on in the values of others."""
    return givers[0][0] if givers and givers[0][1] <= at else None


def _values(nest: Any) -> list[JsonDataModel[Any]]:
    """The values of a nest."""
    return [leaf for leaf in leaves(nest) if isinstance(leaf, JsonDataModel)]


def _parts(value: JsonDataModel[Any]) -> Iterator[Any]:
    """The texts, lists and objects in a value that are objects of their own."""
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
