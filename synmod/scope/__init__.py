"""Scope: what is true while one call runs.

Floor: 4. Purpose: frames, phases, hooks and their events, traces, counters, limits and sums of a block.
State: two ContextVars, FRAME (the running call) and AMBIENT (the open blocks). Nothing of a whole process.
Speed: a nested frame 0.3 µs; the open blocks are one read and a check; without a listener no record is made.
Must never know: Module, models, providers. Hooks get records with a path, never an object of a floor above.
"""

from . import hooks_lib
from .ambient import AMBIENT, Ambient, Entered, ambient, effective, enter, leave, reset, take_entry
from .budget import budget, cost_is_limited, reserve
from .counters import CallCounters, PhaseCounters
from .events import (
    BuildBegin,
    BuildEnd,
    CallBegin,
    CallEnd,
    Event,
    Hook,
    LMBegin,
    LMEnd,
    SkipDropped,
    VariableAssign,
    check_hook,
)
from .feedback import BoundReward, Feedback
from .frame import FRAME, CallFrame, Owner, RootFrame, current_call, nearest_live
from .hooks import (
    begin_build,
    begin_call,
    begin_lm,
    end_build,
    end_call,
    end_lm,
    hooks,
    hooks_for,
    hooks_inside,
    notify_assign,
    notify_skip_dropped,
)
from .ledger import Reward, RewardLedger
from .limits import check_deadline, deadline, is_of_block_around, keep_partial, note_waiting, plain_limit, time_left
from .phase import current_phase, phase, phase_in
from .phase_names import PHASES, check_phase
from .rewards import add_reward, hand_up, rewards_of, track_rewards
from .scopes import NameScope, current_scope
from .spending import Account, Reservation, Spent
from .trace_views import LMCallNode, TraceNode
from .tracing import PAGES, Tracer, trace
from .usage import Usage, UsageMeter, add_usage, count_usage, open_meters, track_usage

__all__ = [
    "AMBIENT",
    "FRAME",
    "PAGES",
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
    "Entered",
    "Event",
    "Feedback",
    "Hook",
    "LMBegin",
    "LMCallNode",
    "LMEnd",
    "NameScope",
    "Owner",
    "PhaseCounters",
    "Reservation",
    "Reward",
    "RewardLedger",
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
    "enter",
    "hand_up",
    "hooks",
    "hooks_for",
    "hooks_inside",
    "hooks_lib",
    "is_of_block_around",
    "keep_partial",
    "leave",
    "nearest_live",
    "note_waiting",
    "notify_assign",
    "notify_skip_dropped",
    "open_meters",
    "phase",
    "phase_in",
    "plain_limit",
    "reserve",
    "reset",
    "rewards_of",
    "take_entry",
    "time_left",
    "trace",
    "track_rewards",
    "track_usage",
]
