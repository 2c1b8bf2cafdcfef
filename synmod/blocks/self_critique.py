"""SelfCritique: a model says what is wrong with its inputs, and scores them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Unpack

from synmod.blocks.generator import Generator
from synmod.blocks.options import KEYWORDS
from synmod.data import declaration, ops, symbol
from synmod.registry import register_own

if TYPE_CHECKING:
    from collections.abc import Mapping

    from synmod.blocks.options import GeneratorOptions
    from synmod.data import DataModel, JsonDataModel, SymbolicDataModel
    from synmod.leaves.frozen import Json


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

    _keywords: ClassVar[tuple[str, ...]] = KEYWORDS

    def __init__(
        self,
        data_model: type[DataModel] | SymbolicDataModel | JsonDataModel[Any] | Mapping[str, Json] | None = None,
        *,
        schema: Json = None,
        **options: Unpack[GeneratorOptions],
    ) -> None:
        from synmod.blocks.critique import Critique

        judged = Critique.to_symbolic_data_model()
        if data_model is not None or schema is not None:
            declared, model = declaration(schema, data_model, type(self).__name__)
            judged = ops.concat(symbol(declared, model), judged)
        options.setdefault("return_inputs", True)
        super().__init__(judged, **options)
