"""Symbolic graphs and their concurrent execution.

Floor: 5. Purpose: what symbols remember (steps), the graph found from it, its record and its plan, the engine that runs
a plan, worker pools, and the bridge from plain code.
State: the event loop of the main thread, made by the first `run`. A graph's record and its plan are never written to.
Speed: composing, extracting and running are linear in steps and use no recursion; a chain costs no task, a branch one.
Must never know: modules (a step's module is something to call), files, language models, the walk.
"""

from synmod.leaves import (
    LEAF as LEAF, MAPPING as MAPPING, SEQUENCE as SEQUENCE, NestPath as NestPath, aligned as aligned, copied as copied,
    is_leaf as is_leaf, kind_of as kind_of, leaves as leaves, leaves_with_path as leaves_with_path,
    map_leaves as map_leaves, pack as pack,
)

from .concurrency import (
    Failed as Failed, Progress as Progress, Shown as Shown, SingleFlight as SingleFlight, in_thread as in_thread,
    map_concurrently as map_concurrently, run as run, shown as shown,
)
from .engine import Plan as Plan, compile_flow as compile_flow, run_plan as run_plan, together as together
from .graph import (
    Declared as Declared, FlowGraph as FlowGraph, FlowStep as FlowStep, Origin as Origin, Step as Step,
    SymbolRef as SymbolRef, live_graph as live_graph, record_call as record_call, record_graph as record_graph,
    step_of as step_of, steps_between as steps_between, symbol_of as symbol_of,
)
