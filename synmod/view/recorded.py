"""The last recorded call of a program, counted for each of its modules."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from synmod.scope import Usage
from synmod.view.figures import Spent

if TYPE_CHECKING:
    from synmod.module import Module
    from synmod.scope import TraceNode


def recorded_call(module: Module) -> TraceNode | None:
    """The last entry call of a module that a trace has recorded; None where there was none."""
    return module._record.recorded


def calls_below(root: TraceNode) -> Iterator[TraceNode]:
    """Go through a call and those below it, each before those it made, by their start; without recursion."""
    waiting = [root]
    while waiting:
        call = waiting.pop()
        yield call
        waiting += reversed(call.children)


def spent_by_path(root: TraceNode, known: set[str]) -> dict[str, Spent]:
    """Count the calls and what their own model calls used, by the path of the module.

    Args:
        root: The entry call.
        known: The paths that are shown; what was called elsewhere, on a module made inside a call, counts for its
            caller.
    """
    by_path: dict[str, Spent] = {}
    place: dict[int, str] = {}
    for call in calls_below(root):
        is_known = call.path in known
        path = call.path if is_known or call.parent is None else place[id(call.parent)]
        place[id(call)] = path
        used = sum((lm_call.usage for lm_call in call.lm_calls), Usage())
        spent = Spent(int(is_known), used, (call.elapsed_s or 0.0) if is_known else 0.0)
        by_path[path] = by_path[path] + spent if path in by_path else spent
    return by_path
