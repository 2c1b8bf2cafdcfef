"""The keywords that every block with a model call takes, as a type checker reads them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal

from synmod.lm import SAMPLING
from synmod.module import ModuleOptions

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from synmod.leaves.frozen import Json
    from synmod.lm import LanguageModel

KEYWORDS: Final = (
    "data_model", "schema", "language_model", "instructions", "examples", "return_inputs", "template", "prompt",
    "structured", "system_from_inputs", "sample", "name", "description", "trainable", "hooks",
)  # fmt: skip
"""The keywords of `Generator` that are no sampling parameters."""

_SAMPLING: Final = frozenset(SAMPLING)


def sampling_of(block: object) -> dict[str, Json]:
    """Collect the sampling parameters that a block has as attributes now."""
    return {name: value for name, value in vars(block).items() if name in _SAMPLING and value is not None}


class GeneratorOptions(ModuleOptions, total=False):
    """Keywords of a block with a model call, beside those of every module; then the sampling parameters."""

    language_model: LanguageModel | str | None
    instructions: str | None
    examples: Sequence[Mapping[str, Any]] | None
    return_inputs: bool
    template: Mapping[str, str] | None
    prompt: Callable[..., Any] | None
    structured: Literal["schema", "json", "prompt"] | None
    system_from_inputs: bool
    sample: int | None

    temperature: float | None
    top_p: float | None
    top_k: int | None
    max_tokens: int | None
    stop: str | Sequence[str] | None
    seed: int | None
    presence_penalty: float | None
    frequency_penalty: float | None
    logit_bias: Mapping[str, float] | None
    logprobs: bool | None
    top_logprobs: int | None
    reasoning_effort: str | None
    verbosity: str | None
    parallel_tool_calls: bool | None
    tool_choice: Json
    modalities: Sequence[str] | None
    service_tier: str | None
