"""A bounded cache of plans, by the identity of what they were made from."""

from __future__ import annotations

import threading
from collections.abc import Hashable
from typing import Final, Generic, TypeVar

T = TypeVar("T")

_ROOM: Final = 100_000


class Kept(Generic[T]):
    """Plans by the ids of their sources; the oldest go when their weights exceed the room.

    An entry holds its sources, so an id cannot come to mean another object while it is here.
    """

    def __init__(self, room: int = _ROOM) -> None:
        self._room = room
        self._used = 0
        self._entries: dict[Hashable, tuple[T, tuple[object, ...], int]] = {}
        self._lock = threading.Lock()

    def find(self, key: Hashable) -> T | None:
        """Give the plan kept under a key made of ids of its sources, None if it is not here. Hot."""
        entry = self._entries.get(key)
        return None if entry is None else entry[0]

    def keep(self, key: Hashable, plan: T, sources: tuple[object, ...], weight: int = 1) -> T:
        """Keep a plan and give it back."""
        with self._lock:
            if key in self._entries:
                return plan
            self._entries[key] = (plan, sources, weight)
            self._used += weight
            while self._used > self._room and len(self._entries) > 1:
                _, _, freed = self._entries.pop(next(iter(self._entries)))
                self._used -= freed
        return plan
