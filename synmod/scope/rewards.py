"""Rewards: functions that ask by parameter name for what they judge, the feedback that they return, and their sums.

A module adds rewards inside its call; they are handed up when the entry call ends, and are kept nowhere.
"""

import inspect
import math
import threading
from bisect import bisect_right
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from numbers import Real
from typing import Any, Final

from synmod import errors, leaves

from .frame import Block, CallFrame, GivenReward, Owner, Reward, ambient, current_call, phase

_ALIASES: Final = {"y_pred": "outputs", "y_true": "target"}


@dataclass(frozen=True, slots=True)
class Feedback:
    """What a reward returns for one output: a score, and what would make it better.

    Attributes:
        score: Higher is better, inside the reward's `range`; None where there is nothing to score.
        critique: What is wrong, in words.
        target: What should have come out.
        objectives: Further numbers by name.
        parts: Critique by module path or glob, for these modules alone.

    Example:
        >>> Feedback(0.5, critique="No source is given.").to_json()["score"]
        0.5

    Source: textual gradients (TextGrad), GEPA's feedback functions.
    """

    score: float | None
    critique: str | None = None
    target: Any = None
    objectives: Mapping[str, float] = field(default_factory=dict[str, float])
    parts: Mapping[str, str] = field(default_factory=dict[str, str])

    def record(self) -> dict[str, Any]:
        """Return the feedback by name of its fields, with the target as it is."""
        return {
            "score": self.score,
            "critique": self.critique,
            "target": self.target,
            "objectives": dict(self.objectives),
            "parts": dict(self.parts),
        }

    def to_json(self) -> dict[str, Any]:
        """Return the feedback as plain JSON.

        Raises:
            DataError: The target is not JSON.
        """
        return leaves.thaw(self.record())


class BoundReward:
    """A reward or metric whose parameters were read once; each call passes what they name, in any order.

    Args:
        reward: A function, plain or async, or an object with a method `call`, such as a module. One whose `call` hands
            on what it is given (`**offered`) names in `asks_for` what it wants.
        offered: The names that it may ask for; `y_pred` and `y_true` are other names of `outputs` and `target`.
        what: What messages call it.

    Attributes:
        asks_for: The names of `offered` that it asks for.
        lowest: The worst score of its `range`; 0.0 where it has none.

    Raises:
        ArgumentError: It cannot be called, or asks for something else.
    """

    __slots__ = ("_function", "_needs_target", "_parameters", "_range", "_what", "asks_for", "lowest")

    def __init__(self, reward: Any, offered: Iterable[str], *, what: str = "the reward") -> None:
        self._what = what
        asked: Any = getattr(reward, "call", reward)  # the parameters of a module are those of its `call`
        needs_target: bool | None = getattr(reward, "needs_target", None)
        is_reward = needs_target is not None  # which has no frame of its own, other than a module
        self._function = reward if callable(reward) and not is_reward else asked
        names = tuple(offered)
        if not callable(self._function):
            raise errors.ArgumentError(f"{what} is a {type(reward).__name__}; write a function of {', '.join(names)}.")
        wanted: Iterable[str] | None = getattr(reward, "asks_for", None)
        try:
            parameters = [*inspect.signature(asked).parameters.values()]
        except (TypeError, ValueError):
            raise errors.ArgumentError(
                f"{what}: parameters of {reward!r:.80} cannot be read: wrap it in a function."
            ) from None
        if wanted is not None:
            parameters = [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY) for name in sorted(wanted)]
        self._parameters: list[tuple[str, str, bool]] = []
        """For each parameter its name, what it asks for, and whether it is positional only."""
        for parameter in parameters:
            source = _ALIASES.get(parameter.name, parameter.name)
            if source in names:
                self._parameters.append((parameter.name, source, parameter.kind is parameter.POSITIONAL_ONLY))
            elif parameter.default is parameter.empty and parameter.kind not in (
                parameter.VAR_POSITIONAL,
                parameter.VAR_KEYWORD,
            ):
                words = [*names, *(alias for alias, name in _ALIASES.items() if name in names)]
                raise errors.ArgumentError(
                    f"{what} asks for {parameter.name!r}; it may ask for {', '.join(words)}, by these names and in any "
                    f"order.{leaves.did_you_mean(parameter.name, words)}"
                )
        self.asks_for = frozenset(source for _, source, _ in self._parameters)
        self._range: tuple[float, float] = getattr(reward, "range", (-math.inf, math.inf))
        self.lowest = self._range[0] if math.isfinite(self._range[0]) else 0.0
        self._needs_target = needs_target

    async def __call__(self, **offered: Any) -> Feedback:
        """Return the feedback on one output, computed in phase `reward`; a number becomes a Feedback.

        Args:
            offered: A value for each name that it may ask for.

        Raises:
            CallError: It needs a target and there is none; it returned something other than a finite number, a bool, or
                a Feedback of such, or a score outside its `range`.
            Exception: What it raised.
        """
        if self._needs_target and offered.get("target") is None:
            raise errors.CallError(f"{self._what} needs a target, and example {offered.get('example_id')!r} has none.")
        with phase("reward"):
            result = self.call(**offered)
            if inspect.isawaitable(result):
                result = await result
        return self.feedback(result)

    def feedback(self, result: Any) -> Feedback:
        """Return what the function returned as a Feedback.

        Raises:
            CallError: As for a call.
        """
        if not isinstance(result, Feedback):
            return Feedback(self._in_range(result))
        return replace(
            result,
            score=None if result.score is None else self._in_range(result.score),
            objectives={name: self._finite(value) for name, value in result.objectives.items()},
        )

    def call(self, **offered: Any) -> Any:
        """Return what the function returns for what it asks for, unchecked; an awaitable where it is async."""
        positional = [offered[source] for _, source, by_place in self._parameters if by_place]
        named = {name: offered[source] for name, source, by_place in self._parameters if not by_place}
        return self._function(*positional, **named)

    def _in_range(self, value: Any) -> float:
        """Return a score as a float."""
        score, (low, high) = self._finite(value), self._range
        if not low <= score <= high:
            raise errors.CallError(f"{self._what} is {score!r}, outside its range from {low} to {high}.")
        return score

    def _finite(self, value: Any) -> float:
        """Return a number as a float."""
        number = _finite(value)
        if number is None:
            raise errors.CallError(
                f"{self._what} is {value!r:.100}; it must be a finite number, a bool, or a Feedback of such."
            )
        return number


# -- what a block has collected ----------------------------------------------------------------------------------------


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
        raise errors.CallError(f"{owner.name}.add_reward: no call is running; give rewards inside `call`.")
    number = _finite(value)
    if number is None:
        raise errors.CallError(f"{frame.path or owner.name}: add_reward got {value!r}; a reward is a finite number.")
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

    def __enter__(self) -> list[Reward]:
        track = RewardTrack()
        self.enter(reward_tracks=track)
        return track.rewards


def hand_up(frame: CallFrame) -> None:
    """Give the rewards of an entry call that returned to the open `track_rewards` blocks."""
    record = ambient()
    if record is not None and frame.root.given_rewards:
        for track in record.reward_tracks:
            track.extend(frame)
