"""Skip connections: values that go past the modules in between, declared, verified, and carried beside the main lane.

Floor: 7, beside `blocks`. Purpose: `@skippable`, the commands, Namespaces, frames, verification, layouts. State: one
layer for each running call that takes part, on its frame. Speed: a call of a module that declares nothing pays nothing;
one that does pays some microseconds. Must never know: Program, files, training. Loaded when it is first asked for.
"""

from synmod.errors import SkipError, SkipNameError, SkipProblem, SkipVerifyError
from synmod.skip import attempts  # noqa: F401  # pyright: ignore[reportUnusedImport]  # for blocks
from synmod.skip.commands import peek, pop, stash
from synmod.skip.current import current_skip_frame
from synmod.skip.declaring import skippable
from synmod.skip.given import use_skip_frame
from synmod.skip.layout import SkipLayout, skip_layout
from synmod.skip.namespace import Namespace
from synmod.skip.skip_frame import SkipFrame
from synmod.skip.verifying import verify_skippables

__all__ = [
    "Namespace",
    "SkipError",
    "SkipFrame",
    "SkipLayout",
    "SkipNameError",
    "SkipProblem",
    "SkipVerifyError",
    "current_skip_frame",
    "peek",
    "pop",
    "skip_layout",
    "skippable",
    "stash",
    "use_skip_frame",
    "verify_skippables",
]
