"""Skip connections: values that go past the modules in between, declared, verified, and carried beside the main lane.

Floor: 7, beside `blocks`. Purpose: `@skippable`, the commands, Namespaces, frames, verification, layouts. State: one
lane for each running call that takes part, on its frame. Speed: a call of a module that declares nothing pays nothing;
one that stashes or pops pays some microseconds. Must never know: Program, files, training.
"""

from synmod.errors import (
    SkipError as SkipError, SkipNameError as SkipNameError, SkipProblem as SkipProblem,
    SkipVerifyError as SkipVerifyError,
)

from .commands import peek as peek, pop as pop, skippable as skippable, stash as stash
from .lane import (
    Namespace as Namespace, SkipFrame as SkipFrame, current_skip_frame as current_skip_frame,
    use_skip_frame as use_skip_frame,
)
from .wiring import SkipLayout as SkipLayout, skip_layout as skip_layout, verify_skippables as verify_skippables
