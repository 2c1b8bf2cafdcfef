"""The record of a functional program's graph: symbols by number, steps in topological order."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from synmod.saving.writing.terms import Place

if TYPE_CHECKING:
    from collections.abc import Mapping

    from synmod.flow import FlowGraph, FlowStep
    from synmod.leaves.frozen import Json
    from synmod.saving.writing.module_record import Writer
    from synmod.tree import Visit

__all__ = ["flow_record"]


def flow_record(flow: FlowGraph, children: Mapping[str | int, Any], visit: Visit, writer: Writer) -> dict[str, Json]:
    """Write a flow.

    Args:
        flow: The graph.
        children: The modules of the program, by the keys that its steps use.
        visit: The program, for messages.
        writer: The document.
    """
    symbols = [
        {"data_model": writer.data_model(symbol), "name": symbol.name, "optional": symbol.optional}
        for symbol in flow.symbols
    ]
    return {
        "symbols": symbols,
        "inputs": writer.terms.term(flow.inputs, Place(visit, "inputs")),
        "outputs": writer.terms.term(flow.outputs, Place(visit, "outputs")),
        "steps": [_step(number, step, children, visit, writer) for number, step in enumerate(flow.steps)],
    }


def _step(
    number: int, step: FlowStep, children: Mapping[str | int, Any], visit: Visit, writer: Writer
) -> dict[str, Json]:
    """Write one step."""
    term = writer.terms.term
    place = Place(visit, f"step {number} ({step.op or step.node})")
    head: dict[str, Json] = {"op": step.op} if step.node is None else {"node": writer.node(children[step.node])}
    return {
        **head,
        "args": [term(arg, place) for arg in step.args],
        "kwargs": {name: term(value, place) for name, value in step.kwargs.items()},
        "gives": term(step.gives, place),
    }
