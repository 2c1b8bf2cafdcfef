"""Rewards and metrics: functions that ask by parameter name for what they judge, and the feedback that they return."""

from __future__ import annotations

import inspect
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from numbers import Real
from typing import Any, Final

from synmod.errors import ArgumentError, CallError
from synmod.leaves.frozen import thaw
from synmod.leaves.names import did_you_mean

from .ambient import phase

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
        return thaw(self.record())


class BoundReward:
    """A reward or metric whose parameters were read once; each call passes what they name, in any order.

    Args:
        reward: A function, plain or async, or an object with a method `call`, such as a module.
        offered: The names that it may ask for; `y_pred` and `y_true` are other names of `outputs` and `target`.
        what: What messages call it.

    Attributes:
        asks_for: The names of `offered` that it asks for.
        lowest: The worst score of its `range`.

    Raises:
        ArgumentError: It cannot be called, or asks for something else.
    """

    __slots__ = ("_function", "_parameters", "_what", "asks_for", "lowest")

    def __init__(self, reward: Any, offered: Iterable[str], *, what: str = "the reward") -> None:
        self._what = what
        asked: Any = getattr(reward, "call", reward)  # the parameters of a module are those of its `call`
        self._function = reward if callable(reward) else asked
        names = tuple(offered)
        if not callable(self._function):
            raise ArgumentError(f"{what} is a {type(reward).__name__}; write a function of {', '.join(names)}.")
        try:
            signature = inspect.signature(asked)
        except (TypeError, ValueError):
            raise ArgumentError(
                f"{what}: parameters of {reward!r:.80} cannot be read: wrap it in a function."
            ) from None
        self._parameters: list[tuple[str, str, bool]] = []
        """For each parameter its name, what it asks for, and whether it is positional only."""
        for parameter in signature.parameters.values():
            source = _ALIASES.get(parameter.name, parameter.name)
            if source in names:
                self._parameters.append((parameter.name, source, parameter.kind is parameter.POSITIONAL_ONLY))
            elif parameter.default is parameter.empty and parameter.kind not in (
                parameter.VAR_POSITIONAL,
                parameter.VAR_KEYWORD,
            ):
                words = [*names, *(alias for alias, name in _ALIASES.items() if name in names)]
                raise ArgumentError(
                    f"{what} asks for {parameter.name!r}; it may ask for {', '.join(words)}, by these names and in any "
                    f"order.{did_you_mean(parameter.name, words)}"
                )
        self.asks_for = frozenset(source for _, source, _ in self._parameters)
        self.lowest = float(getattr(reward, "range", (0.0, 1.0))[0])

    async def __call__(self, **offered: Any) -> Feedback:
        """Return the feedback on one output, computed in phase `reward`; a number becomes a Feedback.

        Args:
            offered: A value for each name that it may ask for.

        Raises:
            CallError: It returned something other than a finite number, a bool, or a Feedback of such.
            Exception: What it raised.
        """
        with phase("reward"):
            result = self.call(**offered)
            if inspect.isawaitable(result):
                result = await result
        if not isinstance(result, Feedback):
            return Feedback(self._finite(result))
        return replace(
            result,
            score=None if result.score is None else self._finite(result.score),
            objectives={name: self._finite(value) for name, value in result.objectives.items()},
        )

    def call(self, **offered: Any) -> Any:
        """Return what the function returns for what it asks for, unchecked; an awaitable where it is async."""
        positional = [offered[source] for _, source, by_place in self._parameters if by_place]
        named = {name: offered[source] for name, source, by_place in self._parameters if not by_place}
        return self._function(*positional, **named)

    def _finite(self, value: Any) -> float:
        """Return a score as a float."""
        if not isinstance(value, Real) or not math.isfinite(value):
            raise CallError(
                f"{self._what} is {value!r:.100}; it must be a finite number, a bool, or a Feedback of such."
            )
        return float(value)
