"""Refine: run, criticise, run again with the critique; the best round counts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple, TypeGuard, Unpack

from synmod.data import SymbolicDataModel, ops, parts_of, schema_of, symbol, trusted_schema, wrap
from synmod.errors import CallError
from synmod.leaves.frozen import frozen
from synmod.module import Attempt, Module, ModuleOptions, attempt
from synmod.registry import register_own

from .arguments import bound_reward, member, must_return, number, returned, whole

_CRITIQUE: Final = {
    "additionalProperties": False,
    "properties": {"critique": {"title": "Critique", "type": "string"}},
    "required": ["critique"],
    "type": "object",
}


class _Round(NamedTuple):
    """One output and its score."""

    output: Any
    score: float
    attempt: Attempt


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
        self.module = member("Refine", "module", module)
        self.critic = critic
        if not _is_critic(critic):
            bound_reward("Refine", "critic", critic)
        self.rounds = whole("Refine", "rounds", rounds)
        self.threshold = number("Refine", "threshold", threshold)

    async def call(self, inputs: Any) -> Any:
        """Return the output of the best round."""
        best: _Round | None = None
        given = inputs
        for _ in range(self.rounds):
            with attempt() as one:
                output = await self.module(given)
                if output is None or self.rounds == 1:
                    best = best or _Round(output, 0.0, one)
                    break
                critique, score = await self._judged(inputs, output)
            if best is None or score > best.score:
                best = _Round(output, score, one)
            if self.threshold is not None and score >= self.threshold:
                break
            given = _with_critique(inputs, wrap(frozen({"critique": critique}), trusted_schema(_CRITIQUE)))
        if best is None:
            return None
        best.attempt.keep()
        return best.output

    async def compute_output_spec(self, inputs: Any) -> Any:
        """Return what the module returns, once it has taken both forms of its inputs."""
        outputs = await self.module(inputs)
        if self.rounds == 1:
            return outputs
        if _is_critic(self.critic):
            verdict = await self.critic(ops.concat(inputs, outputs))
            for name in ("critique", "score"):
                must_return("Refine", "critic", verdict, name)
        again = await self.module(_with_critique(inputs, symbol(trusted_schema(_CRITIQUE))))
        if isinstance(outputs, SymbolicDataModel) and schema_of(again) != schema_of(outputs):
            return ops.logical_xor(outputs, again)
        return outputs

    async def _judged(self, inputs: Any, output: Any) -> tuple[str, float]:
        """Return the critique and the score of an output.

        Raises:
            CallError: One of them is of the wrong kind.
        """
        if not _is_critic(self.critic):
            feedback = await bound_reward("Refine", "critic", self.critic)(inputs=inputs, outputs=output)
            critique, score = feedback.critique or "", feedback.score
        else:
            verdict = await self.critic(ops.concat(inputs, output))
            if verdict is None:
                raise CallError("Refine: the critic returned None; it must return a critique and a score.")
            critique, score = returned(verdict, "critique"), returned(verdict, "score")
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
    bare = ops.out_mask(inputs, "critique") if "critique" in parts_of(schema_of(inputs)).fields else inputs
    return ops.concat(bare, critique)
