"""Limit: how many requests may run at once, and how many requests and tokens may leave in any minute."""

from __future__ import annotations

import math
import threading
from collections import deque
from typing import Any, Final

from synmod.errors import ConfigError, RequestError
from synmod.leaves import aio, current_clock

_WINDOW_S: Final = 60.0
_SHORTEST_WAIT_S: Final = 0.001  # a rounding error must not make a wait that ends where it began


class Limit:
    """Limits the requests of one or several models: at once, and in every window of 60 seconds.

    First come, first served; a call that is cancelled, or whose time is over, while it waits leaves nothing taken.
    Tokens count by an estimate when a request leaves (characters / 3 plus `max_tokens`), by the reply from then on.
    One Limit serves all tasks, threads and event loops of the process; other processes do not know of it.

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

    __slots__ = ("_lock", "_log", "_queue", "_running", "_tokens", "concurrency", "rpm", "tpm")

    def __init__(self, concurrency: int | None = None, rpm: int | None = None, tpm: int | None = None) -> None:
        for name, number in {"concurrency": concurrency, "rpm": rpm, "tpm": tpm}.items():
            if number is not None and (type(number) is not int or number < 1):
                raise ConfigError(f"Limit: {name} is {number!r:.100}; write a whole number above 0, or None.")
        self.concurrency, self.rpm, self.tpm = concurrency, rpm, tpm
        if not self.numbers():
            raise ConfigError("Limit got no limit: write concurrency=, rpm= or tpm=.")
        self._lock = threading.RLock()  # re-entrant: the collector may close a coroutine, whose turn ends, in here
        self._queue: deque[Turn] = deque()
        self._running = 0
        self._log: deque[Turn] = deque()
        self._tokens = 0  # of the log

    def turn(self, tokens: int) -> Turn:
        """Return the turn of a request that may use so many tokens: begin it before the request, end it after."""
        return Turn(self, tokens)

    def numbers(self) -> dict[str, int]:
        """Return the limits that were given, by name."""
        given = {"concurrency": self.concurrency, "rpm": self.rpm, "tpm": self.tpm}
        return {name: number for name, number in given.items() if number is not None}

    def __repr__(self) -> str:
        return f"Limit({', '.join(f'{name}={number}' for name, number in self.numbers().items())})"

    def __copy__(self, memo: object = None) -> Limit:
        """A limit is held by reference: copies share it."""
        return self

    __deepcopy__ = __copy__

    def _seconds_to(self, turn: Turn) -> float:
        """Return how long a turn must wait at least: 0 if it is its turn, infinity where another's end wakes it."""
        if self._queue[0] is not turn or (self.concurrency is not None and self._running >= self.concurrency):
            return math.inf
        if self.rpm is None and self.tpm is None:
            return 0.0
        now = aio.steady_time()
        while self._log and now - self._log[0].began >= _WINDOW_S:
            self._forget(self._log[0])
        requests = 0 if self.rpm is None else len(self._log) + 1 - self.rpm  # that many are too many
        tokens = 0 if self.tpm is None else self._tokens + turn.tokens - self.tpm
        ready = now
        for sent in self._log:
            if requests <= 0 and tokens <= 0:
                break
            requests, tokens, ready = requests - 1, tokens - sent.tokens, sent.began + _WINDOW_S
        return max(ready - now, _SHORTEST_WAIT_S) if ready > now else 0.0

    def _begin(self, turn: Turn) -> None:
        """Log a request that may leave now."""
        self._running += 1
        if self.rpm is not None or self.tpm is not None:
            turn.began, turn.is_logged = aio.steady_time(), True
            self._log.append(turn)
            self._tokens += turn.tokens

    def _forget(self, turn: Turn) -> None:
        """Take a request out of the log."""
        if turn.is_logged:
            turn.is_logged = False
            self._log.remove(turn)
            self._tokens -= turn.tokens

    def _wake(self) -> None:
        """Let the first in the queue look again."""
        if self._queue:
            self._queue[0].signal.set()


class Turn:
    """The turn of one request under a limit."""

    __slots__ = ("_limit", "began", "is_logged", "signal", "tokens")

    def __init__(self, limit: Limit, tokens: int) -> None:
        self._limit = limit
        self.tokens = tokens
        self.began = 0.0
        self.is_logged = False
        self.signal = aio.Signal()

    async def begin(self) -> None:
        """Wait until the request may leave.

        Raises:
            RequestError: It may use more tokens than a minute ever has room for.
        """
        limit, most = self._limit, self._limit.tpm
        if most is not None and self.tokens > most:
            got, remedy = f"it may use {self.tokens} tokens", "raise tpm, lower max_tokens, or send less"
            raise RequestError(f"the request never fits into the limit of tpm={most}: {got}; {remedy}", sent=False)
        with limit._lock:
            limit._queue.append(self)
        try:
            while True:
                with limit._lock:
                    seconds = limit._seconds_to(self)
                    if not seconds:
                        limit._begin(self)
                        return
                    self.signal = aio.Signal()
                await _set_or_over(self.signal, seconds)
        finally:
            with limit._lock:
                limit._queue.remove(self)
                limit._wake()

    def settle(self, tokens: int) -> None:
        """Count the tokens that the request used instead of the estimate."""
        with self._limit._lock:
            self._limit._tokens += (tokens - self.tokens) * self.is_logged
            self.tokens = tokens

    def end(self, *, sent: bool) -> None:
        """Make room for the next request; one that was not sent leaves the log of the last minute."""
        with self._limit._lock:
            self._limit._running -= 1
            if not sent:
                self._limit._forget(self)
            self._limit._wake()


async def _set_or_over(signal: aio.Signal, seconds: float) -> None:
    """Wait for a signal, at most some seconds."""
    if math.isinf(seconds):
        await signal.wait()
        return

    async def ring() -> None:
        await current_clock().sleep(seconds)
        signal.set()

    async with aio.task_group() as group:
        group.start_soon(ring)
        await signal.wait()
        group.cancel()


def limit_from(given: Any) -> Limit | None:
    """Return a limit; an int is a number of requests at once.

    Raises:
        ConfigError: It is neither a Limit nor a whole number above 0.
    """
    if given is None or isinstance(given, Limit):
        return given
    if type(given) is not int:
        raise ConfigError(f"limit is {given!r:.100}; write sm.Limit(rpm=...), or a number of requests at once.")
    return Limit(concurrency=given)
