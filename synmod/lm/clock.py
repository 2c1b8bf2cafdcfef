"""Time of a model: what the retry loop reads and waits by, so that a test can stand in for it."""

from __future__ import annotations

import time

from synmod.leaves import aio


class Clock:
    """The real time."""

    __slots__ = ()

    def now(self) -> float:
        """Seconds of a clock that never goes back."""
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        await aio.sleep(seconds)
