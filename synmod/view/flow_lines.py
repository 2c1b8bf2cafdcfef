"""Lines of data flow that are known without a call: those of a functional program, and those of a row of members."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from synmod.flow import FlowGraph, FlowStep, SymbolRef, leaves, leaves_with_path
from synmod.leaves.names import unused
from synmod.module import Child, Execution, Module, attribute_of
from synmod.view.schema_text import title_text

if TYPE_CHECKING:
    from synmod.view.contracts import Contract
    from synmod.view.picture import Node
    from synmod.view.sketch import Sketch

    Part = Child | Execution | None


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
    """Find the nodes behind symbols, back through operators; without recursion, each symbol once."""
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
    for index, part in enumerate(row_of(module) or ()):
        sources = _draw_part(sketch, holder, module, index, part, sources)
    output = sketch.port(holder, "output", "output", contract.outputs)
    for source in sources:
        sketch.connect(source, output, "data")


def row_of(module: Module) -> Sequence[Part] | None:
    """The parts of a row, None for a plain function; None where a module runs otherwise, or does not say how."""
    execution = module._execution()
    return execution.parts if execution is not None and execution.order == "in order" else None


def _draw_part(sketch: Sketch, holder: Node, module: Module, index: int, part: Part, sources: list[Node]) -> list[Node]:
    """Draw the lines into a part of a row; gives the nodes that come out of it. Alternatives stand side by side."""
    if isinstance(part, Execution):
        if part.order == "in order":
            for inner in part.parts:
                sources = _draw_part(sketch, holder, module, index, inner, sources)
            return sources
        ends = [_draw_part(sketch, holder, module, index, inner, sources) for inner in part.parts]
        return [node for end in ends for node in end]
    node = _function(sketch, holder, module, index) if part is None else sketch.node_of(part.module)
    if node is None:
        return sources
    for source in sources:
        sketch.connect(source, node, "data")
    return [node]


def _function(sketch: Sketch, holder: Node, module: Module, index: int) -> Node:
    """The box of a plain function, made for it."""
    member = attribute_of(module, index)
    path = f"{holder.id}/{index}" if holder.id else str(index)
    return sketch.function(getattr(member, "__name__", type(member).__name__), path, holder)
