"""Rewards: a module gives them inside its call; they are handed up when the entry call ends, and kept nowhere."""

from __future__ import annotations

import math
import threading
from bisect import bisect_right
from numbers import Real

from synmod.errors import CallError

from .ambient import Block, ambient
from .frame import CallFrame, GivenReward, Owner, Reward, current_call


def add_reward(owner: Owner, value: object, name: str | None = None) -> None:
    """Hand a reward to the running entry call, under the path of a module; in a trace it is only checked.

    Args:
        owner: The module that gives it.
        value: A finite number.
        name: A label.

    Raises:
        CallError: No call is running, or the value is not a finite number.
    """
    frame = current_call()
    if frame is None:
        raise CallError(f"{owner.name}.add_reward: no call is running; give rewards inside `call`.")
    number = _finite(value)
    if number is None:
        raise CallError(f"{frame.path or owner.name}: add_reward got {value!r}; a reward is a finite number.")
    if frame.symbolic:
        return
    giver: CallFrame | None = _frame_of(owner, frame) or frame
    call, lineage = giver.number, list[int]()
    while giver is not None:
        lineage.append(giver.number)
        giver = giver.parent
    frame.root.given_rewards.append(GivenReward(call, frozenset(lineage), (_path_of(owner, frame), name, number)))


def _frame_of(owner: Owner, frame: CallFrame | None) -> CallFrame | None:
    """Return the innermost running call of a module."""
    while frame is not None and frame.owner is not owner:
        frame = frame.parent
    return frame


def _path_of(owner: Owner, frame: CallFrame) -> str:
    """Return where a module stands below the entry module of a running call."""
    running = _frame_of(owner, frame)
    if running is not None:
        return running.path
    known = frame.root.paths.get(id(owner))
    return known if known is not None else f"{frame.path}/{owner.name}".lstrip("/")


def _finite(value: object) -> float | None:
    """Return a number as a float, None for anything else."""
    try:
        number = float(value) if isinstance(value, Real) else math.nan
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def rewards_of(owner: Owner) -> tuple[float, ...]:
    """Return the values under a module so far in the running entry call, by the start of the calls; () outside."""
    frame = current_call()
    if frame is None or not frame.root.given_rewards:
        return ()
    path = _path_of(owner, frame)
    below = f"{path}/"
    return tuple(value for at, _, value in frame.rewards if not path or at == path or at.startswith(below))


class RewardTrack:
    """The list that one `track_rewards` block fills, in the order of the starts of the calls."""

    __slots__ = ("_keys", "_lock", "rewards")

    def __init__(self) -> None:
        self._lock = threading.RLock()  # re-entrant: the collector may close a coroutine, whose call ends, in here
        self._keys: list[tuple[float, int]] = []
        self.rewards: list[Reward] = []

    def extend(self, frame: CallFrame) -> None:
        """Add the rewards of an entry call."""
        with self._lock:
            for given in frame.kept_rewards():
                key = (frame.root.started, given.call)
                place = bisect_right(self._keys, key)
                self._keys.insert(place, key)
                self.rewards.insert(place, given.reward)


class track_rewards(Block):  # noqa: N801  # read as a word: `with sm.track_rewards() as rewards:`
    """Collect the rewards of the entry calls that end in a block.

    The block gives a list of `(path, name, value)`, by the start of the calls.

    Example:
        >>> with track_rewards() as rewards:
        ...     pass
        >>> rewards
        []

    Source: Keras' `add_loss`; differs: nothing is stored on modules, so that samples never mix.
    """

    field = "reward_tracks"

    def __enter__(self) -> list[Reward]:
        track = RewardTrack()
        self.enter(track)
        return track.rewards


def hand_up(frame: CallFrame) -> None:
    """Give the rewards of an entry call that returned to the open `track_rewards` blocks."""
    record = ambient()
    if record is not None and frame.root.given_rewards:
        for track in record.reward_tracks:
            track.extend(frame)
