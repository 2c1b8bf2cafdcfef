"""A functional program's graph, back from its record; no call is traced again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from synmod.data import schema_of_class
from synmod.flow import Declared, FlowGraph, FlowStep, compile_flow
from synmod.saving.making.guarded import guarded
from synmod.saving.vocabulary.stand_ins import keep_id

if TYPE_CHECKING:
    from synmod.leaves.frozen import Json
    from synmod.module import Module
    from synmod.saving.checking.plan import ModelEntry, NodeEntry
    from synmod.saving.making.decode import Decoder

__all__ = ["restored_flow"]


def restored_flow(entry: NodeEntry, module: Module, decoder: Decoder) -> FlowGraph:
    """Make the graph of a record, whose modules the program holds already.

    Raises:
        LoadError: Its operators cannot run on the symbols they are given.
    """
    where = ("graph", "nodes", entry.index, "flow")
    record = entry.record["flow"]
    keys: dict[int, str] = {}
    for key, term in entry.record["attributes"].items():
        if "node" in term:
            keys.setdefault(term["node"], key)
    flow = FlowGraph(
        tuple(_declared(symbol, decoder.plan.data_model(symbol["data_model"])) for symbol in record["symbols"]),
        decoder.decode(record["inputs"], where),
        decoder.decode(record["outputs"], where),
        tuple(_step(step, keys, decoder, where) for step in record["steps"]),
    )
    guarded(lambda: compile_flow(flow, vars(module)), where, entry.cls)
    return flow


def _declared(symbol: dict[str, Json], model: ModelEntry) -> Declared:
    """What a symbol of the table declares."""
    schema = model.schema if model.cls is None else schema_of_class(model.cls)
    declared = Declared(schema, model.cls, symbol["name"], symbol["optional"])
    if model.cls is None and model.public_id is not None:
        keep_id(declared, model.public_id)
    return declared


def _step(step: dict[str, Json], keys: dict[int, str], decoder: Decoder, where: tuple[Any, ...]) -> FlowStep:
    """One step."""
    return FlowStep(
        keys[step["node"]] if "node" in step else None,
        step.get("op"),
        tuple(decoder.decode(term, where) for term in step["args"]),
        {name: decoder.decode(term, where) for name, term in step["kwargs"].items()},
        decoder.decode(step["gives"], where),
    )
