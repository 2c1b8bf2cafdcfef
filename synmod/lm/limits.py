"""Limits on the requests of models: under way at once, and requests and tokens in any minute."""

from __future__ import annotations

import math
from collections import Counter, deque
from typing import Final

from synmod.errors import ConfigError, RequestError
from synmod.leaves import aio, check_int, checks_keywords, current_clock

_WINDOW_S: Final = 60.0
_SHORTEST_WAIT_S: Final = 0.001  # so that rounding cannot cause a busy loop
_LOOK_S: Final = 1.0  # until a slot looks whether another loop that shares its limit was closed
_LOOKS_PER_S: Final = 1_000  # of all slots that wait


class Limit:
    """Limits the requests of one or more models: at once, and in every window of 60 seconds.

    First come, first served; a call that is cancelled or times out while it waits takes up no room. Tokens are
    estimated when a request is sent (characters / 3 plus `max_tokens`), and corrected by its reply.
    One Limit serves all tasks, threads and event loops of the process; it is not shared with other processes. The room
    of requests whose loop was closed before they ended is free again within a second or so.

    Args:
        concurrency: Requests under way at once.
        rpm: Requests per minute.
        tpm: Tokens per minute, of prompts and completions.

    Raises:
        ConfigError: None of them is given, or one is not a whole number above 0.

    Example:
        >>> shared = Limit(concurrency=8, rpm=500, tpm=200_000)
        >>> fast = sm.LanguageModel("openai/gpt-4o-mini", limit=shared)
        >>> good = sm.LanguageModel("openai/gpt-4o", limit=shared)

    Source: sliding-window logs of API gateways; differs: tokens are reserved before and corrected after.
    """

    __slots__ = ("_homes", "_lock", "_log", "_queue", "_running", "concurrency", "rpm", "tpm")

    @checks_keywords
    def __init__(self, concurrency: int | None = None, rpm: int | None = None, tpm: int | None = None) -> None:
        self.concurrency, self.rpm, self.tpm = concurrency, rpm, tpm
        for name, number in self.numbers().items():
            check_int(f"Limit: {name}", number, error=ConfigError)
        if not self.numbers():
            raise ConfigError("Limit got no limit: write concurrency=, rpm= or tpm=.")
        self._lock = aio.lock()
        self._homes: Counter[aio.Home] = Counter()  # of all slots, waiting and under way
        self._queue: deque[RequestSlot] = deque()
        self._running = 0
        self._log: deque[RequestSlot] = deque()

    def slot(self, tokens: int) -> RequestSlot:
        """Return the slot of a request that may use this many tokens: begin it before the request, end it after."""
        return RequestSlot(self, tokens)

    def numbers(self) -> dict[str, int]:
        """Return the limits that were given, by name."""
        return {name: number for name in ("concurrency", "rpm", "tpm") if (number := getattr(self, name)) is not None}

    def __repr__(self) -> str:
        return f"Limit({', '.join(f'{name}={number}' for name, number in self.numbers().items())})"

    def __copy__(self, memo: object = None) -> Limit:
        """A limit is held by reference: copies share it."""
        return self

    __deepcopy__ = __copy__

    def _seconds_to(self, slot: RequestSlot) -> float:
        """Return how long a slot must wait at least: 0 if it may begin, infinity if the end of another wakes it."""
        if len(self._homes) > 1 and self._must_wait(slot):
            self._forget_ended()
        if self._must_wait(slot):
            return math.inf if len(self._homes) == 1 else max(_LOOK_S, len(self._queue) / _LOOKS_PER_S)
        now = aio.steady_time()
        while self._log and now - self._log[0].began >= _WINDOW_S:
            self._log.popleft()
        requests = 0 if self.rpm is None else len(self._log) + 1 - self.rpm  # how many are too many
        tokens = 0 if self.tpm is None else sum(sent.tokens for sent in self._log) + slot.tokens - self.tpm
        ready = now
        for sent in self._log:
            if requests <= 0 and tokens <= 0:
                break
            requests, tokens, ready = requests - 1, tokens - sent.tokens, sent.began + _WINDOW_S
        return max(ready - now, _SHORTEST_WAIT_S) if ready > now else 0.0

    def _must_wait(self, slot: RequestSlot) -> bool:
        """Whether others are before a slot, or all places are taken."""
        return self._queue[0] is not slot or (self.concurrency is not None and self._running >= self.concurrency)

    def _forget_ended(self) -> None:
        """Remove the slots whose loop was closed, or is that of the parent process."""
        for home in [home for home in self._homes if home.has_ended()]:
            waiting = [slot for slot in self._queue if slot.home == home]
            self._queue = deque(slot for slot in self._queue if slot.home != home)
            self._running -= self._homes.pop(home) - len(waiting)
        self._wake()

    def _leave(self, slot: RequestSlot) -> bool:
        """Count a slot that has ended; return whether it had not been forgotten."""
        left = self._homes.pop(slot.home, 0) - 1
        if left > 0:
            self._homes[slot.home] = left
        return left >= 0

    def _begin(self, slot: RequestSlot) -> None:
        """Log a request that is sent now."""
        self._running += 1
        if self.rpm is not None or self.tpm is not None:
            slot.began = aio.steady_time()
            self._log.append(slot)

    def _wake(self) -> None:
        """Wake the first slot in the queue."""
        if self._queue:
            self._queue[0].signal.set()


class RequestSlot:
    """The slot of one request under a limit."""

    __slots__ = ("_limit", "began", "home", "signal", "tokens")

    def __init__(self, limit: Limit, tokens: int) -> None:
        self._limit = limit
        self.tokens = tokens
        self.began = 0.0
        self.home = aio.Home.here()
        self.signal = aio.Signal()

    async def begin(self) -> None:
        """Wait until the request may be sent.

        Raises:
            RequestError: It may use more tokens than the limit allows per minute.
        """
        limit, most = self._limit, self._limit.tpm
        if most is not None and self.tokens > most:
            got, remedy = f"it may use {self.tokens} tokens", "raise tpm, lower max_tokens, or send less"
            raise RequestError(f"the request never fits into the limit of tpm={most}: {got}; {remedy}", sent=False)
        with limit._lock:
            limit._queue.append(self)
            limit._homes[self.home] += 1
        has_begun = False
        try:
            while True:
                with limit._lock:
                    seconds = limit._seconds_to(self)
                    if not seconds:
                        limit._begin(self)
                        has_begun = True
                        return
                    self.signal = aio.Signal()
                await _wait_for_signal(self.signal, seconds)
        finally:
            with limit._lock:
                if has_begun or limit._leave(self):
                    limit._queue.remove(self)
                limit._wake()

    def settle(self, tokens: int) -> None:
        """Replace the estimate by the tokens that the request used."""
        self.tokens = tokens

    def end(self, *, sent: bool) -> None:
        """Make room for the next request; remove one that was not sent from the log."""
        with self._limit._lock:
            self._limit._running -= self._limit._leave(self)
            if not sent and self in self._limit._log:
                self._limit._log.remove(self)
            self._limit._wake()


async def _wait_for_signal(signal: aio.Signal, seconds: float) -> None:
    """Wait for a signal, for at most `seconds`."""

    async def wake() -> None:
        await current_clock().sleep(seconds)
        signal.set()

    async with aio.task_group() as group:
        if seconds < math.inf:
            group.start_soon(wake)
        await signal.wait()
        group.cancel()
