"""Symbolic graphs and their concurrent execution.

Floor: 5. Purpose: what symbols remember (steps), the graph found from it, its record and its plan, the engine that runs
a plan, worker pools, and the bridge from plain code.
State: the event loop of the main thread, made by the first `run`. A graph's record and its plan are never written to.
Speed: composing, extracting and running are linear in steps and use no recursion; a chain costs no task, a branch one.
Must never know: modules (a step's module is something to call), files, language models, the walk.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from synmod.flow.branches import together
from synmod.flow.engine import run_plan
from synmod.flow.graph import steps_between
from synmod.flow.live import live_graph
from synmod.flow.plan import Plan, compile_flow
from synmod.flow.record import FlowGraph, FlowStep, SymbolRef, record_graph
from synmod.flow.steps import Declared, Origin, Step, record_call
from synmod.leaves.late import opened_late

if TYPE_CHECKING:
    from types import ModuleType

    from synmod.flow.bridge import in_thread, run
    from synmod.flow.pool import Failed, map_concurrently
    from synmod.flow.progress import Progress

__all__ = [
    "Declared",
    "Failed",
    "FlowGraph",
    "FlowStep",
    "Origin",
    "Plan",
    "Progress",
    "Step",
    "SymbolRef",
    "compile_flow",
    "in_thread",
    "live_graph",
    "map_concurrently",
    "record_call",
    "record_graph",
    "run",
    "run_plan",
    "steps_between",
    "together",
]


def _parts() -> tuple[ModuleType, ...]:
    """Load the worker pool, what watches it, and the bridge from plain code."""
    from synmod.flow import bridge, pool, progress

    return bridge, pool, progress


if TYPE_CHECKING:  # for the rooms above
    from synmod.flow.graph import step_of as step_of
    from synmod.flow.nest_json import classes_in as classes_in
    from synmod.flow.nest_json import nest_from as nest_from
    from synmod.flow.progress import Shown as Shown
    from synmod.flow.progress import shown as shown
    from synmod.flow.single_flight import SingleFlight as SingleFlight
    from synmod.flow.steps import symbol_of as symbol_of
    from synmod.leaves.nests import LEAF as LEAF
    from synmod.leaves.nests import MAPPING as MAPPING
    from synmod.leaves.nests import SEQUENCE as SEQUENCE
    from synmod.leaves.nests import NestPath as NestPath
    from synmod.leaves.nests import aligned as aligned
    from synmod.leaves.nests import copied as copied
    from synmod.leaves.nests import is_leaf as is_leaf
    from synmod.leaves.nests import kind_of as kind_of
    from synmod.leaves.nests import leaves as leaves
    from synmod.leaves.nests import leaves_with_path as leaves_with_path
    from synmod.leaves.nests import map_leaves as map_leaves
    from synmod.leaves.nests import pack as pack

_FOR_ROOMS = {
    "LEAF": "synmod.leaves.nests",
    "MAPPING": "synmod.leaves.nests",
    "NestPath": "synmod.leaves.nests",
    "SEQUENCE": "synmod.leaves.nests",
    "Shown": "synmod.flow.progress",
    "SingleFlight": "synmod.flow.single_flight",
    "aligned": "synmod.leaves.nests",
    "classes_in": "synmod.flow.nest_json",
    "copied": "synmod.leaves.nests",
    "is_leaf": "synmod.leaves.nests",
    "kind_of": "synmod.leaves.nests",
    "leaves": "synmod.leaves.nests",
    "leaves_with_path": "synmod.leaves.nests",
    "map_leaves": "synmod.leaves.nests",
    "nest_from": "synmod.flow.nest_json",
    "pack": "synmod.leaves.nests",
    "shown": "synmod.flow.progress",
    "step_of": "synmod.flow.graph",
    "symbol_of": "synmod.flow.steps",
}
__getattr__, __dir__ = opened_late(globals(), _parts, inner=_FOR_ROOMS)
