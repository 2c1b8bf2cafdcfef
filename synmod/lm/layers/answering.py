"""A call of a model from its arguments to its reply; with all the layers, loaded by the first call of a process."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from synmod.data import Schema, declare
from synmod.leaves.frozen import FrozenDict, Json, frozen_dict
from synmod.lm.draws import check_sample, current_sample
from synmod.lm.layers.call import ModelCall, refuse_while_building
from synmod.lm.layers.stack import send_through
from synmod.lm.messages import turns
from synmod.lm.records import LMReply, LMRequest
from synmod.lm.replies.reasoning import check_reasoning_field
from synmod.lm.sampling import sampling_params
from synmod.lm.settings import check_seconds, check_structured

if TYPE_CHECKING:
    from synmod.lm.model import LanguageModel

__all__ = ["answer"]

CALL_KEYWORDS: Final = ("schema", "sample", "timeout_s", "structured", "reasoning_field")


async def answer(
    model: LanguageModel,
    messages: Any,
    schema: Any,
    sample: int | None,
    timeout_s: float | None,
    structured: str | None,
    reasoning_field: str | None,
    params: Mapping[str, Json],
) -> LMReply:
    """Answer a call by this very model, whoever stands in."""
    settings = model.settings
    refuse_while_building(settings.model)
    wanted = schema if schema is None or type(schema) is Schema else declare(schema, root="any")
    request = LMRequest(
        settings.model,
        turns(messages),
        wanted,
        None,
        None,
        _merged(model, params) if params else settings.defaults,
        current_sample() if sample is None else check_sample(sample),
        settings.structured if structured is None else check_structured(structured, settings.model),
        reasoning_field and check_reasoning_field(reasoning_field, wanted, settings.model),
    )
    limit = settings.timeout_s if timeout_s is None else check_seconds(settings.model, "timeout_s", timeout_s)
    return await send_through(ModelCall(model, limit), request)


def _merged(model: LanguageModel, params: Mapping[str, Json]) -> FrozenDict:
    """Parameters of the call over those of the model."""
    where = f"await LanguageModel({model.model!r})(...)"
    checked = sampling_params(params, where, CALL_KEYWORDS)
    return frozen_dict({**model.settings.defaults, **checked})
