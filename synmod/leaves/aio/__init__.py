"""The one async door: what synmod needs of asyncio and trio, spelled once.

Floor: 2. Purpose: task groups, cancel scopes, signals, threads and driving coroutines, equal on both libraries.
State: two ContextVars (the child of a group, the drive that runs). Speed: a task costs what asyncio's costs; trio is
imported only by who runs it, anyio only by cancel scopes on asyncio and by threads.
Must never know: modules, models, what a call is.
"""

from .asyncio_group import AsyncioGroup
from .background import Background, background
from .contexts import InContext
from .drive import Suspended, being_driven, drive
from .gate import Gate
from .generators import close_generator
from .groups import TaskGroup, first_failure, reraise, task_group, unwrap_single
from .kind import backend, cancelled_type, checkpoint, is_cancellation, sleep
from .scopes import DeadlineScope, deadline_scope, in_task, shield
from .signal import Signal
from .threads import ThreadLimit, to_thread

__all__ = [
    "AsyncioGroup",
    "Background",
    "DeadlineScope",
    "Gate",
    "InContext",
    "Signal",
    "Suspended",
    "TaskGroup",
    "ThreadLimit",
    "backend",
    "background",
    "being_driven",
    "cancelled_type",
    "checkpoint",
    "close_generator",
    "deadline_scope",
    "drive",
    "first_failure",
    "in_task",
    "is_cancellation",
    "reraise",
    "shield",
    "sleep",
    "task_group",
    "to_thread",
    "unwrap_single",
]
