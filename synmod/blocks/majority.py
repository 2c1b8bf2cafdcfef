"""Majority: several independent samples of one module, of which the most frequent answer is kept."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Unpack

from synmod.blocks.arguments import member, whole
from synmod.blocks.draws import draws
from synmod.errors import ConfigError, SchemaError
from synmod.leaves.frozen import json_equal
from synmod.leaves.suggest import did_you_mean
from synmod.module import Module
from synmod.registry import register_own

if TYPE_CHECKING:
    from synmod.module import ModuleOptions
    from synmod.module.attempts import Attempt


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
        SchemaError: When composed: the module's output has no such field ('Did you mean').
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
        if field is not None and not isinstance(field, str):  # pyright: ignore[reportUnnecessaryIsInstance]  (users)
            raise ConfigError(f"Majority: field is {field!r:.100}; give the name of a field, or None.")
        self.module = member("Majority", "module", module)
        self.n = whole("Majority", "n", n)
        self.field = field

    async def call(self, inputs: Any) -> Any:
        """Draw, count, keep the most frequent."""

        async def as_it_is(output: Any, one: Attempt) -> tuple[Any, Attempt] | None:
            return None if output is None else (output, one)

        async with draws(self.module, inputs, self.n, as_it_is) as samples:
            drawn = [sample async for sample in samples if sample is not None]
        counted: list[tuple[Any, list[tuple[Any, Attempt]]]] = []
        for output, one in drawn:
            answer = output.get_json() if self.field is None else output.get(self.field)
            same = next((group for seen, group in counted if json_equal(seen, answer)), None)
            if same is None:
                counted.append((answer, [(output, one)]))
            else:
                same.append((output, one))
        if not counted:
            return None
        output, one = max((group for _, group in counted), key=len)[0]
        one.keep()
        return output

    async def compute_output_spec(self, inputs: Any) -> Any:
        """What the module gives."""
        outputs = await self.module(inputs)
        if self.field is not None and self.field not in outputs:
            raise SchemaError(
                f"Majority: the output of its module has no field {self.field!r}; there are "
                f"{', '.join(outputs.keys())}.{did_you_mean(self.field, outputs.keys())}"
            )
        return outputs
