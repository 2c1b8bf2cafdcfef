"""Scope: what is true while one call runs.

Floor: 4. Purpose: frames, phases, hooks and their events, traces, counters, limits and sums of a block.
State: two ContextVars, FRAME (the running call) and AMBIENT (the open blocks). Nothing of a whole process.
Speed: a nested frame 0.3 µs; the open blocks are one read and a check; without a listener no record is made.
Must never know: Module, models, providers. Hooks get records with a path, never an object of a floor above.
"""

from . import hooks_lib
from .ambient import AMBIENT, PHASES, Ambient, Block, ambient, check_phase, effective, phase, reset
from .budget import Account, Reservation, Spent, budget, cost_is_limited, reserve
from .deadline import check_deadline, deadline, is_of_block_around, keep_partial, note_waiting, plain_limit, time_left
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
from .frame import (
    FRAME,
    CallFrame,
    NameScope,
    Owner,
    Reward,
    RootFrame,
    current_call,
    current_phase,
    current_scope,
    nearest_live,
    open_meters,
    phase_in,
)
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
from .plain_json import message_of
from .rewards import add_reward, hand_up, rewards_of, track_rewards
from .trace_views import LMCallNode, TraceNode
from .tracing import PAGES, Tracer, trace
from .usage import CallCounters, PerPhase, PhaseCounters, Usage, UsageMeter, add_usage, track_usage

__all__ = [
    "AMBIENT",
    "FRAME",
    "PAGES",
    "PHASES",
    "Account",
    "Ambient",
    "Block",
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
    "NameScope",
    "Owner",
    "PerPhase",
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
    "keep_partial",
    "message_of",
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
    "time_left",
    "trace",
    "track_rewards",
    "track_usage",
]
