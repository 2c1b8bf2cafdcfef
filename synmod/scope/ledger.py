"""The rewards of one run, in the order of the starts of its calls, and the list that a block collects them in."""

from __future__ import annotations

import threading
from bisect import bisect_right, insort
from collections.abc import Sequence
from typing import NamedTuple, Protocol, TypeAlias

Reward: TypeAlias = tuple[str, str | None, float]
"""Path of the module, name of the reward or None, value."""


class RewardEntry(NamedTuple):
    """A reward and its place in the order: by the start of the calls, then as they were given."""

    run: float
    call: int
    turn: int
    lineage: frozenset[int]
    reward: Reward

    def key(self) -> tuple[float, int, int]:
        """Give what entries are ordered by."""
        return (self.run, self.call, self.turn)


class Numbered(Protocol):
    """What a ledger knows of a frame: the number of the call in its run."""

    @property
    def number(self) -> int:
        """Which call of its run it is."""
        ...


class RewardLedger:
    """The rewards of one running entry call."""

    __slots__ = ("_entries", "_lock", "_started", "_turn")

    def __init__(self, started: float) -> None:
        # May be taken again: clean-up of garbage closes coroutines anywhere, and their calls end then and there.
        self._lock = threading.RLock()
        self._entries: list[RewardEntry] = []
        self._started = started
        self._turn = 0

    def add(self, lineage: Sequence[int], reward: Reward) -> None:
        """Write down a reward; `lineage` numbers the call that gives it and those above."""
        with self._lock:
            self._turn += 1
            entry = RewardEntry(self._started, lineage[0], self._turn, frozenset(lineage), reward)
            insort(self._entries, entry, key=RewardEntry.key)

    def discard(self, frame: Numbered) -> None:
        """Drop what a call that did not return, and the calls below it, have given."""
        with self._lock:
            self._entries[:] = [entry for entry in self._entries if frame.number not in entry.lineage]

    def entries(self) -> list[RewardEntry]:
        """Give all entries, in order."""
        with self._lock:
            return list(self._entries)

    def rewards(self) -> tuple[Reward, ...]:
        """Give all rewards, by the start of the calls."""
        return tuple(entry.reward for entry in self.entries())


class RewardTrack:
    """The list that one `track_rewards` block fills."""

    __slots__ = ("_keys", "_lock", "rewards")

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._keys: list[tuple[float, int, int]] = []
        self.rewards: list[Reward] = []

    def extend(self, entries: list[RewardEntry]) -> None:
        """Add the rewards of an entry call; the list stays in the order of the starts of the calls."""
        with self._lock:
            for entry in entries:
                key = entry.key()
                place = bisect_right(self._keys, key)
                self._keys.insert(place, key)
                self.rewards.insert(place, entry.reward)
