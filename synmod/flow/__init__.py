"""Symbolic graphs and their concurrent execution.

Floor: 5. Purpose: the steps that symbols remember, the graph found from them, its record and its plan, the engine that
runs a plan, worker pools, and the bridge from plain code.
State: the event loop of the main thread, made by the first `run`. A graph's record and its plan are never written to.
Speed: composing, extracting and running are linear in steps and use no recursion; a chain costs no task, a branch one.
Must never know: modules (a step's module is something to call), files, language models, the walk.
"""

from .engine import Plan, compile_flow, fields_text, run_plan, together
from .graph import (
    Declared, FlowGraph, FlowStep, Origin, Step, SymbolRef, live_graph, record_call, record_graph, record_operation,
    step_of, steps_between, symbol_of,
)
from .pools import Failed, Progress, SafeProgress, map_concurrently, open_progress
from .running import in_thread, run

__all__ = [
    "Declared", "Failed", "FlowGraph", "FlowStep", "Origin", "Plan", "Progress", "SafeProgress", "Step", "SymbolRef",
    "compile_flow", "fields_text", "in_thread", "live_graph", "map_concurrently", "open_progress", "record_call",
    "record_graph", "record_operation", "run", "run_plan", "step_of", "steps_between", "symbol_of", "together",
]
