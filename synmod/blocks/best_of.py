"""BestOf: several independent samples of one module, of which the best is kept."""

from __future__ import annotations

import inspect
from itertools import takewhile
from numbers import Real
from typing import TYPE_CHECKING, Any, NamedTuple, Unpack

from synmod.blocks.arguments import function, member, number, whole
from synmod.blocks.draws import draws
from synmod.errors import CallError
from synmod.flow import Failed
from synmod.module import Module
from synmod.registry import register_own
from synmod.scope import phase

if TYPE_CHECKING:
    from collections.abc import Callable

    from synmod.flow import map_concurrently
    from synmod.module import Attempt, ModuleOptions


class _Draw(NamedTuple):
    """One sample and its reward."""

    output: Any
    reward: float
    attempt: Attempt


@register_own()
class BestOf(Module):
    """Draws `n` independent samples of a module at once, and gives the one of the highest reward.

    Equal rewards: the lowest sample. With a threshold the rest is cancelled as soon as a sample reaches it and all
    before it are known, so that the result does not depend on which sample is ready first.

    Args:
        module: What is drawn from; its model calls are samples 0 to n - 1.
        n: Number of samples.
        reward: Function `(inputs, outputs) -> number`, plain or async, run in phase `reward`. A registered one can be
            saved.
        threshold: A reward that is good enough: the first in sample order that reaches it is the result.
        concurrency: How many samples run at once; None for all.
        **options: Those of `Module`.

    Schemas:
        inputs: what the module takes
        outputs: what the module gives; None where no sample gave anything

    Raises:
        ConfigError: `module` is no module, `n` or `concurrency` no count, `reward` no function, `threshold` no number.
        CallError: When called: the reward is no number.
        Exception: When called: the failure of a sample, unless one before it suffices.

    Example:
        >>> import synmod as sm
        >>> from synmod.testing import ScriptedLM
        >>> class Query(sm.DataModel):
        ...     question: str
        >>> class Answer(sm.DataModel):
        ...     answer: str
        >>> write = sm.Generator(Answer, language_model=ScriptedLM([{"answer": "Hm."}, {"answer": "Paris, France."}]))
        >>> best = sm.BestOf(write, 2, reward=lambda inputs, outputs: len(outputs["answer"]))
        >>> sm.run(best, Query(question="Capital of France?"))["answer"]
        'Paris, France.'

    Source: DSPy's `BestOfN`; differs: samples at once, deterministic under any order of completion.
    """

    def __init__(
        self,
        module: Module,
        n: int,
        *,
        reward: Callable[[Any, Any], Any],
        threshold: float | None = None,
        concurrency: int | None = None,
        **options: Unpack[ModuleOptions],
    ) -> None:
        super().__init__(**options)
        self.module = member("BestOf", "module", module)
        self.n = whole("BestOf", "n", n)
        self.reward = function("BestOf", "reward", reward)
        self.threshold = number("BestOf", "threshold", threshold)
        self.concurrency = None if concurrency is None else whole("BestOf", "concurrency", concurrency)

    async def call(self, inputs: Any) -> Any:
        """Draw, reward, keep the best."""
        good_enough = False

        async def judged(output: Any, one: Attempt) -> _Draw | None:
            nonlocal good_enough
            if output is None:
                return None
            reward = await self._rewarded(inputs, output)
            good_enough = good_enough or self._suffices(reward)
            return _Draw(output, reward, one)

        samples = draws(
            self.module,
            inputs,
            self.n,
            judged,
            numbers=takewhile(lambda _: not good_enough, range(self.n)),  # a later one could not be the result
            concurrency=self.concurrency,
            on_error="raise" if self.threshold is None else "collect",
        )
        async with samples:
            best = await self._best(samples)
        if best is None:
            return None
        best.attempt.keep()
        return best.output

    async def _best(self, samples: map_concurrently[Any]) -> _Draw | None:
        """The first draw that suffices, else that of the highest reward; None where no sample gave anything."""
        best: _Draw | None = None
        async for draw in samples:
            if isinstance(draw, Failed):
                try:
                    raise draw.error
                finally:
                    del draw  # no circle of an exception and the frame that holds it
            if draw is None:
                continue
            if self._suffices(draw.reward):
                return draw
            if best is None or draw.reward > best.reward:
                best = draw
        return best

    def _suffices(self, reward: float) -> bool:
        """Whether a reward is good enough to look no further."""
        return self.threshold is not None and reward >= self.threshold

    async def compute_output_spec(self, inputs: Any) -> Any:
        """What the module gives."""
        return await self.module(inputs)

    async def _rewarded(self, inputs: Any, output: Any) -> float:
        """The reward of one output."""
        with phase("reward"):
            reward = self.reward(inputs, output)
            if inspect.isawaitable(reward):
                reward = await reward
        if not _is_number(reward):
            raise CallError(f"BestOf: the reward is {reward!r:.100}; it must be a number.")
        return reward


def _is_number(reward: Any) -> bool:
    """Whether a reward can be compared; NaN cannot."""
    return isinstance(reward, Real) and reward == reward
