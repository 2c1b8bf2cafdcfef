"""Labels: what a value, a symbol or a class is called where nobody named it."""

from __future__ import annotations

import re
from typing import Final

from synmod.data.schemas.schema import Schema
from synmod.leaves.names import snake_case

_UNTITLED: Final = "data_model"
_NOT_IN_A_NAME = re.compile(r"\W+")


def label_of(schema: Schema) -> str:
    """Give the snake case of the schema's title; a root reference is followed one step."""
    title = schema.get("title")
    if not isinstance(title, str):
        reference = schema.get("$ref")
        title = reference.rpartition("/")[2] if isinstance(reference, str) else ""
    words = _NOT_IN_A_NAME.sub("_", title).strip("_")
    return snake_case(words) if words else _UNTITLED
