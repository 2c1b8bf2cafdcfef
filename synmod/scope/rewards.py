"""Rewards: a module gives them inside its call; they are handed up when the entry call ends, and kept nowhere."""

from __future__ import annotations

import math
from numbers import Real

from synmod.errors import CallError
from synmod.scope.ambient import Entered, ambient, enter, leave, take_entry
from synmod.scope.frame import CallFrame, Owner, current_call
from synmod.scope.ledger import Reward, RewardTrack


def add_reward(owner: Owner, value: object, name: str | None = None) -> None:
    """Hand a reward to the running entry call, under the path of a module; in a trace it is only checked.

    Args:
        owner: The module that gives it.
        value: A finite number.
        name: A label.

    Raises:
        CallError: No call runs, or the value is no finite number.
    """
    frame = current_call()
    if frame is None:
        raise CallError(f"{owner.name}.add_reward: no call is running; give rewards inside `call`.")
    number = _finite(value)
    if number is None:
        raise CallError(f"{frame.path or owner.name}: add_reward got {value!r}; a reward is a finite number.")
    if not frame.symbolic:
        giver = _frame_of(owner, frame) or frame
        frame.root.open_ledger().add(_numbers_above(giver), (_path_of(owner, frame), name, number))


def _frame_of(owner: Owner, frame: CallFrame | None) -> CallFrame | None:
    """Find the innermost running call of a module."""
    while frame is not None and frame.owner is not owner:
        frame = frame.parent
    return frame


def _path_of(owner: Owner, frame: CallFrame) -> str:
    """Tell where a module stands below the entry module of a running call."""
    running = _frame_of(owner, frame)
    if running is not None:
        return running.path
    known = frame.root.paths.get(id(owner))
    return known if known is not None else f"{frame.path}/{owner.name}".lstrip("/")


def _finite(value: object) -> float | None:
    """Give a number as a float, None for anything else."""
    try:
        number = float(value) if isinstance(value, Real) else math.nan
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def rewards_of(owner: Owner) -> tuple[float, ...]:
    """Give the values under a module so far in the running entry call, by the start of the calls; () outside."""
    frame = current_call()
    if frame is None or frame.root.ledger is None:
        return ()
    path = _path_of(owner, frame)
    below = f"{path}/"
    return tuple(
        value for at, _, value in frame.root.ledger.rewards() if not path or at == path or at.startswith(below)
    )


def _numbers_above(frame: CallFrame | None) -> list[int]:
    """Number the calls from `frame` up to its entry call."""
    numbers: list[int] = []
    while frame is not None:
        numbers.append(frame.number)
        frame = frame.parent
    return numbers


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
        leave(take_entry(self._entries, lambda entry: entry.record))


def hand_up(frame: CallFrame) -> None:
    """Give the rewards of an entry call that returned to the open `track_rewards` blocks."""
    ledger, record = frame.root.ledger, ambient()
    if ledger is not None and record is not None:
        for track in record.reward_tracks:
            track.extend(ledger.entries())
