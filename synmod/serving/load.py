"""How much runs at once, and what was counted: places with a queue, and the numbers of `/metrics`."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from typing import Final

from synmod.leaves import aio
from synmod.scope import Usage

from .refusals import QueueFull


class Places:
    """A number of places for calls, and a queue before them: first come, first served.

    Args:
        concurrency: How many calls run at once.
        queue: How many may wait.
    """

    def __init__(self, concurrency: int, queue: int) -> None:
        self._most, self._longest = concurrency, queue
        self.running = self.waiting = 0
        self._gate = aio.Gate()

    def check_room(self) -> None:
        """Raise QueueFull where neither a place nor the queue has room."""
        if (self.running >= self._most or self.waiting) and self.waiting >= self._longest:
            raise QueueFull

    @asynccontextmanager
    async def take(self) -> AsyncGenerator[None]:
        """Hold a place for a block, once there is one."""
        if self.running >= self._most or self.waiting:
            self.waiting += 1
            try:
                await self._gate.wait()
                while self.running >= self._most:
                    await self._gate.wait()
            finally:
                self.waiting -= 1
        self.running += 1
        try:
            if self.running < self._most:  # two places may have become free before the first waiter took one
                self._gate.wake()
            yield
        finally:
            self.running -= 1
            self._gate.wake()


_BOUNDS: Final = (0.005, 0.025, 0.1, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0)
_TOKENS: Final = ("prompt_tokens", "completion_tokens", "cached_tokens", "reasoning_tokens")


class Counters:
    """The numbers of a server since it started, in the text format of Prometheus."""

    def __init__(self) -> None:
        self._requests: Counter[tuple[str, str, int]] = Counter()
        self._within: Counter[float] = Counter()  # by the least bound that a request stayed within
        self._seconds = 0.0
        self._tokens: Counter[str] = Counter()
        self._cost_usd = 0.0

    def count(self, program: str, route: str, status: int, elapsed_s: float) -> None:
        """Count a request that has ended."""
        self._requests[program, route, status] += 1
        self._within[next((bound for bound in _BOUNDS if elapsed_s <= bound), float("inf"))] += 1
        self._seconds += elapsed_s

    def count_usage(self, usage: Usage) -> None:
        """Count what a call or a run used."""
        self._tokens.update({name: getattr(usage, name) for name in _TOKENS})
        self._cost_usd += usage.cost_usd or 0.0

    def lines(self, places: Places) -> Iterator[str]:
        """Yield the lines of the text."""
        yield "# TYPE synmod_requests_total counter"
        for (program, route, status), count in sorted(self._requests.items()):
            yield f'synmod_requests_total{{program="{program}",route="{route}",status="{status}"}} {count}'
        yield "# TYPE synmod_request_seconds histogram"
        total = 0
        for bound in (*_BOUNDS, float("inf")):
            total += self._within[bound]
            label = "+Inf" if bound == float("inf") else f"{bound:g}"
            yield f'synmod_request_seconds_bucket{{le="{label}"}} {total}'
        yield f"synmod_request_seconds_sum {self._seconds:.6f}"
        yield f"synmod_request_seconds_count {total}"
        yield "# TYPE synmod_tokens_total counter"
        for name in _TOKENS:
            yield f'synmod_tokens_total{{kind="{name.removesuffix("_tokens")}"}} {self._tokens[name]}'
        yield "# TYPE synmod_cost_usd_total counter"
        yield f"synmod_cost_usd_total {self._cost_usd:.9g}"
        for name, number in (("in_flight", places.running), ("queued", places.waiting)):
            yield f"# TYPE synmod_{name} gauge"
            yield f"synmod_{name} {number}"
