"""When a block's time is over, on which clock, and who was waiting then."""

from __future__ import annotations

import time

from synmod.errors import DeadlineExceeded
from synmod.leaves.clock import Clock, current_clock

_TICK_S = time.get_clock_info("monotonic").resolution + 1e-6


class Deadline:
    """One deadline: a time on the clock of the place where its block was entered.

    Attributes:
        seconds: What the block allowed.
        plain: Whether it was entered where no task ran, so that no scope of its own cancels anybody.
        waiting: Path of the call that was waiting when the time was over, None while nobody has told.
        partial: What was finished when the time was over, where somebody keeps it for the error.
    """

    __slots__ = ("_clock", "_ends", "partial", "plain", "seconds", "waiting")

    def __init__(self, seconds: float, *, plain: bool) -> None:
        self.seconds = seconds
        self.plain = plain
        self.waiting: str | None = None
        self.partial: object = None
        self._clock: Clock = current_clock()
        self._ends = self._clock.now() + seconds

    def left(self) -> float:
        """Seconds until it comes, negative afterwards; readable from any thread."""
        return self._ends - self._clock.now()

    @property
    def is_over(self) -> bool:
        """Whether it has come; a loop may wake its tasks one tick early."""
        return self.left() <= _TICK_S

    def exceeded(self, where: str) -> DeadlineExceeded:
        """Make the error; `where` is the path that was waiting, or that was not begun any more."""
        place = f"{where!r}" if where else "code outside module calls"
        error = DeadlineExceeded(
            f"the deadline of {self.seconds:g} s is over; waiting was: {place}. "
            "Allow more with sm.deadline(seconds), or do less inside."
        )
        error.partial = self.partial
        return error


def earlier(old: Deadline | None, new: Deadline) -> Deadline:
    """Give the deadline that comes first; the outer one where both come together."""
    return new if old is None or new.left() < old.left() else old
