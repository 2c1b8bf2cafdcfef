"""Native reasoning: where a provider tells what its model thought, that fills the field which asks for it.

An adapter may have `reasons(request)`, a plain function: whether the provider reasons by itself on this request, and
tells it with the reply. Then what is sent leaves the field out, so that the model does not think twice.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from synmod.data import Schema, trusted_schema
from synmod.errors import ConfigError
from synmod.leaves.frozen import Json, frozen_dict, is_object
from synmod.lm.messages import Message, message
from synmod.lm.prompt.escape import value_text
from synmod.lm.prompt.subschemas import fields_of

if TYPE_CHECKING:
    from synmod.lm.adapter import Adapter
    from synmod.lm.records import LMReply, LMRequest

__all__ = ["Thought", "check_reasoning_field", "thought_of", "without_asking"]


class Thought(NamedTuple):
    """What a model thought, and the field that it fills in a reply which lacks it."""

    field: str
    text: str

    def filled_into(self, json: Json) -> Json:
        """Give an object the field in front; a field of its own wins."""
        if not is_object(json) or self.field in json:
            return json
        return frozen_dict({self.field: self.text, **json})


def check_reasoning_field(field: object, schema: Schema | None, where: str) -> str | None:
    """Return the name of the field that reasoning may fill.

    Raises:
        ConfigError: It is no text, or there is no schema whose field it could be.
    """
    if field is None or (isinstance(field, str) and schema is not None):
        return field
    raise ConfigError(f"{where}: reasoning_field: got {field!r:.100}, wanted the name of a field of the schema.")


def without_asking(request: LMRequest, adapter: Adapter) -> LMRequest:
    """Leave the field out of schema and prompt where the provider reasons by itself; else give the request itself."""
    if request.reasoning_field is None or request.schema is None:
        return request
    reasons = getattr(adapter, "reasons", None)
    if reasons is None or not reasons(request):
        return request
    schema = _without(request.schema, request.reasoning_field)
    if schema is request.schema:
        return request
    told, instead = (f"<output_schema>{value_text(one)}</output_schema>" for one in (request.schema, schema))
    turns = tuple([_retold(turn, told, instead) for turn in request.messages])
    return replace(request, schema=schema, messages=turns)


def thought_of(reply: LMReply, request: LMRequest, asked: LMRequest) -> Thought | None:
    """Give what fills the field of a request; nothing where it was asked for and no reasoning came.

    Where the field was left out it is filled in any case, so that an output never lacks it.
    """
    if request.reasoning_field is None:
        return None
    text = reply.reasoning or ("" if asked.schema is not request.schema else None)
    return None if text is None else Thought(request.reasoning_field, text)


def _without(schema: Schema, field: str) -> Schema:
    """A schema without one field of its root."""
    fields = fields_of(schema)
    if field not in fields:
        return schema
    less = {**schema, "properties": {name: inner for name, inner in fields.items() if name != field}}
    if "required" in schema:
        less["required"] = [name for name in schema["required"] if name != field]
    return trusted_schema(less)


def _retold(turn: Message, told: str, instead: str) -> Message:
    """A turn that tells another schema, as a prompt of ours tells it."""
    content = turn["content"]
    if not isinstance(content, str) or told not in content:
        return turn
    return message(turn["role"], content.replace(told, instead))
