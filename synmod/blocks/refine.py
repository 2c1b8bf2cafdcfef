"""Refine: run, criticise, run again with the critique; the best round counts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple, Unpack

from synmod.blocks.arguments import member, number, whole
from synmod.blocks.said import must_say, said
from synmod.data import ops, parts_of, schema_of, symbol, trusted_schema, wrap
from synmod.errors import CallError
from synmod.leaves.frozen import frozen
from synmod.module import Module, attempt
from synmod.registry import register_own

if TYPE_CHECKING:
    from synmod.module import Attempt, ModuleOptions

_CRITIQUE: Final = {
    "additionalProperties": False,
    "properties": {"critique": {"title": "Critique", "type": "string"}},
    "required": ["critique"],
    "type": "object",
}


class _Round(NamedTuple):
    """One output and what the critic made of it."""

    output: Any
    score: float
    attempt: Attempt


@register_own()
class Refine(Module):
    """Runs a module, has its output criticised, and runs it again with the critique among its inputs.

    Args:
        module: What is run; from the second round on its inputs have the field `critique`, that of the round before.
        critic: Gets one argument, `C(inputs, output)`, and gives `critique` (a string) and `score` (a number), such as
            `sm.SelfCritique`.
        rounds: How often `module` runs at most.
        threshold: A score that is good enough: no further round follows it.
        **options: Those of `Module`.

    Schemas:
        inputs: what the module takes, both with and without `critique`
        outputs: what the module gives: the round of the highest score, of equal ones the earliest

    Raises:
        ConfigError: A member is no module, `rounds` no count, `threshold` no number.
        SchemaError: When composed: the module does not take a critique, or the critic gives none.
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
        critic: Module,
        *,
        rounds: int = 2,
        threshold: float | None = None,
        **options: Unpack[ModuleOptions],
    ) -> None:
        super().__init__(**options)
        self.module = member("Refine", "module", module)
        self.critic = member("Refine", "critic", critic)
        self.rounds = whole("Refine", "rounds", rounds)
        self.threshold = number("Refine", "threshold", threshold)

    async def call(self, inputs: Any) -> Any:
        """Run and criticise in turn."""
        best: _Round | None = None
        asked = inputs
        for _ in range(self.rounds):
            with attempt() as one:
                output = await self.module(asked)
                is_last = output is None or self.rounds == 1
                verdict = None if is_last else await self.critic(ops.concat(inputs, output))
            if verdict is None:
                best = best or _Round(output, 0.0, one)
                break
            critique, score = _read(verdict)
            if best is None or score > best.score:
                best = _Round(output, score, one)
            if self.threshold is not None and score >= self.threshold:
                break
            asked = _asked_again(inputs, wrap(frozen({"critique": critique}), trusted_schema(_CRITIQUE)))
        if best is None:
            return None
        best.attempt.keep()
        return best.output

    async def compute_output_spec(self, inputs: Any) -> Any:
        """What the module gives, once it was shown to take both forms of its inputs."""
        outputs = await self.module(inputs)
        if self.rounds == 1:
            return outputs
        verdict = await self.critic(ops.concat(inputs, outputs))
        for name in ("critique", "score"):
            must_say("Refine", "critic", verdict, name)
        again = await self.module(_asked_again(inputs, symbol(trusted_schema(_CRITIQUE))))
        return outputs if again.get_schema() == outputs.get_schema() else ops.logical_xor(outputs, again)


def _asked_again(inputs: Any, critique: Any) -> Any:
    """The inputs with a critique in place of the one before; alike on values and symbols."""
    bare = ops.out_mask(inputs, "critique") if "critique" in parts_of(schema_of(inputs)).fields else inputs
    return ops.concat(bare, critique)


def _read(verdict: Any) -> tuple[str, float]:
    """What the critic says itself."""
    critique, score = said(verdict, "critique"), said(verdict, "score")
    if not isinstance(critique, str):
        raise CallError(f"Refine: the critic's critique is {critique!r:.100}; it must be a string.")
    if isinstance(score, bool) or not isinstance(score, (int, float)):
        raise CallError(f"Refine: the critic's score is {score!r:.100}; it must be a number.")
    return critique, score
