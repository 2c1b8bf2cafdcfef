"""What was paid for once: JSON by key, in memory or in a file that several processes share.

Floor: 3. Purpose: `Cache`, its file and the one thread that writes it, and the key of a request.
State: none of its own; each Cache holds its entries, its connections and its thread. Speed: a read takes about 10 µs;
sqlite3 is imported when a file is first used, and no thread runs where nothing is written.
Must never know: schemas, modules, models; that equal work is done once (the caller sees to that).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from synmod.leaves.late import opened_late

if TYPE_CHECKING:
    from types import ModuleType

    from synmod.cache.cache import Cache
    from synmod.cache.key import key_of

__all__ = ["Cache", "key_of"]


def _parts() -> tuple[ModuleType, ...]:
    """Load the room: most programs have no cache."""
    from synmod.cache import cache, key

    return cache, key


if TYPE_CHECKING:  # for the rooms above
    from synmod.cache.cache import checked_ttl as checked_ttl
    from synmod.cache.database import Database as Database

_FOR_ROOMS = {
    "Database": "synmod.cache.database",
    "checked_ttl": "synmod.cache.cache",
}
__getattr__, __dir__ = opened_late(globals(), _parts, inner=_FOR_ROOMS)
