"""Phases: what a call is for."""

from __future__ import annotations

from synmod.scope.ambient import AMBIENT, Ambient, Block, effective
from synmod.scope.frame import FRAME, CallFrame, nearest_live
from synmod.scope.phase_names import PHASES, check_phase

__all__ = ["PHASES", "check_phase", "current_phase", "phase", "phase_in"]


class phase(Block):  # noqa: N801  # read as a word: `with sm.phase("reward"):`
    """Let the calls of a block belong to a phase.

    Args:
        name: `"inference"` (the phase without a block), `"reward"` or `"optimizer"`.

    Raises:
        CallError: Another word.

    Example:
        >>> with phase("reward"):
        ...     current_phase()
        'reward'

    Source: Synalinks' phases.
    """

    __slots__ = ()

    def __init__(self, name: str) -> None:
        super().__init__("phase", check_phase(name))


def phase_in(record: Ambient | None, frame: CallFrame | None) -> str:
    """Give the phase in which a call below `frame` begins; a call outlives the block it was begun in."""
    if record is not None and record.phase is not None:
        return record.phase
    return "inference" if frame is None else frame.phase


def current_phase() -> str:
    """Tell in which phase a call would begin here.

    Returns:
        `"inference"`, `"reward"` or `"optimizer"`.

    Example:
        >>> current_phase()
        'inference'

    Source: Synalinks' phases.
    """
    return phase_in(effective(AMBIENT.get()), nearest_live(FRAME.get()))
