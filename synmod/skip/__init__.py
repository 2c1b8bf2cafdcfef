"""Skip connections: values that go past the modules in between, declared, verified, and carried beside the main lane.

Floor: 7, beside `blocks`. Purpose: `@skippable`, the commands, Namespaces, frames, verification, layouts. State: one
lane for each running call that takes part, on its frame. Speed: a call of a module that declares nothing pays nothing;
one that stashes or pops pays some microseconds. Must never know: Program, files, training.
"""

from synmod.errors import SkipError, SkipNameError, SkipProblem, SkipVerifyError

from .commands import peek, pop, skippable, stash
from .lane import Namespace, SkipFrame, current_skip_frame, use_skip_frame
from .wiring import SkipLayout, skip_layout, verify_skippables

__all__ = [
    "Namespace", "SkipError", "SkipFrame", "SkipLayout", "SkipNameError", "SkipProblem", "SkipVerifyError",
    "current_skip_frame", "peek", "pop", "skip_layout", "skippable", "stash", "use_skip_frame", "verify_skippables",
]
