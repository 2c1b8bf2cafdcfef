"""Where two schemas differ, as JSON Pointers; the order of keys does not count."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from synmod.leaves.frozen import json_equal
from synmod.leaves.names import pointer

if TYPE_CHECKING:
    from synmod.leaves.frozen import Json

__all__ = ["differing_pointers"]

_SHOWN = 10


def differing_pointers(one: Json, other: Json) -> list[str]:
    """List the pointers at which two JSON values differ, the deepest that tell, at most ten."""
    found: list[str] = []
    pending: list[tuple[tuple[str | int, ...], Json, Json]] = [((), one, other)]
    while pending and len(found) < _SHOWN:
        where, a, b = pending.pop()
        if isinstance(a, dict) and isinstance(b, dict):
            left, right = cast("dict[str, Json]", a), cast("dict[str, Json]", b)
            keys = [*left, *(key for key in right if key not in left)]
            for key in reversed(keys):
                if key in left and key in right:
                    pending.append(((*where, key), left[key], right[key]))
                else:
                    pending.append(((*where, key), _ABSENT, None))
        elif isinstance(a, list) and isinstance(b, list) and len(cast("list[Json]", a)) == len(cast("list[Json]", b)):
            pairs = zip(cast("list[Json]", a), cast("list[Json]", b), strict=True)
            pending.extend(reversed([((*where, number), x, y) for number, (x, y) in enumerate(pairs)]))
        elif a is _ABSENT or not json_equal(a, b):
            found.append(pointer(where) or "the root")
    return found


_ABSENT: Json = object()
