"""Arguments and results of calls as plain JSON, for logs and traces: whatever they are, nothing here raises."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Any, Final, cast

from synmod.data import SymbolicDataModel

_DEEPEST: Final = 60  # deeper than any data; a value that goes on may hold itself
_LONGEST_BITS: Final = 14_000  # of an integer that Python converts to decimal digits


def plain(x: Any, depth: int = 0) -> Any:
    """Return values as JSON: data models by their JSON, symbols by their schema, nests and records member by member.

    Anything else that a keyword may hold becomes text, also numbers that JSON does not have.
    """
    if x is None or type(x) is bool or type(x) is str:
        return x
    try:
        if isinstance(x, int):
            return int(x) if x.bit_length() < _LONGEST_BITS else hex(x)
        if isinstance(x, str):
            return str.__str__(x)
        if isinstance(x, float):
            return float(x) if math.isfinite(x) else repr(float(x))
        return "..." if depth > _DEEPEST else _written(x, depth + 1)
    except Exception:  # noqa: BLE001  # a hook never breaks a call, and a foreign value may fail at anything
        return f"<{type(x).__name__}>"


def _written(x: Any, depth: int) -> Any:
    """Return what is neither a number nor a text as JSON."""
    if isinstance(x, SymbolicDataModel):
        return x.get_schema()
    get_json = getattr(x, "get_json", None)
    if callable(get_json) and not isinstance(x, type):
        return get_json()
    if isinstance(x, Mapping):
        return {str(key): plain(value, depth) for key, value in cast("Mapping[object, Any]", x).items()}
    if isinstance(x, (list, tuple)):
        return [plain(member, depth) for member in cast("Sequence[Any]", x)]
    if isinstance(x, type) or not is_dataclass(x):
        return repr(cast("object", x))
    return {field.name: plain(getattr(x, field.name), depth) for field in fields(x)}


def error_text(error: BaseException | None) -> str | None:
    """Return an exception as text: kept as an object it would keep the frames of its traceback alive."""
    return None if error is None else f"{type(error).__name__}: {message_of(error)}".removesuffix(": ")


def message_of(error: BaseException) -> str:
    """Return the text of an exception; "" where it cannot be read."""
    try:
        return str(error)
    except Exception:  # noqa: BLE001  # a record of a failure must not fail
        return ""
