"""What stands in for a data model whose id this process does not know: it keeps the id, to be saved with it again."""

from __future__ import annotations

import weakref
from typing import Any

__all__ = ["keep_id", "kept_id"]

_IDS: dict[int, tuple[weakref.ref[Any], str]] = {}  # by identity: values compare by content


def keep_id(stand_in: Any, public_id: str) -> None:
    """Note the id that a symbol or value stands in for, as long as it lives."""
    key = id(stand_in)

    def forget(gone: weakref.ref[Any]) -> None:
        entry = _IDS.get(key)
        if entry is not None and entry[0] is gone:
            del _IDS[key]

    _IDS[key] = (weakref.ref(stand_in, forget), public_id)


def kept_id(x: Any) -> str | None:
    """Tell which id a symbol or value stands in for, None for an ordinary one."""
    entry = _IDS.get(id(x))
    return entry[1] if entry is not None and entry[0]() is x else None
