"""The nodes and edges of a picture, which every format draws; their JSON form is stable.

Also HTML pages without scripts or other files: of a picture, and of a trace, whose nested calls open, each with a bar
on the time axis.
"""

import json
import os
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final, Literal, NamedTuple, cast

from synmod import data, errors, leaves, scope, skip, tree
from synmod.flow import SymbolRef
from synmod.module import Execution, Module

from .outline import Contract, Member, Outline, Part, calls_below, nest_text, row_of, steps_to, title_text
from .summary import dollars_text, plural, printable, seconds_text, skip_name

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

    def holds(self, other: "Node") -> bool:
        """Whether another node is this one or lies inside it."""
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
        if not label or label.isdigit():  # the name of a module is clearer than its index
            label = member.module.name
        facts: dict[str, Any] = {
            "built": member.built,
            "schema": str(member.contract),
            "variables": [steps_to(visit) for visit in member.variables],
            "trainable": [steps_to(visit) for visit in member.variables if tree.is_trainable(visit)],
            "language_models": member.model_names(),
        }
        above = None if member.above is None else self.boxes[member.above.path]
        self._add(Node(member.path, "module", label, type(member.module).__name__, above, facts))

    def _draw_around(self, root: Node, contract: Contract) -> None:
        """Draw the inputs and outputs of the program around a root whose inside is unknown."""
        for index, (name, nest) in enumerate(contract.inputs):
            port = self.port(root, "input", name or f"input_{index}", nest, outside=True)
            self.connect(port, root, "data")
        if contract.outputs is not None:
            self.connect(root, self.port(root, "output", "output", contract.outputs, outside=True), "data")

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

    def edges(self) -> list[Edge]:
        """Return all edges, each once; skips and shared Variables have one edge per name."""
        return [
            Edge(self.boxes[source], self.boxes[target], kind, label)
            for (source, target, kind), labels in self._labels.items()
            for label in ([", ".join(labels)] if kind == "data" else labels)
        ]

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
        edges: list[leaves.Json] = [
            {"source": source.id, "target": target.id, "kind": kind, "style": STYLES[kind], "label": label}
            for source, target, kind, label in self.edges()
        ]
        return {"nodes": nodes, "edges": edges}


def _in_order(nodes: Iterable[Node]) -> list[Node]:
    """Return inputs first, then modules in definition order, then outputs."""
    return sorted(nodes, key=lambda node: _PLACES[node.kind])


# -- lines -------------------------------------------------------------------------------------------------------------


def _draw_skips(picture: Picture) -> None:
    """Draw a line from each module that stashes a value to each that pops or peeks at it."""
    members = picture.outline.members
    aliases = {member.path: member.stands_for.path for member in members if member.stands_for is not None}
    declares = any(member.module._record.declaration.skips for member in members)
    for route in skip.skip_layout(members[0].module).routes if declares else ():
        source, target = (picture.boxes[aliases.get(path, path)] for path in (route.producer, route.consumer))
        picture.connect(source, target, "skip", skip_name(route.key))


def _draw_shared(picture: Picture) -> None:
    """Draw a line between modules that hold the same Variable, directly or in a module that they share."""
    for (first, _), *others in picture.outline.holders:
        for member, step in others:
            if member is not first:
                picture.connect(picture.boxes[first.path], picture.boxes[member.path], "shared", str(step))
    for member in picture.outline.members:
        if member.stands_for is not None and member.above is not None and member.above.path not in picture.known:
            source, target = picture.boxes[member.stands_for.path], picture.boxes[member.above.path]
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
        name = leaves.unused(str(declared.name), names)
        names.add(name)
        origins[ref.index] = {ref.index: picture.port(holder, "input", name, declared.schema)}
    for step in flow.steps:
        node = None if step.node is None else picture.node_of(attributes.get(step.node))
        needs = {number: source for need in step.needs for number, source in origins.get(need, {}).items()}
        if node is not None:
            draw_to(node, needs)
        for ref in leaves.leaves(step.gives):
            if isinstance(ref, SymbolRef):
                origins.setdefault(ref.index, needs if node is None else {ref.index: node})
    for path, ref in leaves.leaves_with_path(flow.outputs):
        name = "/".join(map(str, path)) or "output"
        draw_to(picture.port(holder, "output", name, flow.symbols[int(ref.index)].schema), origins.get(ref.index, {}))


def _draw_row(picture: Picture, member: Member) -> None:
    """Draw parts that run in order, between the inputs of the first and the output of the last."""
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
    """Draw the lines into a part of a row, and return its last nodes; alternatives stand side by side."""
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
    taken: set[tuple[int, str]] = set()
    for _, takes, values, node in sorted(events, key=lambda event: event[:2]):
        for value in values:
            if takes:
                taken.update((id(part), node.id) for part in _parts(value))
            else:
                last[id(value)] = node
                for part in _parts(value):
                    giver = first.setdefault(id(part), node)
                    if giver is not node and (id(part), node.id) not in taken:
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
    named = [(f"input_{i}" if found is None else found.name, given) for i, (found, given) in enumerate(parameters)]
    for name, argument in [*named, *(call.kwargs or {}).items()]:
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


_PAGE: Final = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
:root {{ color-scheme: light dark; --ink: #1c2430; --soft: #687384; --rule: #d9dee5; --paper: #fff; --band: #f4f6f8;
  --module: #5b86c9; --model: #c98f35; --error: #c0392b; }}
@media (prefers-color-scheme: dark) {{ :root {{ --ink: #dfe5ec; --soft: #93a0b0; --rule: #313945; --paper: #15191f;
  --band: #1d232b; --module: #6c9be0; --model: #dba54b; --error: #ff7b6b; }} }}
* {{ box-sizing: border-box; }}
body {{ margin: 0 auto; max-width: 90rem; padding: 1.5rem; background: var(--paper); color: var(--ink);
  font: 14px/1.5 ui-sans-serif, system-ui, sans-serif; }}
h1 {{ font-size: 1.15rem; margin: 0; }}
pre {{ margin: 0; padding: .5rem .7rem; background: var(--band); border-radius: 4px; overflow: auto;
  font: 12px/1.5 ui-monospace, monospace; }}
{style}</style>
</head>
<body>
<h1>{title}</h1>
{body}
</body>
</html>
"""


def escaped(text: str) -> str:
    """Return a text escaped for XML or HTML, without control characters except line breaks."""
    return leaves.escaped("\n".join(map(printable, text.split("\n"))))


def written(what: str, text: str, path: Any) -> str:
    """Return a text, and write it to `path` if one is given."""
    if path is not None and not isinstance(path, str | os.PathLike):
        raise errors.ArgumentError(
            f"{what}: path={path!r:.100} is not a path; write a file name, or None to get only the text."
        )
    if path is not None:
        leaves.write_atomic(cast("str | os.PathLike[str]", path), text)
    return text


# -- a picture ---------------------------------------------------------------------------------------------------------

_PICTURE_STYLE: Final = """.picture { overflow-x: auto; margin: 1.2rem 0; }
.picture svg { display: block; max-width: 100%; height: auto; }
"""


def picture_page(name: str, svg: str, summary: str) -> str:
    """Return the page of a picture, with the summary below it."""
    body = f'<div class="picture">\n{svg}</div>\n<pre>{escaped(summary)}</pre>'
    return _PAGE.format(title=escaped(name), style=_PICTURE_STYLE, body=body)


# -- a trace -----------------------------------------------------------------------------------------------------------

_MAX_CALLS: Final = 5_000
_OPEN_LEVELS: Final = 3
_SHOWN_FIELDS: Final = ("inputs", "kwargs", "request", "reply", "outputs", "error")
"""The fields of a call that are shown one by one, in this order."""

_TRACE_STYLE: Final = """h1 + p { color: var(--soft); margin: .2rem 0 1.2rem; }
details { border-left: 1px solid var(--rule); padding-left: .9rem; }
body > details { border-left: 0; padding-left: 0; }
summary { display: flex; gap: 1rem; align-items: center; padding: .15rem .3rem; border-radius: 4px; cursor: pointer;
  list-style: none; }
summary::-webkit-details-marker { display: none; }
summary:hover, summary:focus-visible { background: var(--band); }
summary b { flex: 1 1 18rem; min-width: 8rem; font-weight: 600; overflow: hidden; text-overflow: ellipsis;
  white-space: nowrap; }
summary b::before { content: "▸ "; color: var(--soft); }
details[open] > summary b::before { content: "▾ "; }
summary small { color: var(--soft); font-weight: 400; }
summary span { flex: 0 0 auto; color: var(--soft); font-variant-numeric: tabular-nums; text-align: right; }
.time { width: 5rem; }
.cost { width: 12rem; }
.bar { flex: none; width: 30vw; height: .75rem; position: relative; background: var(--band); border-radius: 3px; }
.bar i { position: absolute; height: 100%; min-width: 2px; background: var(--module); border-radius: 3px; }
.model .bar i { background: var(--model); }
.model > summary b { font-weight: 400; }
.failed > summary b, .failed > summary .time { color: var(--error); }
.failed > summary .bar i { background: var(--error); }
.facts summary { color: var(--soft); font-size: .85em; }
.facts summary::before { content: "▸"; }
.facts[open] > summary::before { content: "▾"; }
dl { margin: 0 0 .8rem 1.1rem; }
dt { color: var(--soft); font-size: .85em; margin-top: .4rem; }
dd { margin: 0; }
pre { max-height: 24rem; white-space: pre-wrap; overflow-wrap: anywhere; }
.error pre { color: var(--error); }
@media (max-width: 50rem) { .bar, .cost { display: none; } }
"""


def trace_page(trace: dict[str, Any], path: Any) -> str:
    """Return the page of a trace from `Tracer.to_json`, and write it to `path` if given; see `Tracer.to_html`."""
    roots = _by_start(trace["calls"], trace["lm_calls"])
    begin = min((call["start"] for call in roots), default=0.0)
    calls = [each for root in roots for each in (root, *_below(root))]  # a reward comes after the call that it judges
    end = max((call["start"] + (call["elapsed_s"] or 0.0) for call in calls), default=begin)
    rows: list[str] = []
    open_calls = 0
    waiting = [(call, 0) for call in reversed(roots)]
    while waiting and len(rows) < _MAX_CALLS:  # iterative: calls may be deeply nested
        call, depth = waiting.pop()
        rows.append("</details>" * (open_calls - depth) + _call_html(call, begin, end - begin or 1.0, depth))
        open_calls = depth + 1
        waiting += [(each, open_calls) for each in reversed(_below(call))]
    rows.append("</details>" * open_calls)
    cut = f"the first {_MAX_CALLS:,} calls are shown, to_json has all" if waiting else ""
    dropped = f"{plural(trace['dropped'], 'call')} beyond the bound not recorded" if trace["dropped"] else ""
    totals = " · ".join(filter(None, (_usage(trace["usage"]), seconds_text(end - begin), cut, dropped)))
    body = "\n".join([f"<p>{escaped(totals)}</p>", *rows])
    title = f"Trace of {plural(len(roots), 'call')}"
    return written("to_html", _PAGE.format(title=title, style=_TRACE_STYLE, body=body), path)


def _call_html(call: dict[str, Any], begin: float, span: float, depth: int) -> str:
    """Return the opening HTML of a call, which its children follow: its summary line and its details."""
    running = call["elapsed_s"] is None
    elapsed = begin + span - call["start"] if running else call["elapsed_s"]
    kind = "module" if "call_id" in call else "model"
    failed = " failed" if call.get("error") else ""
    is_open = " open" if _below(call) and depth < _OPEN_LEVELS else ""
    left, wide = (call["start"] - begin) / span * 100, elapsed / span * 100
    name = call.get("path") or call.get("name") or call.get("model") or "(root)"
    is_other = kind == "module" and call["name"] != name.rpartition("/")[2]
    note = f" <small>{escaped(str(call['name']))}</small>" if is_other else ""
    return (
        f'<details class="{kind}{failed}"{is_open}><summary><b>{escaped(str(name))}{note}</b>'
        f'<span class="cost">{escaped(_usage(call.get("usage")))}</span>'
        f'<span class="time">{"running" if running else seconds_text(elapsed)}</span>'
        f'<span class="bar"><i style="left:{left:.2f}%;width:{wide:.2f}%"></i></span></summary>{_facts(call)}'
    )


def _facts(call: dict[str, Any]) -> str:
    """Return the details of a call: inputs and outputs first, the rest as one object."""
    left_out = ("children", "lm_calls", *_SHOWN_FIELDS)
    rest = {key: value for key, value in call.items() if key not in left_out and value is not None}
    fields = [field for key in _SHOWN_FIELDS if call.get(key) for field in _field_parts(key, call[key])]
    rows = [
        f'<div class="{key}"><dt>{escaped(label)}</dt><dd><pre>{escaped(_text(value))}</pre></dd></div>'
        for key, label, value in [*fields, ("details", "details", rest)]
    ]
    heading = ", ".join(dict.fromkeys(label for key, label, _ in fields if key != "error")) or "details"
    return f'<details class="facts"><summary>{escaped(heading)}</summary><dl>{"".join(rows)}</dl></details>'


def _field_parts(key: str, value: Any) -> list[tuple[str, str, Any]]:
    """Return the parts of a field to show: each message of a request as it was sent, the text of a reply."""
    if key == "request":
        turns: list[dict[str, Any]] = value.get("messages") or []
        messages = [(key, str(turn.get("role", "")), turn.get("content") or turn.get("tool_calls")) for turn in turns]
        rest = {name: part for name, part in value.items() if name != "messages" and part}
        return [*messages, *([(key, "request", rest)] if rest else [])]
    if key == "reply":
        rest = {name: part for name, part in value.items() if name != "text" and part}
        content = value.get("text") or value.get("tool_calls") or ""
        return [(key, "reply", content), *([(key, "reply metadata", rest)] if rest else [])]
    return [(key, key, value)]


def _text(value: Any) -> str:
    """Return a string as it is, any other value as JSON."""
    return value if isinstance(value, str) else json.dumps(value, indent=2, ensure_ascii=False)


def _usage(usage: dict[str, Any] | None) -> str:
    """Return tokens and cost as text; empty if no tokens were used."""
    tokens = usage and usage["prompt_tokens"] + usage["completion_tokens"]
    if not usage or not tokens:
        return ""
    cost = usage.get("cost_usd")
    return f"{tokens:,} tokens" + ("" if cost is None else f", {dollars_text(cost)}")


def _below(call: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the calls that a call made, in order of start."""
    return _by_start(call.get("children", ()), call.get("lm_calls", ()))


def _by_start(calls: Any, lm_calls: Any) -> list[dict[str, Any]]:
    """Return module calls and model calls together, in order of start."""
    return sorted([*calls, *lm_calls], key=lambda call: call["start"])
