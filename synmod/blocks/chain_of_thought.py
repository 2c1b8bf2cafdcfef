"""ChainOfThought: a generator that reasons before it answers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Unpack, overload

from synmod.blocks.generator import Generator, M
from synmod.blocks.options import KEYWORDS
from synmod.data import declaration, ops, symbol
from synmod.registry import register_own

if TYPE_CHECKING:
    from collections.abc import Mapping

    from synmod.blocks.options import GeneratorOptions
    from synmod.data import JsonDataModel, SymbolicDataModel
    from synmod.leaves.frozen import Json


@register_own()
class ChainOfThought(Generator[M]):
    """A `Generator` whose model writes `thinking` before the fields of the output model.

    Where the provider gives its reasoning natively, that is the thinking, and the model is not asked for it again.

    Args:
        data_model: Output model: a class, symbol, value or schema.
        schema: JSON schema of the output; must agree with `data_model`.
        return_thinking: Whether the output has the field `thinking`.
        **options: Those of `Generator`.

    Schemas:
        inputs: any data model
        outputs: `Thinking + data_model`; without thinking, `data_model`

    Raises:
        ArgumentError: Neither `data_model` nor `schema`, or two that differ.
        ConfigError: As `Generator`.
        SchemaError: As `Generator`.

    Example:
        >>> import synmod as sm
        >>> from synmod.testing import ScriptedLM
        >>> class Query(sm.DataModel):
        ...     question: str
        >>> class Answer(sm.DataModel):
        ...     answer: str
        >>> lm = ScriptedLM([{"thinking": "A capital.", "answer": "Paris"}])
        >>> sm.run(sm.ChainOfThought(Answer, language_model=lm), Query(question="Capital of France?")).get_json()
        {'thinking': 'A capital.', 'answer': 'Paris'}

    Source: chain-of-thought prompting (Wei et al. 2022), DSPy's and Synalinks' `ChainOfThought`.
    """

    _keywords: ClassVar[tuple[str, ...]] = (*KEYWORDS, "return_thinking")

    if TYPE_CHECKING:

        @overload
        def __init__(
            self,
            data_model: type[M],
            *,
            schema: Json = None,
            return_thinking: bool = True,
            **options: Unpack[GeneratorOptions],
        ) -> None: ...
        @overload
        def __init__(
            self: ChainOfThought[Any],
            data_model: SymbolicDataModel | JsonDataModel[Any] | Mapping[str, Json] | None = None,
            *,
            schema: Json = None,
            return_thinking: bool = True,
            **options: Unpack[GeneratorOptions],
        ) -> None: ...

    def __init__(
        self, data_model: Any = None, *, schema: Json = None, return_thinking: bool = True, **options: Any
    ) -> None:
        from synmod.blocks.thinking import Thinking

        declared, model = declaration(schema, data_model, type(self).__name__)
        answer = symbol(declared, model)
        thought = ops.concat(Thinking.to_symbolic_data_model(), answer)
        super().__init__(thought, **options)
        self._asking = self._asking.filled_by_reasoning("thinking")
        if not return_thinking:
            # An answer with a field `thinking` of its own has it renamed by the merge, and keeps that name.
            output = ops.out_mask(thought, "thinking") if "thinking" in answer else answer
            self._asking = self._asking._replace(output=output, hidden="thinking")
            if not self._asking.return_inputs:
                self.output_spec = output
