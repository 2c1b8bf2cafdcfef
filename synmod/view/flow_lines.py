"""Lines of data flow that are known without a call: those of a functional program, and those of a row of members."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from synmod.flow.nest import leaves, leaves_with_path
from synmod.flow.record import FlowGraph, FlowStep, SymbolRef
from synmod.leaves.naming import unused
from synmod.module import Module
from synmod.module.attributes import attribute_of
from synmod.module.execution import Child
from synmod.view.schema_text import title_text

if TYPE_CHECKING:
    from synmod.view.contracts import Contract
    from synmod.view.picture import Node
    from synmod.view.sketch import Sketch


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
    """Draw members that run one after the other, between what goes into the first and comes out of the last."""
    nodes = [_member(sketch, holder, module, index) for index in range(len(row_of(module) or ()))]
    known = contract.inputs or (("input", None),)
    sources = [sketch.port(holder, "input", name or f"input_{index}", nest) for index, (name, nest) in enumerate(known)]
    for node in filter(None, nodes):
        for source in sources:
            sketch.connect(source, node, "data")
        sources = [node]
    output = sketch.port(holder, "output", "output", contract.outputs)
    for source in sources:
        sketch.connect(source, output, "data")


def row_of(module: Module) -> Sequence[Module | None] | None:
    """The members of a row, None for a plain function; None where a module runs otherwise, or does not say how."""
    execution = module._execution()
    if execution is None or execution.order != "in order":
        return None
    return [part.module if isinstance(part, Child) else None for part in execution.parts]


def _member(sketch: Sketch, holder: Node, module: Module, index: int) -> Node | None:
    """The box of a member: that of a module, or one made for a plain function."""
    member = attribute_of(module, index)
    if isinstance(member, Module):
        return sketch.node_of(member)
    path = f"{holder.id}/{index}" if holder.id else str(index)
    return sketch.function(getattr(member, "__name__", type(member).__name__), path, holder)
