"""ChainOfThought and SelfCritique: generators that reason before they answer, and that judge their inputs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Unpack, overload

from pydantic import Field

from synmod.data import TOLD_BRIEFLY, DataModel, JsonDataModel, Score, SymbolicDataModel, ops
from synmod.leaves.frozen import Json
from synmod.lm import sampling_params
from synmod.registry import register_own

from .generator import Form, Generator, GeneratorOptions, M, declared_symbol, keywords_of


@register_own()
class Thinking(DataModel):
    """Think step by step, then answer.

    Example:
        >>> Thinking(thinking="It is the capital, so Paris.").thinking
        'It is the capital, so Paris.'

    Source: chain-of-thought prompting (Wei et al. 2022), Synalinks' `Thinking`.
    """

    model_config = TOLD_BRIEFLY

    thinking: str = Field(description="the reasoning, step by step")


@register_own()
class Critique(DataModel):
    """Say what is wrong with the inputs and what would make them better, then score them.

    Example:
        >>> Critique(critique="No source is given.", score=0.4).score
        <Score.P40: 0.4>

    Source: Synalinks' `CritiqueWithReward`.
    """

    model_config = TOLD_BRIEFLY

    critique: str = Field(description="what is wrong, and what would make it better")
    score: Score = Field(description="how good it is, from 0.0 to 1.0")


@register_own()
class ChainOfThought(Generator[M]):
    """A `Generator` whose model writes `thinking` before the fields of the output model.

    Where the provider returns its reasoning natively, that is the thinking, and it is not requested again.

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
            data_model: SymbolicDataModel | JsonDataModel[Any] | Mapping[str, Any] | None = None,
            *,
            schema: Json = None,
            return_thinking: bool = True,
            **options: Unpack[GeneratorOptions],
        ) -> None: ...

    def __init__(
        self, data_model: Any = None, *, schema: Json = None, return_thinking: bool = True, **options: Any
    ) -> None:
        kind, known = type(self).__name__, keywords_of(type(self))
        # Before the output model is missed: a misspelt `data_model` is why it is missing.
        sampling_params({name: options[name] for name in options if name not in known}, kind, known)
        answer = declared_symbol(data_model, schema, kind)
        thought = ops.concat(Thinking.to_symbolic_data_model(), answer)
        output = thought
        if not return_thinking:
            # An answer with a field `thinking` of its own has it renamed by the merge, and keeps that name.
            output = ops.out_mask(thought, "thinking") if "thinking" in answer else answer
        hidden = None if return_thinking else "thinking"
        form: Any = Form(thought, output, hidden, reasoning="thinking")
        super().__init__(form, **options)


@register_own()
class SelfCritique(Generator[Any]):
    """A `Generator` that criticises its inputs and scores them.

    Args:
        data_model: What the critic writes before critique and score: a class, symbol, value or schema; None for
            nothing.
        schema: JSON schema of it; must agree with `data_model`.
        **options: Those of `Generator`; the default of `return_inputs` is True.

    Schemas:
        inputs: any data model
        outputs: the inputs, the fields of `data_model`, `critique` (a string) and `score` (on the scale `sm.Score`)

    Raises:
        ArgumentError: `data_model` and `schema` differ.
        ConfigError: As `Generator`.
        SchemaError: As `Generator`.

    Example:
        >>> import synmod as sm
        >>> from synmod.testing import ScriptedLM
        >>> class Answer(sm.DataModel):
        ...     answer: str
        >>> lm = ScriptedLM([{"critique": "No source is given.", "score": 0.4}])
        >>> sm.run(sm.SelfCritique(language_model=lm), Answer(answer="Paris")).get_json()
        {'answer': 'Paris', 'critique': 'No source is given.', 'score': 0.4}

    Source: Synalinks' `SelfCritique`; differs: the score is always there, on a scale.
    """

    def __init__(
        self,
        data_model: type[DataModel] | SymbolicDataModel | JsonDataModel[Any] | Mapping[str, Any] | None = None,
        *,
        schema: Json = None,
        **options: Unpack[GeneratorOptions],
    ) -> None:
        judged = Critique.to_symbolic_data_model()
        if data_model is not None or schema is not None:
            judged = ops.concat(declared_symbol(data_model, schema, type(self).__name__), judged)
        options.setdefault("return_inputs", True)
        super().__init__(judged, **options)
