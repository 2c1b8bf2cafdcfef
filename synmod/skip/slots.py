"""Slots: one value in the lane, where it came from, and who has reserved it."""

from __future__ import annotations

import threading
from collections.abc import MutableMapping
from typing import TYPE_CHECKING, Any, Final, Protocol

from synmod.skip.namespace import Key

if TYPE_CHECKING:
    from synmod.skip.layers import Layer
    from synmod.skip.skip_frame import SkipFrame

LOCK: Final = threading.RLock()
"""Held for a few instructions while slots are reserved or change hands, never across an await. Reentrant: a coroutine
that the collector closes meanwhile may drop its layer."""

TAKEN: Final[Any] = object()
"""Stands in what a call on symbols leaves for a value that it has popped."""

Journal = list[tuple["MutableMapping[Key, Slot]", Key, "Slot | None", "Slot | None"]]
"""What a commit changed: where, at which key, before and after."""


class Slot:
    """One value in the lane; a plain reference, whatever its size."""

    __slots__ = ("consumer", "producer", "replaces", "reuses", "taker", "value")

    def __init__(self, value: Any, producer: str, *, replaces: bool = False) -> None:
        self.value = value
        self.producer = producer
        """Path of the module that stashed it, as messages name it."""
        self.replaces = replaces
        """Whether it may take the place of another."""
        self.taker: Layer | None = None
        """The call that has reserved it."""
        self.consumer: int | None = None
        """The id of the record of the module that popped it last."""
        self.reuses = 0
        """How often that module has popped it again."""


class Store(Protocol):
    """What slots are handed to: the layer of a call, or a skip frame."""

    @property
    def base(self) -> SkipFrame:
        """The skip frame at the bottom."""
        ...

    def find(self, key: Key) -> Slot | None:
        """The slot that is seen from here."""
        ...

    def take(self, key: Key, slot: Slot, journal: Journal) -> None:
        """Let a slot be gone from here."""
        ...

    def put(self, key: Key, slot: Slot, journal: Journal) -> None:
        """Let a slot be seen from here."""
        ...


def write(mapping: MutableMapping[Key, Slot], key: Key, slot: Slot | None, journal: Journal) -> None:
    """Set or remove one entry, and remember what was there."""
    journal.append((mapping, key, mapping.get(key), slot))
    if slot is None:
        del mapping[key]
    else:
        mapping[key] = slot


def undo(journal: Journal) -> None:
    """Put back what a commit changed, where nobody has changed it since."""
    while journal:
        mapping, key, before, after = journal.pop()
        if mapping.get(key) is not after:
            continue
        if before is None:
            del mapping[key]
        else:
            mapping[key] = before
