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
    from synmod.flow.pool import ConcurrentMap, Failed, map_concurrently
    from synmod.flow.progress import Progress

__all__ = [
    "ConcurrentMap",
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


__getattr__, __dir__ = opened_late(globals(), _parts)
