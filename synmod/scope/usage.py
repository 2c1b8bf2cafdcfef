"""Usage of model calls: which meters a call counts into, and measuring a block."""

from __future__ import annotations

from synmod.scope.ambient import Entered, ambient, enter, leave, take_entry
from synmod.scope.frame import CallFrame
from synmod.scope.meter import UsageMeter
from synmod.scope.usage_record import Usage

__all__ = ["Usage", "UsageMeter", "add_usage", "count_usage", "open_meters", "track_usage"]


class track_usage:  # noqa: N801  # read as a word: `with sm.track_usage() as usage:`
    """Measure the model calls that begin in a block.

    Example:
        >>> with track_usage() as usage:
        ...     pass
        >>> usage.calls
        0

    Source: DSPy's usage tracker.
    """

    __slots__ = ("_entries",)

    def __init__(self) -> None:
        self._entries: list[Entered] = []

    def __enter__(self) -> UsageMeter:
        meter = UsageMeter()
        self._entries.append(enter("usages", meter))
        return meter

    def __exit__(self, *_: object) -> None:
        leave(take_entry(self._entries, lambda entry: entry.record))


def open_meters(frame: CallFrame | None) -> tuple[UsageMeter, ...]:
    """Give the meters that a model call begun here counts into: take them at its begin, add to them at its end.

    Args:
        frame: The running module call; its run measures too.
    """
    record = ambient()
    blocks = () if record is None else record.usages
    return blocks if frame is None else (*blocks, frame.root.meter)


def add_usage(meters: tuple[UsageMeter, ...], usage: Usage, phase: str) -> None:
    """Count a finished model call into the meters that were open when it began."""
    for meter in meters:
        meter.add(usage, phase)


def count_usage(frame: CallFrame | None, usage: Usage, phase: str) -> None:
    """Count a model call that begins and ends here."""
    add_usage(open_meters(frame), usage, phase)
