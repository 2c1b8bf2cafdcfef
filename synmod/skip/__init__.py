"""Skip connections: values that bypass the modules in between, declared, verified, and carried beside the data flow.

Floor: 7, beside `blocks`. Purpose: `@skippable`, the commands, Namespaces, frames, verification, layouts. State: one
lane per running call that uses skips, on its frame. Speed: calls of modules without declared skips cost nothing more;
a call that stashes or pops costs a few microseconds more. Must never know: Program, files, training.
"""

from synmod.errors import SkipError, SkipNameError, SkipProblem, SkipVerifyError

from .commands import peek, pop, skippable, stash
from .lane import Namespace, SkipFrame, current_skip_frame, use_skip_frame
from .wiring import SkipLayout, skip_layout, verify_skippables

__all__ = [
    "Namespace", "SkipError", "SkipFrame", "SkipLayout", "SkipNameError", "SkipProblem", "SkipVerifyError",
    "current_skip_frame", "peek", "pop", "skip_layout", "skippable", "stash", "use_skip_frame", "verify_skippables",
]
