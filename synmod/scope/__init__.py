"""Scope: what is true while one call runs.

Floor: 4. Purpose: frames, phases, hooks and their events, counters, limits and sums of a block.
State: two ContextVars, FRAME (the running call) and AMBIENT (the open blocks). Nothing of a whole process.
Speed: a nested frame 0.3 µs; what blocks say is one read and a check; without a listener no record is made.
Must never know: Module, models, providers. Hooks get records with a path, never an object of a floor above.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from synmod.leaves.late import opened_late

from .ambient import AMBIENT, Ambient, ambient, effective
from .budget import budget, cost_is_limited, reserve
from .counters import CallCounters, PhaseCounters
from .feedback import BoundReward, Feedback
from .frame import FRAME, CallFrame, Owner, RootFrame, current_call, nearest_live
from .hook import Hook, check_hook
from .hooks import Listeners, hooks, hooks_for, hooks_inside
from .in_place import LMOutcome
from .ledger import Reward
from .limits import check_deadline, deadline, is_of_block_around, note_waiting, plain_limit, time_left
from .notify import begin_build, end_build, notify_assign
from .notify_calls import begin_call, end_call
from .notify_lm import begin_lm, end_lm, lm_listeners
from .phase import current_phase, phase, phase_in
from .phase_names import PHASES, check_phase
from .place import place_of
from .rewards import add_reward, hand_up, rewards_of, track_rewards
from .scopes import NameScope, current_scope
from .spending import Account, Reservation, Spent
from .usage import Usage, UsageMeter, add_usage, count_usage, open_meters, track_usage

if TYPE_CHECKING:
    from types import ModuleType

    from synmod.scope import hooks_lib
    from synmod.scope.tracing.nodes import LMCallNode, TraceNode
    from synmod.scope.tracing.trace import trace
    from synmod.scope.tracing.tracer import Tracer

    from .events import BuildBegin, BuildEnd, CallBegin, CallEnd, Event, LMBegin, LMEnd, SkipDropped, VariableAssign

__all__ = [
    "AMBIENT",
    "FRAME",
    "PHASES",
    "Account",
    "Ambient",
    "BoundReward",
    "BuildBegin",
    "BuildEnd",
    "CallBegin",
    "CallCounters",
    "CallEnd",
    "CallFrame",
    "Event",
    "Feedback",
    "Hook",
    "LMBegin",
    "LMCallNode",
    "LMEnd",
    "LMOutcome",
    "Listeners",
    "NameScope",
    "Owner",
    "PhaseCounters",
    "Reservation",
    "Reward",
    "RootFrame",
    "SkipDropped",
    "Spent",
    "TraceNode",
    "Tracer",
    "Usage",
    "UsageMeter",
    "VariableAssign",
    "add_reward",
    "add_usage",
    "ambient",
    "begin_build",
    "begin_call",
    "begin_lm",
    "budget",
    "check_deadline",
    "check_hook",
    "check_phase",
    "cost_is_limited",
    "count_usage",
    "current_call",
    "current_phase",
    "current_scope",
    "deadline",
    "effective",
    "end_build",
    "end_call",
    "end_lm",
    "hand_up",
    "hooks",
    "hooks_for",
    "hooks_inside",
    "hooks_lib",
    "is_of_block_around",
    "lm_listeners",
    "nearest_live",
    "note_waiting",
    "notify_assign",
    "open_meters",
    "phase",
    "phase_in",
    "place_of",
    "plain_limit",
    "reserve",
    "rewards_of",
    "time_left",
    "trace",
    "track_rewards",
    "track_usage",
]


def _parts() -> tuple[ModuleType, ...]:
    """Make the records of events."""
    from . import events

    return (events,)


def _traces() -> tuple[ModuleType, ...]:
    """Load what records traces."""
    from synmod.scope.tracing import nodes, trace, tracer

    return nodes, trace, tracer


def _other_parts() -> tuple[ModuleType, ...]:
    """Load the ready-made hooks."""
    import synmod.scope.hooks_lib as ready_made

    return (ready_made,)


if TYPE_CHECKING:  # for the rooms above
    from synmod.scope.ambient import Entered as Entered
    from synmod.scope.ambient import enter as enter
    from synmod.scope.ambient import leave as leave
    from synmod.scope.ambient import reset as reset
    from synmod.scope.ambient import take_entry as take_entry
    from synmod.scope.frame import TOLD as TOLD
    from synmod.scope.in_place import InPlace as InPlace
    from synmod.scope.ledger import RewardLedger as RewardLedger
    from synmod.scope.limits import keep_partial as keep_partial
    from synmod.scope.notify import notify_skip_dropped as notify_skip_dropped
    from synmod.scope.notify_calls import begin_call_plain as begin_call_plain
    from synmod.scope.notify_calls import end_call_plain as end_call_plain
    from synmod.scope.tracing.page import PAGES as PAGES

_FOR_ROOMS = {
    "Entered": "synmod.scope.ambient",
    "InPlace": "synmod.scope.in_place",
    "PAGES": "synmod.scope.tracing.page",
    "RewardLedger": "synmod.scope.ledger",
    "TOLD": "synmod.scope.frame",
    "begin_call_plain": "synmod.scope.notify_calls",
    "end_call_plain": "synmod.scope.notify_calls",
    "enter": "synmod.scope.ambient",
    "keep_partial": "synmod.scope.limits",
    "leave": "synmod.scope.ambient",
    "notify_skip_dropped": "synmod.scope.notify",
    "reset": "synmod.scope.ambient",
    "take_entry": "synmod.scope.ambient",
}
__getattr__, __dir__ = opened_late(globals(), _parts, _traces, _other_parts, inner=_FOR_ROOMS)
