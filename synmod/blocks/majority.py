"""Majority: several independent samples of one module, of which the most frequent answer is kept."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Unpack

from synmod.blocks.arguments import field_name, member, whole
from synmod.blocks.draws import draws
from synmod.blocks.said import must_have
from synmod.data import JsonDataModel
from synmod.flow import leaves
from synmod.module import Module
from synmod.registry import register_own

if TYPE_CHECKING:
    from synmod.module import Attempt, ModuleOptions

_ANY: Final = {"type": "object"}


@register_own()
class Majority(Module):
    """Draws `n` independent samples of a module at once, and gives the answer that came most often.

    Answers are equal by `sm.data.json_equal`. Equally frequent ones: the first seen in sample order.

    Args:
        module: What is drawn from; its model calls are samples 0 to n - 1.
        n: Number of samples.
        field: The field that is compared; None for the whole output.
        **options: Those of `Module`.

    Schemas:
        inputs: what the module takes
        outputs: what the module gives: the first of the samples that agree; None where no sample gave anything

    Raises:
        ConfigError: `module` is no module, `n` no count, `field` no name.
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
        self.module = member("Majority", "module", module)
        self.n = whole("Majority", "n", n)
        self.field = None if field is None else field_name("Majority", "field", field)

    async def call(self, inputs: Any) -> Any:
        """Draw, count, keep the most frequent."""

        async def as_it_is(output: Any, one: Attempt) -> tuple[Any, Attempt] | None:
            return None if output is None else (output, one)

        agreeing: dict[JsonDataModel[Any], list[tuple[Any, Attempt]]] = {}
        async with draws(self.module, inputs, self.n, as_it_is) as samples:
            async for sample in samples:
                if sample is not None:
                    agreeing.setdefault(self._answer(sample[0]), []).append(sample)
        if not agreeing:
            return None
        output, one = max(agreeing.values(), key=len)[0]
        one.keep()
        return output

    async def compute_output_spec(self, inputs: Any) -> Any:
        """What the module gives."""
        outputs = await self.module(inputs)
        self._check_field(outputs)
        return outputs

    def _answer(self, output: Any) -> JsonDataModel[Any]:
        """What is counted: a value, since those are equal where their JSON is."""
        self._check_field(output)
        answer = leaves(output) if self.field is None else output.get(self.field)
        return JsonDataModel({"answer": answer}, schema=_ANY)

    def _check_field(self, outputs: Any) -> None:
        """Refuse a misspelt field."""
        if self.field is not None:
            must_have("Majority", "the output of its module", outputs, self.field)
