"""Entries in the memory of this process; when there is no room, the one whose use is longest ago goes first."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from synmod.cache.entries import Entry


class Memory:
    """A bounded mapping for any thread.

    Args:
        max_bytes: How many bytes the entries may count for together.
    """

    __slots__ = ("_entries", "_lock", "_max_bytes", "_total")

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._entries: OrderedDict[str, Entry] = OrderedDict()
        self._total = 0
        self._lock = threading.Lock()

    def find(self, key: str) -> Entry | None:
        """Give an entry, and note its use."""
        with self._lock:
            entry = self._entries.get(key)
            if entry is not None:
                self._entries.move_to_end(key)
            return entry

    def keep(self, key: str, entry: Entry) -> None:
        """Remember an entry; one that is too big by itself drives out no other."""
        with self._lock:
            before = self._entries.pop(key, None)
            if before is not None:
                self._total -= before.size
            if entry.size > self._max_bytes:
                return
            self._entries[key] = entry
            self._total += entry.size
            while self._total > self._max_bytes:
                self._total -= self._entries.popitem(last=False)[1].size
