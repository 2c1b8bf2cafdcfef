"""Several tries, the best of which counts: BestOf, Majority and Refine."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable
from typing import Any, Final, NamedTuple, TypeGuard, Unpack

from synmod.data import DataModel, JsonDataModel, SymbolicDataModel, ops, schema_of
from synmod.errors import CallError
from synmod.flow import leaves, map_concurrently
from synmod.lm import current_sample, drawing
from synmod.module import Attempt, Module, ModuleOptions, attempt
from synmod.registry import register_own

from . import checks

# -- side by side ------------------------------------------------------------------------------------------------------

_ANY: Final = {"type": "object"}


class _Sample(NamedTuple):
    """One output, what the block makes of it, and the attempt that it came from."""

    output: Any
    value: Any
    attempt: Attempt


def _samples(
    module: Module, inputs: Any, n: int, value_of: Callable[[Any], Awaitable[Any]], concurrency: int | None = None
) -> map_concurrently[_Sample | None]:
    """Return the outputs of samples 0 to n - 1, drawn at once, in the order of the samples; None for a None.

    Inside a block that draws itself the samples go on counting, so that no two draws are the same. Used with
    `async with`, which cancels what is left.
    """
    first = current_sample() * n

    async def draw(number: int) -> _Sample | None:
        with drawing(first + number), attempt() as one:
            output = await module(inputs)
            return None if output is None else _Sample(output, await value_of(output), one)

    return map_concurrently(draw, range(n), concurrency=concurrency or n, progress=False)


@register_own()
class BestOf(Module):
    """Draws `n` independent samples of a module at once, and returns the one with the highest reward.

    Equal rewards: the lowest sample. With a threshold it is the first in sample order that reaches it, and the rest is
    cancelled; so the result does not depend on which sample is ready first. A failing sample fails the call.

    Args:
        module: What is drawn from; its model calls are samples 0 to n - 1.
        n: Number of samples.
        reward: A function or a Reward, plain or async, that asks by name for `inputs` and `outputs` (or `y_pred`) and
            returns a number or a `Feedback`; run in phase `reward`. A registered function can be saved.
        threshold: A reward that is good enough: the first in sample order that reaches it is the result.
        concurrency: How many samples run at once; None for all.
        **options: Those of `Module`.

    Schemas:
        inputs: what the module takes
        outputs: what the module returns; None where every sample is None

    Raises:
        ConfigError: `module` is not a module, `n` or `concurrency` not a count, `threshold` not a number;
            `reward` is not a function, or asks for something else, such as a target.
        CallError: When called: the reward is not a finite number.
        Exception: When called: the first failure of a sample.

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
        reward: Callable[..., Any],
        threshold: float | None = None,
        concurrency: int | None = None,
        **options: Unpack[ModuleOptions],
    ) -> None:
        super().__init__(**options)
        self.module = checks.member("BestOf", "module", module)
        self.n = checks.whole("BestOf", "n", n)
        self.reward = reward
        checks.bound_reward("BestOf", "reward", reward)
        self.threshold = checks.number("BestOf", "threshold", threshold)
        self.concurrency = None if concurrency is None else checks.whole("BestOf", "concurrency", concurrency)

    async def call(self, inputs: Any) -> Any:
        """Return the output of the best sample."""
        judge = checks.bound_reward("BestOf", "reward", self.reward)

        async def score(output: Any) -> float:
            score = (await judge(inputs=inputs, outputs=output)).score
            return -math.inf if score is None else score

        best: _Sample | None = None
        async with _samples(self.module, inputs, self.n, score, self.concurrency) as samples:
            async for sample in samples:
                if sample is not None and (best is None or sample.value > best.value):
                    best = sample
                    if self.threshold is not None and sample.value >= self.threshold:
                        break
        if best is None:
            return None
        best.attempt.keep()
        return best.output

    async def compute_output_spec(self, inputs: Any) -> Any:
        """Return what the module returns."""
        return await self.module(inputs)


@register_own()
class Majority(Module):
    """Draws `n` independent samples of a module at once, and returns the answer that came most often.

    Answers are equal by `sm.data.json_equal`. Equally frequent ones: the first seen in sample order.

    Args:
        module: What is drawn from; its model calls are samples 0 to n - 1.
        n: Number of samples.
        field: The field that is compared; None for the whole output.
        **options: Those of `Module`.

    Schemas:
        inputs: what the module takes
        outputs: what the module returns: the first of the samples that agree; None where every sample is None

    Raises:
        ConfigError: `module` is not a module, `n` not a count, `field` not a name.
        SchemaError: When composed, or called: the module's output has no such field ('Did you mean').
        Exception: When called: the first failure of a sample.

    Example:
        >>> import synmod as sm
        >>> from synmod.testing import ScriptedLM
        >>> class Query(sm.DataModel):
        ...     question: str
        >>> class Answer(sm.DataModel):
        ...     answer: str
        >>> replies = [{"answer": "Lyon"}, {"answer": "Paris"}, {"answer": "Paris"}]
        >>> vote = sm.Majority(sm.Generator(Answer, language_model=ScriptedLM(replies)), 3)
        >>> sm.run(vote, Query(question="Capital of France?"))["answer"]
        'Paris'

    Source: self-consistency (Wang et al. 2022), DSPy's `majority`; differs: no normalisation of texts.
    """

    def __init__(self, module: Module, n: int, *, field: str | None = None, **options: Unpack[ModuleOptions]) -> None:
        super().__init__(**options)
        self.module = checks.member("Majority", "module", module)
        self.n = checks.whole("Majority", "n", n)
        self.field = None if field is None else checks.field_name("Majority", "field", field)

    async def call(self, inputs: Any) -> Any:
        """Return the most frequent output."""

        async def answer(output: Any) -> JsonDataModel[Any]:
            """Return what is counted, as a value: those are equal where their JSON is."""
            self._check_field(output)
            counted = leaves(output) if self.field is None else output.get(self.field)
            return JsonDataModel({"answer": counted}, schema=_ANY)

        agreeing: dict[JsonDataModel[Any], list[_Sample]] = {}
        async with _samples(self.module, inputs, self.n, answer) as samples:
            async for sample in samples:
                if sample is not None:
                    agreeing.setdefault(sample.value, []).append(sample)
        if not agreeing:
            return None
        first = max(agreeing.values(), key=len)[0]
        first.attempt.keep()
        return first.output

    async def compute_output_spec(self, inputs: Any) -> Any:
        """Return what the module returns."""
        outputs = await self.module(inputs)
        self._check_field(outputs)
        return outputs

    def _check_field(self, outputs: Any) -> None:
        """Raise a SchemaError for a misspelt field."""
        if self.field is not None:
            checks.must_have("Majority", "the output of its module", outputs, self.field)


# -- one after the other -----------------------------------------------------------------------------------------------


class _Remark(DataModel, title=""):  # neither title nor description: the inputs keep theirs when it joins them
    critique: str


@register_own()
class Refine(Module):
    """Runs a module, has its output criticised, and runs it again with the critique among its inputs.

    Args:
        module: What is run; from the second round on its inputs have the field `critique`, that of the round before.
        critic: A module that takes one argument, `C(inputs, output)`, and returns `critique` (a string) and `score` (a
            number), such as `sm.SelfCritique`; or a reward as for `BestOf`, whose `Feedback` has both (a number
            alone: an empty critique).
        rounds: How often `module` runs at most.
        threshold: A score that is good enough: no further round follows it.
        **options: Those of `Module`.

    Schemas:
        inputs: what the module takes, both with and without `critique`
        outputs: what the module returns: the round of the highest score, of equal ones the earliest

    Raises:
        ConfigError: `module` is not a module, `critic` neither a module nor a reward, `rounds` not a count, or
            `threshold` not a number.
        SchemaError: When composed: the module does not take a critique, or the critic returns none.
        CallError: When called: critique or score are of the wrong kind.

    Example:
        >>> import synmod as sm
        >>> from synmod.testing import ScriptedLM
        >>> class Query(sm.DataModel):
        ...     question: str
        >>> class Answer(sm.DataModel):
        ...     answer: str
        >>> write = sm.Generator(Answer, language_model=ScriptedLM([{"answer": "Lyon"}, {"answer": "Paris"}]))
        >>> judge = ScriptedLM([{"critique": "Too small.", "score": 0.1}, {"critique": "Yes.", "score": 1.0}])
        >>> refine = sm.Refine(write, sm.SelfCritique(language_model=judge))
        >>> sm.run(refine, Query(question="Capital of France?"))["answer"]
        'Paris'

    Source: self-refine (Madaan et al. 2023), DSPy's `Refine`; differs: the critique is a field of the inputs.
    """

    def __init__(
        self,
        module: Module,
        critic: Module | Callable[..., Any],
        *,
        rounds: int = 2,
        threshold: float | None = None,
        **options: Unpack[ModuleOptions],
    ) -> None:
        super().__init__(**options)
        self.module = checks.member("Refine", "module", module)
        self.critic = critic
        if not _is_critic(critic):
            checks.bound_reward("Refine", "critic", critic)
        self.rounds = checks.whole("Refine", "rounds", rounds)
        self.threshold = checks.number("Refine", "threshold", threshold)

    async def call(self, inputs: Any) -> Any:
        """Return the output of the best round."""
        best: tuple[float, Any, Attempt] | None = None
        given = inputs
        for _ in range(self.rounds):
            with attempt() as one:
                output = await self.module(given)
                if output is None or self.rounds == 1:
                    best = best or (0.0, output, one)
                    break
                critique, score = await self._judged(inputs, output)
            if best is None or score > best[0]:
                best = score, output, one
            if self.threshold is not None and score >= self.threshold:
                break
            given = _with_critique(inputs, _Remark(critique=critique).to_json_data_model())
        if best is None:
            return None
        _, output, kept = best
        kept.keep()
        return output

    async def compute_output_spec(self, inputs: Any) -> Any:
        """Return what the module returns, once it has taken both forms of its inputs."""
        outputs = await self.module(inputs)
        if self.rounds == 1:
            return outputs
        if _is_critic(self.critic):
            verdict = await self.critic(ops.concat(inputs, outputs))
            for name in ("critique", "score"):
                checks.must_return("Refine", "critic", verdict, name)
        again = await self.module(_with_critique(inputs, _Remark.to_symbolic_data_model()))
        if isinstance(outputs, SymbolicDataModel) and schema_of(again) != schema_of(outputs):
            return ops.logical_xor(outputs, again)
        return outputs

    async def _judged(self, inputs: Any, output: Any) -> tuple[str, float]:
        """Return the critique and the score of an output.

        Raises:
            CallError: One of them is of the wrong kind.
        """
        if not _is_critic(self.critic):
            feedback = await checks.bound_reward("Refine", "critic", self.critic)(inputs=inputs, outputs=output)
            critique, score = feedback.critique or "", feedback.score
        else:
            verdict = await self.critic(ops.concat(inputs, output))
            if verdict is None:
                raise CallError("Refine: the critic returned None; it must return a critique and a score.")
            critique, score = checks.returned(verdict, "critique"), checks.returned(verdict, "score")
        if not isinstance(critique, str):
            raise CallError(f"Refine: the critic's critique is {critique!r:.100}; it must be a string.")
        if isinstance(score, bool) or not isinstance(score, (int, float)):
            raise CallError(f"Refine: the critic's score is {score!r:.100}; it must be a number.")
        return critique, score


def _is_critic(critic: object) -> TypeGuard[Module]:
    """Whether it is a module that takes one argument; a module with a `range` is a reward, whose `call` is awaited."""
    return isinstance(critic, Module) and not hasattr(critic, "range")


def _with_critique(inputs: Any, critique: Any) -> Any:
    """Return the inputs with a critique in place of the one before; alike on values and symbols."""
    bare = ops.out_mask(inputs, "critique") if "critique" in inputs else inputs
    return ops.concat(bare, critique)
