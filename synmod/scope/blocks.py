"""Blocks: what the open `with` blocks provide (phase, deadline, hooks, budgets and sums), in the ContextVar AMBIENT.

Each block adds a record that points to the record of the block around it, and shares only entries with it. A task that
outlives a block still has its record; the entry is no longer live, and the record is then computed again from the live
ones.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextvars import ContextVar
from typing import Any, Final

from .usage import check_phase


class BlockEntry:
    """One entry of a block: what it adds, by field, and whether it is still live.

    Shared by all records that are computed from it.
    """

    __slots__ = ("adds", "live")

    def __init__(self, adds: Mapping[str, Any]) -> None:
        self.adds = adds
        self.live = True


class Ambient:
    """What the blocks around one place provide together. Never changed after it is made.

    The values of a field are opaque here: the file that defines its block reads them.

    Attributes:
        parent: The record of the block around, None for the outermost.
        entry: The values that the innermost block added.
        phase: The phase, None where no block sets one.
        deadline: The earliest, None without one.
        hooks, budgets, usages, reward_tracks, scopes, captures: What each block added, outermost first.
    """

    phase: str | None = None
    deadline: Any = None
    hooks: tuple[Any, ...] = ()
    budgets: tuple[Any, ...] = ()
    usages: tuple[Any, ...] = ()
    reward_tracks: tuple[Any, ...] = ()
    scopes: tuple[Any, ...] = ()
    captures: tuple[Any, ...] = ()

    def __init__(self, parent: Ambient | None, entry: BlockEntry) -> None:
        if parent is not None:
            vars(self).update(vars(parent))
        self.parent = parent
        self.entry = entry
        for field, value in entry.adds.items():
            setattr(self, field, _JOINS.get(field, _append)(getattr(self, field), value))


def _append(old: tuple[Any, ...], new: object) -> tuple[Any, ...]:
    """Return the values of all blocks, outermost first."""
    return (*old, new)


def _replace(_: object, new: object) -> object:
    """Return the value of the inner block."""
    return new


def _earlier(old: Any, new: Any) -> Any:
    """Return the earlier deadline; the outer one if both come at the same time."""
    return new if old is None or new.remaining() < old.remaining() else old


def join_distinct(old: tuple[Any, ...], new: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the values of all blocks, outermost first, each once, at its first place."""
    distinct = list(old)
    for value in new:
        if not any(value is earlier for earlier in distinct):
            distinct.append(value)
    return tuple(distinct)


_JOINS: Final[Mapping[str, Callable[[Any, Any], Any]]] = {
    "phase": _replace,
    "deadline": _earlier,
    "hooks": join_distinct,
}
"""How a new value joins its field; fields not named here append."""


AMBIENT: ContextVar[Ambient | None] = ContextVar("synmod_ambient", default=None)
"""The record of the innermost block entered in this context; the block may have ended, so read it with `ambient()`."""


def effective(record: Ambient | None) -> Ambient | None:
    """Return the live part of `record`: itself while all its blocks are open, else a record of the open ones."""
    outer = record
    while outer is not None and outer.entry.live:
        outer = outer.parent
    if outer is None or record is None:
        return record
    around = effective(record.parent)
    return Ambient(around, record.entry) if record.entry.live else around


def ambient() -> Ambient | None:
    """Return the values of the open blocks around this place, None outside of blocks. Hot: one read and a check."""
    record = AMBIENT.get()
    return None if record is None else effective(record)


class Block:
    """Base of the `with` blocks that add to fields; one may be entered again, and by several tasks at once.

    A subclass calls `enter(field=value)` in `__enter__`.
    """

    def __init__(self) -> None:
        self._entries: list[BlockEntry] = []

    def enter(self, **adds: object) -> None:
        """Begin the block here: each value joins its field in the record of the open blocks."""
        entry = BlockEntry(adds)
        self._entries.append(entry)
        AMBIENT.set(Ambient(ambient(), entry))

    def entry(self) -> BlockEntry:
        """Return the entry that was made in this context, else the last one (a generator may be closed elsewhere)."""
        record = AMBIENT.get() if len(self._entries) > 1 else None
        while record is not None:
            if record.entry in self._entries:
                return record.entry
            record = record.parent
        return self._entries[-1]

    def leave(self, *, keep: bool = False) -> None:
        """End the block here; with `keep` it still applies to tasks that outlive it.

        In a context other than that of the entry nothing is reset: the flag of the entry alone ends the block.
        """
        entry = self.entry()
        self._entries.remove(entry)
        entry.live = False
        record = AMBIENT.get()
        if record is not None and (left := effective(record)) is not record:
            AMBIENT.set(left)
        entry.live = keep

    def __exit__(self, *_: object) -> None:
        self.leave()


class phase(Block):  # noqa: N801  # read as a word: `with sm.phase("reward"):`
    """Run the calls of a block in a phase.

    Args:
        name: `"inference"` (the phase without a block), `"reward"` or `"optimizer"`.

    Raises:
        CallError: The phase is unknown.

    Example:
        >>> import synmod as sm
        >>> with sm.phase("reward"):
        ...     sm.current_phase()
        'reward'

    Source: Synalinks' phases.
    """

    def __init__(self, name: str) -> None:
        super().__init__()
        self._name = check_phase(name)

    def __enter__(self) -> None:
        self.enter(phase=self._name)
