"""What a generator asks its model, apart from its Params: settled when it is made, the same for every call."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from synmod.data import SymbolicDataModel, model_of, ops, schema_of, validator_faults, wrap
from synmod.leaves.frozen import frozen

if TYPE_CHECKING:
    from collections.abc import Mapping

    from synmod.data import JsonDataModel, Schema
    from synmod.leaves.frozen import Json
    from synmod.lm import Layout, LMReply


class Asking(NamedTuple):
    """The fixed side of a generator's request and reply.

    Attributes:
        schema: What the reply must satisfy; None for plain text.
        output: Symbol of what is made of the reply.
        layout: How the prompt is laid out.
        settings: Keyword arguments of the model call beside the sampling parameters: `sample`, `structured`,
            `reasoning_field`.
        return_inputs: Whether the inputs come first in the result.
        hidden: A field of the reply that is not in the output.
    """

    schema: Schema | None
    output: SymbolicDataModel
    layout: Layout
    settings: Mapping[str, Json]
    return_inputs: bool
    hidden: str | None = None

    def filled_by_reasoning(self, field: str) -> Asking:
        """The same, with a field that the provider's own reasoning may fill."""
        return self._replace(settings={**self.settings, "reasoning_field": field})

    def result_of(self, inputs: Any, outputs: Any) -> Any:
        """Put the inputs before the outputs where that is wanted; alike on values and symbols."""
        return ops.concat(inputs, outputs) if self.return_inputs else outputs

    def read(self, reply: LMReply) -> JsonDataModel[Any]:
        """Make the output of a reply that is valid for the schema.

        Raises:
            SchemaError: A validator of the output's class refuses it.
        """
        if self.schema is None:
            return _spoken(reply)
        json: Any = reply.json
        if self.hidden is not None:
            json = frozen({name: value for name, value in json.items() if name != self.hidden})
        model = model_of(self.output)
        if model is not None:
            validator_faults(model, json, "the reply")
        return wrap(json, schema_of(self.output), model)


def _spoken(reply: LMReply) -> JsonDataModel[Any]:
    """The message of a reply in plain text."""
    from synmod.data import ChatMessage

    return ChatMessage(role="assistant", content=reply.text, reasoning_content=reply.reasoning).to_json_data_model()
