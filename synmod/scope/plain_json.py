"""Whatever a call was given or gave, as plain JSON for logs and traces."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Any, cast

from synmod.data.models.symbol import SymbolicDataModel


def plain(x: Any) -> Any:
    """Write values as JSON: data models by their JSON, symbols by their schema, nests and records member by member.

    What else a keyword may hold is written as text, also a number that JSON has not.
    """
    if x is None or isinstance(x, (str, bool, int)):
        return x
    if isinstance(x, float):
        return x if math.isfinite(x) else repr(x)
    if isinstance(x, SymbolicDataModel):
        return x.get_schema()
    get_json = getattr(x, "get_json", None)
    if callable(get_json) and not isinstance(x, type):
        return get_json()
    if isinstance(x, Mapping):
        return {str(key): plain(value) for key, value in cast("Mapping[object, Any]", x).items()}
    if isinstance(x, (list, tuple)):
        return [plain(member) for member in cast("Sequence[Any]", x)]
    if isinstance(x, type) or not is_dataclass(x):
        return repr(cast("object", x))
    return {field.name: plain(getattr(x, field.name)) for field in fields(x)}


def error_text(error: BaseException | None) -> str | None:
    """Write an exception as text: kept as an object it would keep the frames of its traceback alive."""
    return None if error is None else f"{type(error).__name__}: {error}".removesuffix(": ")
