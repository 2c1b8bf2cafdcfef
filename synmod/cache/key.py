"""The key of a request: equal JSON, equal key, in every process."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

    from synmod.leaves.frozen import Json

_CANONICAL: Final[Callable[[Json], str]] = json.JSONEncoder(
    sort_keys=True, separators=(",", ":"), allow_nan=False
).encode


def key_of(json: Json) -> str:
    """Give the key of a request.

    Args:
        json: What the answer depends on, as JSON; the order of keys does not count.

    Returns:
        The SHA-256 (hex) of its canonical text.

    Example:
        >>> key_of({"a": 1, "b": 2}) == key_of({"b": 2, "a": 1})
        True

    Source: content addressing, as in Git; RFC 8785 for the canonical text.
    """
    return hashlib.sha256(_CANONICAL(json).encode()).hexdigest()
