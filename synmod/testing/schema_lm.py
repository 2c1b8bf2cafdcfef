"""SchemaLM: a model that answers with any valid instance of the schema."""

from __future__ import annotations

import hashlib
from typing import Any

from synmod.data import dump_json
from synmod.leaves.frozen import frozen_dict, frozen_list
from synmod.lm import LMRequest
from synmod.testing.doubles import Double
from synmod.testing.instances import instance_of

__all__ = ["SchemaLM"]


class SchemaLM(Double):
    """A model that answers with a valid instance of the schema, and with some text where there is none.

    Args:
        seed: Another seed gives other answers.
        latency_s: Seconds that each request takes.
        backoff: Whether to wait between attempts, as a real model does.
        model: The model string.
        **lm: Keywords of `LanguageModel`.

    Raises:
        ConfigError: A keyword is unknown ('Did you mean').
        AssertionError: By a call: the schema cannot be satisfied, or asks for more than can be guessed.

    Example:
        >>> sm.run(SchemaLM()("Hi", {"type": "object", "required": ["n"], "properties": {"n": {"const": 1}}})).json
        {'n': 1}

    Source: pydantic-ai's TestModel, hypothesis-jsonschema.
    """

    __slots__ = ("_seed",)

    def __init__(
        self,
        seed: int = 0,
        *,
        latency_s: float = 0.0,
        backoff: bool = False,
        model: str = "testing/schema",
        **lm: Any,
    ) -> None:
        super().__init__(self._instance, model, latency_s, backoff, lm)
        self._seed = seed

    def _instance(self, request: LMRequest) -> str:
        """Answer as a function of seed and request."""
        purpose = _digest(request)
        if request.schema is None:
            return f"An answer from SchemaLM ({purpose[:8]})."
        return dump_json(instance_of(request.schema, self._seed, purpose))


def _digest(request: LMRequest) -> str:
    """A text that differs for different requests."""
    said = [frozen_list(request.messages), request.schema, frozen_dict(dict(request.params)), request.sample]
    return hashlib.sha256(dump_json(frozen_list(said)).encode()).hexdigest()
