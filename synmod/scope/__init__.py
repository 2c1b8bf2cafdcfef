"""Scope: what is true while one call runs.

Floor: 4. Purpose: frames, phases, hooks and their events, traces, counters, limits and sums of a block.
State: three ContextVars, FRAME (the running call), AMBIENT (the open blocks) and NUMBERING (of questions); of the whole
process RECENT alone, the last model calls for `last`.
Speed: a nested frame takes 0.3 µs; the open blocks are one read and a check; without a listener no record is made.
Must never know: Module, models, providers. Hooks get records with a path, never an object of a floor above.
"""

from . import hooks_lib
from .asking import NUMBERING, Numbering, Pauses, Question, answer_to, answers, ask, unwrap_group
from .frame import (
    AMBIENT, FRAME, NO_BLOCKS, Ambient, Block, CallFrame, NameScope, Reward, ambient,
    as_children_of, current_call, current_phase, current_scope, effective, hooks_for, hooks_inside, nearest_live,
    new_frame, phase,
    phase_in,
)
from .hooks import (
    BuildBegin, BuildEnd, CallBegin, CallEnd, Emitted, Event, Hook, LMBegin, LMChunkEvent, LMEnd, Place, SkipDropped,
    VariableAssign, begin_call, check_hook, emit, end_call, hooks, notify, notify_assign, notify_skip_dropped, place_of,
    wait_for_readers,
)
from .injecting import Injected, inject, injected_type, injected_value
from .judging import Verdict
from .limits import (
    Account, Spent, budget, is_from_enclosing_limit, check_deadline, count_paid, deadline, keep_partial,
    note_waiting, open_meters, plain_limit, reserve, time_left, track_usage,
)
from .recent import RECENT, LastCalls, last
from .rewards import BoundReward, Feedback, RewardTrack, add_reward, publish_rewards, rewards_of, track_rewards
from .tracing import (
    LMCallNode, TraceNode, TraceViews, Tracer, error_text, in_order_of_start, message_of, seconds_text, trace,
)
from .usage import (
    NO_USAGE, PHASES, CallCounters, ModelCounters, ModelCounts, PerPhase, PhaseCounters, Usage, UsageMeter,
)

__all__ = [
    "AMBIENT", "FRAME", "NO_BLOCKS", "NO_USAGE", "NUMBERING", "PHASES", "RECENT", "Account", "Ambient", "Block",
    "BoundReward", "BuildBegin", "BuildEnd", "CallBegin", "CallCounters", "CallEnd", "CallFrame", "Emitted", "Event",
    "Feedback", "Hook", "Injected", "LMBegin", "LMCallNode", "LMChunkEvent", "LMEnd", "LastCalls", "ModelCounters",
    "ModelCounts", "NameScope", "Numbering", "Pauses", "PerPhase", "PhaseCounters", "Place", "Question", "Reward",
    "RewardTrack", "SkipDropped", "Spent", "TraceNode", "TraceViews", "Tracer", "Usage", "UsageMeter", "VariableAssign",
    "Verdict", "add_reward", "ambient", "answer_to", "answers", "as_children_of", "ask", "begin_call", "budget",
    "check_deadline", "check_hook", "count_paid", "current_call", "current_phase", "current_scope", "deadline",
    "effective", "emit", "end_call", "error_text", "hooks", "hooks_for", "hooks_inside", "hooks_lib",
    "in_order_of_start", "inject", "injected_type", "injected_value", "is_from_enclosing_limit", "keep_partial", "last",
    "message_of", "nearest_live", "new_frame", "note_waiting", "notify", "notify_assign", "notify_skip_dropped",
    "open_meters", "phase", "phase_in", "place_of", "plain_limit", "publish_rewards", "reserve", "rewards_of",
    "seconds_text", "time_left", "trace", "track_rewards", "track_usage", "unwrap_group", "wait_for_readers",
]
