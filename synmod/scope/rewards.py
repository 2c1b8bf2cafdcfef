"""Rewards and feedback: what a reward returns, how its parameters are bound, and the rewards that calls give.

A module adds rewards inside its call; they go to the open `track_rewards` blocks when the entry call ends, and are not
stored on modules.
"""

import inspect
import math
import threading
from bisect import bisect_right
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from numbers import Real
from typing import Any, Final

from synmod import data, errors, leaves

from .asking import unwrap_group
from .frame import Block, CallFrame, Owner, Reward, ambient, current_call, phase

_ROUNDINGS: Final = 8


_PRECISION: Final = {2: 2**-10, 4: 2**-23}
"""The distance from 1 to the next number, by the bytes of a number of numpy or torch."""


_ABSENT: Final = object()
_ALIASES: Final = {"y_pred": "outputs", "y_true": "target"}


@dataclass(frozen=True, slots=True)
class Feedback:
    """What a reward returns for one output: a score, and what would make it better.

    Attributes:
        score: Higher is better, inside the reward's `range`; None where there is nothing to score.
        critique: The faults, in words.
        target: The output that was expected.
        parts: Critique by module path or glob, for these modules alone.
        objectives: Further numbers by name; a keyword.

    Example:
        >>> Feedback(0.5, critique="No source is given.").to_json()["score"]
        0.5

    Source: textual gradients (TextGrad), GEPA's feedback functions.
    """

    score: float | None
    critique: str | None = None
    target: Any = None
    parts: Mapping[str, str] = field(default_factory=leaves.empty_object)
    objectives: Mapping[str, float] = field(default_factory=leaves.empty_object, kw_only=True)

    def record(self) -> dict[str, Any]:
        """Return the feedback as a dict of its fields, with the target as it is."""
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


class _Critic:
    """Scores by a module that takes one argument, `C(inputs, outputs)`, and returns `score`, and perhaps `critique`.

    Args:
        module: The module.
        what: Its name in messages.

    Raises:
        ArgumentError: The module declares outputs without `score`.
    """

    def __init__(self, module: Any, what: str) -> None:
        self._module, self._what = module, what
        spec = module.output_spec
        if spec is not None and not (isinstance(spec, data.SymbolicDataModel) and data.own_field(spec, "score")):
            raise errors.ArgumentError(
                f"{what} is the module {module.name!r}, which returns {spec!r:.200}; as a reward it must return "
                "`score` (a number), and may return `critique` (a string)."
            )

    async def __call__(self, inputs: Any, outputs: Any) -> Any:
        """Return the verdict as a Feedback; a number or a Feedback as it is.

        Raises:
            CallError: The verdict has no `score`.
        """
        inputs = [*inputs] if isinstance(inputs, tuple) else inputs  # a program may take several
        parts = [part for part in (*leaves.leaves(inputs), *leaves.leaves(outputs)) if part is not None]
        verdict = await self._module(data.ops.concat(*parts) if len(parts) > 1 else next(iter(parts), None))
        if not isinstance(verdict, data.JsonDataModel):
            return verdict
        score, critique = (
            verdict.get(data.own_field(verdict, name) or name, _ABSENT) for name in ("score", "critique")
        )
        if score is _ABSENT:
            raise errors.CallError(f"{self._what} returned {', '.join(verdict.keys())}, and no `score`.")
        return Feedback(score, None if critique is _ABSENT else critique)


def _as_function(reward: Any, what: str) -> Any:
    """Return a function for a module that is a critic; any other reward as it is.

    A critic takes one argument, and declares its output, or calls the argument `inputs`. Other modules take arguments
    by name, like functions.
    """
    if not hasattr(reward, "output_spec") or hasattr(reward, "needs_target"):
        return reward
    parameters = inspect.signature(reward.call).parameters.values()
    required = [p for p in parameters if p.default is p.empty and p.kind is not p.VAR_KEYWORD]
    if len(required) != 1 or (reward.output_spec is None and required[0].name != "inputs"):
        return reward
    return _Critic(reward, what)


class BoundReward:
    """A reward or metric whose parameters are read once; each call passes the values that they name, in any order.

    Args:
        reward: A function, plain or async, or an object with a method `call`, such as a module. One whose `call` passes
            on its arguments (`**values`) lists the names that it takes in `asks_for`. A module with one argument, whose
            outputs have `score`, gets `C(inputs, outputs)`.
        allowed: The names that it may take; `y_pred` and `y_true` are other names for `outputs` and `target`.
        what: Its name in messages.
        range: The lowest and the highest score; None for the attribute `range` of the reward, or any score.

    Attributes:
        asks_for: The names of `allowed` that it takes.
        lowest: The lowest score of its `range`; 0.0 without one.

    Raises:
        ArgumentError: It cannot be called, requires a parameter that is not offered, or is a module with one argument
            that declares outputs without `score`.
    """

    __slots__ = ("_by_name", "_by_place", "_function", "_needs_target", "_range", "_what", "asks_for", "lowest")

    def __init__(
        self,
        reward: Any,
        allowed: Iterable[str],
        *,
        what: str = "the reward",
        range: tuple[float, float] | None = None,  # noqa: A002  # the attribute of a reward
    ) -> None:
        self._what = what
        self._range: tuple[float, float] = range or getattr(reward, "range", (-math.inf, math.inf))
        reward = _as_function(reward, what)
        function: Any = getattr(reward, "call", reward)  # the parameters of a module are those of its `call`
        needs_target: bool | None = getattr(reward, "needs_target", None)
        is_reward = needs_target is not None  # a reward, unlike a module, has no frame of its own
        self._function = reward if callable(reward) and not is_reward else function
        names = tuple(allowed)
        if not callable(self._function):
            raise errors.ArgumentError(f"{what} is {reward!r:.60}; write a function of {', '.join(names)}.")
        asks_for: Iterable[str] | None = getattr(reward, "asks_for", None)
        try:
            parameters = [*inspect.signature(function).parameters.values()]
        except (TypeError, ValueError):
            raise errors.ArgumentError(
                f"{what}: the parameters of {reward!r:.80} cannot be read: wrap it in a function."
            ) from None
        if asks_for is not None:
            parameters = [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY) for name in sorted(asks_for)]
        self._by_place: list[str] = []
        """The offered names that positional-only parameters take."""
        self._by_name: dict[str, str] = {}
        """The offered name that each other parameter takes."""
        for parameter in parameters:
            source = _ALIASES.get(parameter.name, parameter.name)
            if source in names and parameter.kind is parameter.POSITIONAL_ONLY:
                self._by_place.append(source)
            elif source in names:
                self._by_name[parameter.name] = source
            elif parameter.default is parameter.empty and parameter.kind not in (
                parameter.VAR_POSITIONAL,
                parameter.VAR_KEYWORD,
            ):
                words = [*names, *(alias for alias, name in _ALIASES.items() if name in names)]
                raise errors.ArgumentError(
                    f"{what} takes a parameter {parameter.name!r}, but it may take {', '.join(words)}, in any "
                    f"order.{leaves.did_you_mean(parameter.name, words)}"
                )
        self.asks_for = frozenset((*self._by_place, *self._by_name.values()))
        self.lowest = self._range[0] if math.isfinite(self._range[0]) else 0.0
        self._needs_target = needs_target

    async def __call__(self, **values: Any) -> Feedback:
        """Return the feedback on one output, computed in phase `reward`; a number becomes a Feedback.

        Args:
            values: A value for each name that it may take.

        Raises:
            CallError: It needs a target that is missing; it returned neither a finite number, a bool nor a Feedback
                with such scores; or its score is outside its `range`.
            Exception: Any exception of the function.
        """
        if self._needs_target and values.get("target") is None:
            raise errors.CallError(f"{self._what} needs a target, and example {values.get('example_id')!r} has none.")
        try:
            with phase("reward"):
                result = self.call(values)
                if not isinstance(result, float | int | Feedback) and inspect.isawaitable(result):  # hot: nearly all
                    result = await result
        except ExceptionGroup as error:
            leaves.aio.reraise(unwrap_group(error))
        return self.feedback(result)

    def feedback(self, result: Any) -> Feedback:
        """Return what the function returned as a Feedback.

        Raises:
            CallError: As for a call.
        """
        if not isinstance(result, Feedback):
            return Feedback(self._in_range(result))
        words = [result.critique or "", *result.parts.values()]
        if not all(isinstance(word, str) for word in words):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise errors.CallError(f"{self._what} returned {result!r:.200}; critique and parts of a Feedback are text.")
        score = None if result.score is None else self._in_range(result.score)
        if score is result.score and result.objectives == {}:  # hot: nearly all are
            return result
        objectives = {name: self._finite(value) for name, value in result.objectives.items()}
        return replace(result, score=score, objectives=objectives)

    def call(self, values: Mapping[str, Any]) -> Any:
        """Call the function with the values that it takes; return its result unchecked, an awaitable if it is async."""
        keywords = {name: values[source] for name, source in self._by_name.items()}
        return self._function(*[values[source] for source in self._by_place], **keywords)

    def _in_range(self, value: Any) -> float:
        """Return a score as a float."""
        score, (low, high) = self._finite(value), self._range
        if low <= score <= high:
            return score
        end = low if score < low else high  # a sum or a cosine may be off by a rounding error of its type
        precision = _PRECISION.get(getattr(getattr(value, "dtype", None), "itemsize", 8), 2**-52)
        if abs(score - end) > _ROUNDINGS * precision * max(abs(bound) for bound in (low, high) if math.isfinite(bound)):
            raise errors.CallError(f"{self._what} is {score!r}, outside its range from {low} to {high}.")
        return end

    def _finite(self, value: Any) -> float:
        """Return a number as a float."""
        number = _finite(value)
        if number is None:
            raise errors.CallError(
                f"{self._what} is {value!r:.100}; it must be a finite number, a bool, or a Feedback with such scores."
            )
        return number


# -- rewards of calls --------------------------------------------------------------------------------------------------


def add_reward(owner: Owner, value: object, name: str | None = None) -> None:
    """Give a reward to the running entry call, under the path of a module; in a symbolic call it is only checked.

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
    frame.run.add_reward(frame.innermost_of(owner) or frame, (frame.path_of(owner), name, number))


def _finite(value: Any) -> float | None:
    """Return a number as a float, None for anything else.

    What has `__float__` or `__bool__` is a number, as those of numpy and torch are, but for texts, data models,
    containers and arrays of several dimensions.
    """
    if not isinstance(value, Real) and (
        value is None
        or isinstance(value, str | bytes | bytearray | complex | date | timedelta)
        or getattr(value, "shape", ()) != ()
        or hasattr(value, "__synmod_json__")
    ):
        return None
    try:
        if isinstance(value, Real) or hasattr(value, "__float__"):
            number = float(value)
        else:
            number = float(bool(value)) if hasattr(value, "__bool__") and not hasattr(value, "__len__") else math.nan
    except (OverflowError, TypeError, ValueError):
        return None
    return number if math.isfinite(number) else None


def rewards_of(owner: Owner) -> tuple[float, ...]:
    """Return the rewards of a module and those below it in the running entry call, by the start of the calls, or ()."""
    frame = current_call()
    if frame is None or not frame.run.all_rewards:
        return ()
    path = frame.path_of(owner)
    below = f"{path}/"
    return tuple(value for at, _, value in frame.rewards if not path or at == path or at.startswith(below))


class RewardTrack:
    """The list that one `track_rewards` block fills, by the start of the calls."""

    __slots__ = ("_keys", "_lock", "rewards")

    def __init__(self) -> None:
        self._lock = threading.RLock()  # re-entrant: the collector may close a coroutine in here, which ends a call
        self._keys: list[tuple[float, int]] = []
        self.rewards: list[Reward] = []

    def extend(self, frame: CallFrame) -> None:
        """Add the rewards of an entry call."""
        with self._lock:
            for reward in frame.run.rewards():
                key = (frame.run.started, reward.call)
                place = bisect_right(self._keys, key)
                self._keys.insert(place, key)
                self.rewards.insert(place, reward.reward)


class track_rewards(Block):  # noqa: N801  # read as a word: `with sm.track_rewards() as rewards:`
    """Collect the rewards of the entry calls that end in a block.

    Entering the block returns a list of `(path, name, value)`, by the start of the calls.

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


def publish_rewards(frame: CallFrame) -> None:
    """Pass the rewards of an entry call that returned to the open `track_rewards` blocks."""
    for track in ambient().reward_tracks if frame.run.all_rewards else ():
        track.extend(frame)
