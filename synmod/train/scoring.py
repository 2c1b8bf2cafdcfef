"""Scoring: a reward asked for one output, in its own phase, and what it said as a Feedback."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from numbers import Real
from typing import Any, Final

from synmod.errors import ArgumentError, CallError
from synmod.module import Module
from synmod.scope import Feedback, phase
from synmod.train.examples import Example

_EXTRAS: Final[Mapping[str, Callable[[Example], Any]]] = {
    "inputs": lambda example: example.inputs,
    "extra": lambda example: example.extra,
    "example_id": lambda example: example.id,
}
"""What a reward may ask for by name, beside target and output."""


class Scorer:
    """A reward whose signature was read once.

    Args:
        reward: A function or module of `(y_true, y_pred)`, plain or async, which may also name `inputs`, `extra` and
            `example_id`.

    Raises:
        ArgumentError: It cannot be called, or asks for something else.
    """

    __slots__ = ("_extras", "_reward", "lowest")

    def __init__(self, reward: Any) -> None:
        if not callable(reward):
            raise ArgumentError(f"the reward is a {type(reward).__name__}; give a function (y_true, y_pred) -> number.")
        self._reward = reward
        self._extras = _extras(reward)
        self.lowest = _lowest(reward)

    async def score(self, example: Example, outputs: Any) -> Feedback:
        """Ask the reward for one output.

        Raises:
            CallError: It said what is no finite number, bool or Feedback of such numbers.
            Exception: What it raised.
        """
        named = {name: _EXTRAS[name](example) for name in self._extras}
        with phase("reward"):
            said = self._reward(example.target, outputs, **named)
            if inspect.isawaitable(said):
                said = await said
        if not isinstance(said, Feedback):
            return Feedback(_finite(said))
        objectives = {name: _finite(value) for name, value in said.objectives.items()}
        score = None if said.score is None else _finite(said.score)  # None: there was nothing to score
        return replace(said, score=score, objectives=objectives)


def _finite(said: Any) -> float:
    """A score as a float."""
    if not isinstance(said, Real) or not math.isfinite(said):
        raise CallError(f"the reward is {said!r:.100}; a reward is a finite number, a bool or a Feedback of such.")
    return float(said)


def _lowest(reward: Any) -> float:
    """The worst score of a reward."""
    bounds: Any = getattr(reward, "range", (0.0, 1.0))
    return float(bounds[0])


def _extras(reward: Any) -> tuple[str, ...]:
    """The extras that a reward asks for by name.

    Raises:
        ArgumentError: It does not take two positional arguments, or needs another one.
    """
    function = reward.call if isinstance(reward, Module) else reward
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # a builtin that tells nothing of itself
        return ()
    kinds = inspect.Parameter
    parameters = list(signature.parameters.values())
    positional = [p for p in parameters if p.kind in (kinds.POSITIONAL_ONLY, kinds.POSITIONAL_OR_KEYWORD)]
    rest = any(p.kind is kinds.VAR_POSITIONAL for p in parameters)
    further = [
        p for p in parameters if p not in positional[:2] and p.kind not in (kinds.VAR_POSITIONAL, kinds.VAR_KEYWORD)
    ]
    asked = [p.name for p in further if p.name in _EXTRAS and p.kind is not kinds.POSITIONAL_ONLY]
    unmet = [p.name for p in further if p.name not in asked and p.default is kinds.empty]
    if (len(positional) < 2 and not rest) or unmet:
        raise ArgumentError(
            f"the reward takes {signature}; it must take (y_true, y_pred), and may name {', '.join(_EXTRAS)}."
        )
    return tuple(asked)
