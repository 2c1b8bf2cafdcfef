"""Scope: what is true while one call runs.

Floor: 4. Purpose: frames, phases, hooks and their events, traces, counters, limits and sums of a block.
State: two ContextVars, FRAME (the running call) and AMBIENT (the open blocks). Nothing of a whole process.
Speed: a nested frame 0.3 µs; the open blocks are one read and a check; without a listener no record is made.
Must never know: Module, models, providers. Hooks get records with a path, never an object of a floor above.
"""

from . import hooks_lib as hooks_lib
from .budgets import (
    Account as Account, Spent as Spent, budget as budget, check_deadline as check_deadline, deadline as deadline,
    is_of_block_around as is_of_block_around, keep_partial as keep_partial, note_waiting as note_waiting,
    open_meters as open_meters, plain_limit as plain_limit, reserve as reserve, time_left as time_left,
    track_usage as track_usage,
)
from .frame import (
    AMBIENT as AMBIENT, FRAME as FRAME, PHASES as PHASES, Ambient as Ambient, Block as Block,
    CallCounters as CallCounters, CallFrame as CallFrame, NameScope as NameScope, PerPhase as PerPhase,
    PhaseCounters as PhaseCounters, Reward as Reward, RootFrame as RootFrame, Usage as Usage, UsageMeter as UsageMeter,
    ambient as ambient, current_call as current_call, current_phase as current_phase, current_scope as current_scope,
    effective as effective, nearest_live as nearest_live, phase as phase, phase_in as phase_in, reset as reset,
)
from .hooks import (
    BuildBegin as BuildBegin, BuildEnd as BuildEnd, CallBegin as CallBegin, CallEnd as CallEnd, Event as Event,
    Hook as Hook, LMBegin as LMBegin, LMEnd as LMEnd, SkipDropped as SkipDropped, VariableAssign as VariableAssign,
    begin_call as begin_call, check_hook as check_hook, end_call as end_call, hooks as hooks, hooks_for as hooks_for,
    hooks_inside as hooks_inside, notify as notify, notify_assign as notify_assign,
    notify_skip_dropped as notify_skip_dropped, place_of as place_of,
)
from .rewards import (
    BoundReward as BoundReward, Feedback as Feedback, add_reward as add_reward, hand_up as hand_up,
    rewards_of as rewards_of, track_rewards as track_rewards,
)
from .tracing import (
    PAGES as PAGES, LMCallNode as LMCallNode, TraceNode as TraceNode, Tracer as Tracer, message_of as message_of,
    trace as trace,
)
