"""Instances: a value that satisfies a schema, drawn at random and the same for the same seed."""

from __future__ import annotations

from typing import Final

from synmod.data import Schema, problems
from synmod.leaves.frozen import Json, frozen
from synmod.leaves.seeds import rng
from synmod.testing.instances.drawing import Drawing

__all__ = ["instance_of"]

_TRIES: Final = 60


def instance_of(schema: Schema, seed: int, purpose: str) -> Json:
    """Draw a value that satisfies a schema.

    Args:
        schema: Any schema that can be satisfied.
        seed: Number of the sequence of draws.
        purpose: What the draw is for; another text gives another value.

    Returns:
        A valid value, the same for the same arguments on every platform.

    Raises:
        AssertionError: No draw was valid: the schema contradicts itself, or asks for more than can be guessed.

    Example:
        >>> from synmod.data.symbols import declare
        >>> instance_of(declare({"enum": [3]}, root="any"), 0, "doc")
        3

    Source: hypothesis-jsonschema; differs: no search, a small draw and a check.
    """
    said = ""
    for step in range(_TRIES):
        # Each try is a little plainer: fewer optional parts, less depth.
        json = Drawing(schema, rng(seed, step, purpose), bold=max(0.0, 1.0 - step / 20)).value(schema, 0)
        found = problems(schema, frozen(json), limit=1)
        if not found:
            return json
        said = f"{found[0].pointer or '(root)'}: wanted {found[0].wanted}, got {found[0].got}"
    raise AssertionError(f"SchemaLM: no valid instance found in {_TRIES} draws; the last one fails at {said}.")
