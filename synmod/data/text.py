"""JSON as text: the one reader of foreign JSON, and the writer."""

from __future__ import annotations

import json as _json

from synmod.errors import DataError
from synmod.leaves.frozen import Json, frozen, thaw


def parse_json(text: str | bytes) -> Json:
    """Read JSON."""
    try:
        return thaw(frozen(_json.loads(text)))
    except ValueError as error:
        raise DataError(f"not JSON: {error}") from None


def dump_json(json: Json, indent: int | None = None) -> str:
    """Write JSON, text as it is."""
    return _json.dumps(frozen(json), ensure_ascii=False, indent=indent)
