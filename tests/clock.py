"""A clock that a test sets: waiting on it takes no time, and is noted."""


class ManualClock:
    """Put in force by `use_clock`; `time` is set by hand, `waits` are the seconds that were slept."""

    def __init__(self, now=0.0):
        self.time, self.waits = now, []

    def now(self):
        return self.time

    async def sleep(self, seconds):
        self.waits.append(seconds)
        self.time += seconds
