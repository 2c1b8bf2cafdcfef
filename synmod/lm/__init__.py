"""Language models: a dependency handed to modules, one async call with every hard thing about providers behind it.

Floor: 5. Purpose: LanguageModel, the layers of a call, adapters, replies, prices, counters, the default model.
State: the default model of the process, the models made from strings. Speed: a call of a zero-latency adapter costs
at most 50 µs; litellm is imported by the first request that needs it.
Must never know: a Module (it sees path strings), the walk, the graph, what a program is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from synmod.leaves.late import opened_late
from synmod.lm.choice import (
    default_language_model,
    model_from,
    models_in_force,
    resolve_model,
    set_default_language_model,
    use_language_models,
)
from synmod.lm.draws import current_sample, drawing
from synmod.lm.model import LanguageModel
from synmod.lm.sampling import SAMPLING, sampling_params
from synmod.lm.unbound import UnboundLanguageModel
from synmod.scope import Usage

if TYPE_CHECKING:
    from types import ModuleType

    from synmod.lm.adapter import Adapter
    from synmod.lm.records import Attempt, LMReply, LMRequest

__all__ = [
    "SAMPLING",
    "Adapter",
    "Attempt",
    "LMReply",
    "LMRequest",
    "LanguageModel",
    "UnboundLanguageModel",
    "Usage",
    "current_sample",
    "default_language_model",
    "drawing",
    "model_from",
    "models_in_force",
    "resolve_model",
    "sampling_params",
    "set_default_language_model",
    "use_language_models",
]


def _parts() -> tuple[ModuleType, ...]:
    """Load what the first call of a model needs."""
    from synmod.lm import adapter, records

    return adapter, records


__getattr__, __dir__ = opened_late(globals(), _parts)
