"""Rewards of one run: collected under the path of the module that gives them, handed up when the entry call ends."""

from __future__ import annotations

import math
import threading
from bisect import insort
from typing import NamedTuple, TypeAlias

from synmod.errors import CallError
from synmod.scope.ambient import Entered, ambient, enter, leave, take_entry
from synmod.scope.frame import CallFrame

Reward: TypeAlias = tuple[str, str | None, float]
"""Path of the module, name of the reward or None, value."""


class _Entry(NamedTuple):
    """A reward and its place in the order: by the start of the calls, then as they were given."""

    run: float
    call: int
    turn: int
    lineage: frozenset[int]
    reward: Reward

    def key(self) -> tuple[float, int, int]:
        return (self.run, self.call, self.turn)


class RewardLedger:
    """The rewards of one running entry call."""

    __slots__ = ("_entries", "_lock", "_started", "_turn")

    def __init__(self, started: float) -> None:
        self._lock = threading.Lock()
        self._entries: list[_Entry] = []
        self._started = started
        self._turn = 0

    def add(self, frame: CallFrame, reward: Reward) -> None:
        """Write down a reward that the call of `frame` gives."""
        lineage = frozenset(_numbers_above(frame))
        with self._lock:
            self._turn += 1
            insort(self._entries, _Entry(self._started, frame._number, self._turn, lineage, reward), key=_Entry.key)

    def discard(self, frame: CallFrame) -> None:
        """Drop what a call that failed, and the calls below it, have given."""
        with self._lock:
            self._entries = [entry for entry in self._entries if frame._number not in entry.lineage]

    def entries(self) -> list[_Entry]:
        """Give all entries, in order."""
        with self._lock:
            return list(self._entries)

    def rewards(self) -> tuple[Reward, ...]:
        """Give all rewards, by the start of the calls."""
        return tuple(entry.reward for entry in self.entries())


def _numbers_above(frame: CallFrame | None) -> list[int]:
    """Number the calls from `frame` up to its entry call."""
    numbers: list[int] = []
    while frame is not None:
        numbers.append(frame._number)
        frame = frame._parent
    return numbers


def give_reward(frame: CallFrame | None, path: str, value: object, name: str | None = None) -> None:
    """Hand a reward to the run of `frame`, under `path`; while schemas are traced it only checks the value.

    Raises:
        CallError: No call runs, or the value is no finite number.
    """
    where = f"{path or 'the entry module'}: add_reward"
    if frame is None:
        raise CallError(f"{where}: there is no running call; call it inside `call`.")
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        raise CallError(f"{where}: got {value!r}; a reward is a finite number.")
    if not frame.symbolic:
        frame.root.open_ledger().add(frame, (path, name, float(value)))


def rewards_under(frame: CallFrame | None, path: str) -> tuple[float, ...]:
    """Give the values under a path so far in the run of `frame`, by the start of the calls; () outside a call."""
    if frame is None or frame.root.ledger is None:
        return ()
    below = f"{path}/"
    return tuple(
        value for at, _, value in frame.root.ledger.rewards() if not path or at == path or at.startswith(below)
    )


class RewardTrack:
    """The list that one `track_rewards` block fills."""

    __slots__ = ("_entries", "_lock", "rewards")

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._entries: list[_Entry] = []
        self.rewards: list[Reward] = []

    def extend(self, entries: list[_Entry]) -> None:
        """Add the rewards of an entry call; the list stays in the order of the starts of the calls."""
        with self._lock:
            self._entries = sorted([*self._entries, *entries], key=_Entry.key)
            self.rewards[:] = [entry.reward for entry in self._entries]


class track_rewards:  # noqa: N801  # read as a word: `with sm.track_rewards() as rewards:`
    """Collect the rewards of the entry calls that end in a block.

    The block gives a list of `(path, name, value)`, by the start of the calls.

    Example:
        >>> with track_rewards() as rewards:
        ...     pass
        >>> rewards
        []

    Source: Keras' `add_loss`; differs: nothing is stored on modules, so that samples never mix.
    """

    __slots__ = ("_entries",)

    def __init__(self) -> None:
        self._entries: list[Entered] = []

    def __enter__(self) -> list[Reward]:
        track = RewardTrack()
        self._entries.append(enter("reward_tracks", track))
        return track.rewards

    def __exit__(self, *_: object) -> None:
        leave(take_entry(self._entries))


def hand_up(frame: CallFrame) -> None:
    """Give the rewards of an entry call that returned to the open `track_rewards` blocks."""
    ledger, record = frame.root.ledger, ambient()
    if ledger is not None and record is not None:
        for track in record.reward_tracks:
            track.extend(ledger.entries())
