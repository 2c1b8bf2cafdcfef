"""Scope: what is true while one call runs.

Floor: 4. Purpose: frames, phases, hooks and their events, traces, counters, limits and sums of a block.
State: two ContextVars, FRAME (the running call) and AMBIENT (the open blocks). Nothing of a whole process.
Speed: a nested frame 0.3 µs; the open blocks are one read and a check; without a listener no record is made.
Must never know: Module, models, providers. Hooks get records with a path, never an object of a floor above.
"""

from . import hooks_lib as hooks_lib
from .ambient import (
    AMBIENT as AMBIENT, PHASES as PHASES, Ambient as Ambient, Block as Block, ambient as ambient,
    effective as effective, phase as phase, reset as reset,
)
from .budgets import (
    Account as Account, Spent as Spent, budget as budget, check_deadline as check_deadline,
    cost_is_limited as cost_is_limited, deadline as deadline, is_of_block_around as is_of_block_around,
    keep_partial as keep_partial, note_waiting as note_waiting, plain_limit as plain_limit, reserve as reserve,
    time_left as time_left,
)
from .events import (
    BuildBegin as BuildBegin, BuildEnd as BuildEnd, CallBegin as CallBegin, CallEnd as CallEnd, Event as Event,
    Hook as Hook, LMBegin as LMBegin, LMEnd as LMEnd, SkipDropped as SkipDropped, VariableAssign as VariableAssign,
    check_hook as check_hook,
)
from .rewards import (
    BoundReward as BoundReward, Feedback as Feedback, add_reward as add_reward, hand_up as hand_up,
    rewards_of as rewards_of, track_rewards as track_rewards,
)
from .frame import (
    FRAME as FRAME, CallFrame as CallFrame, NameScope as NameScope, Reward as Reward, RootFrame as RootFrame,
    current_call as current_call, current_phase as current_phase, current_scope as current_scope,
    nearest_live as nearest_live, open_meters as open_meters, phase_in as phase_in,
)
from .hooks import (
    begin_build as begin_build, begin_call as begin_call, begin_lm as begin_lm, end_build as end_build,
    end_call as end_call, end_lm as end_lm, hooks as hooks, hooks_for as hooks_for, hooks_inside as hooks_inside,
    notify_assign as notify_assign, notify_skip_dropped as notify_skip_dropped,
)
from .trace_views import LMCallNode as LMCallNode, TraceNode as TraceNode, message_of as message_of
from .tracing import PAGES as PAGES, Tracer as Tracer, trace as trace
from .usage import (
    CallCounters as CallCounters, PerPhase as PerPhase, PhaseCounters as PhaseCounters, Usage as Usage,
    UsageMeter as UsageMeter, add_usage as add_usage, track_usage as track_usage,
)
