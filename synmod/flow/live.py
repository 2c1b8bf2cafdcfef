"""Live again: fresh symbols and steps of a recorded graph, for a program whose own ones are gone."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from synmod.data import SymbolicDataModel
from synmod.flow.record import FlowGraph, FlowStep, SymbolRef
from synmod.flow.steps import Declared, Origin, Step, symbol_of
from synmod.leaves.nests import leaves, map_leaves


def live_graph(flow: FlowGraph, modules: Mapping[str, Any]) -> tuple[Any, Any, tuple[Step, ...]]:
    """Make fresh symbols and steps of a record (of a copy, or of a loaded file).

    Args:
        flow: The record.
        modules: The program's modules by the key that steps name.

    Returns:
        The nest of inputs, the nest of outputs, and the steps; the outputs remember the steps.
    """
    made: dict[int, SymbolicDataModel] = {}

    def live(leaf: Any) -> Any:
        return made[leaf.index] if isinstance(leaf, SymbolRef) else leaf

    def make(ref: SymbolRef, origin: Origin) -> None:
        made[ref.index] = symbol_of(flow.symbols[ref.index])
        made[ref.index]._origin = origin

    inputs: list[SymbolRef] = leaves(flow.inputs)
    for ref in inputs:
        make(ref, Origin(None, optional=flow.symbols[ref.index].optional))
    steps: list[Step] = []
    for record in flow.steps:
        step = _live_step(flow, record, live, modules)
        for index, ref in enumerate(leaves(record.gives)):
            if ref is not None:
                make(ref, Origin(step, index))
        steps.append(step)
    return map_leaves(live, flow.inputs), map_leaves(live, flow.outputs), tuple(steps)


def _live_step(flow: FlowGraph, record: FlowStep, live: Callable[[Any], Any], modules: Mapping[str, Any]) -> Step:
    """Make one step, its arguments being there already."""

    def declared(ref: SymbolRef | None) -> Declared | None:
        return None if ref is None else flow.symbols[ref.index]

    module = None if record.node is None else modules[record.node]
    args = tuple(map_leaves(live, arg) for arg in record.args)
    kwargs = {name: map_leaves(live, value) for name, value in record.kwargs.items()}
    return Step(module, record.op, record.plan, args, kwargs, map_leaves(declared, record.gives))
