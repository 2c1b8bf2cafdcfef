"""The schema of a generator's examples: a list of inputs with the outputs that they should have had."""

from __future__ import annotations

from typing import TYPE_CHECKING

from synmod.data import portable, trusted_schema

if TYPE_CHECKING:
    from synmod.data import Schema


def examples_schema(output: Schema) -> Schema:
    """Give the schema of `[{"inputs": object, "outputs": ...}, ...]` for an output schema."""
    outputs = dict(portable(output))
    definitions = outputs.pop("$defs", None)
    schema = {
        "type": "array",
        "items": {
            "type": "object",
            "properties": {"inputs": {"type": "object"}, "outputs": outputs},
            "required": ["inputs", "outputs"],
            "additionalProperties": False,
        },
    }
    return trusted_schema(schema if definitions is None else {**schema, "$defs": definitions})
