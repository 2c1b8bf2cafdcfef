"""Blocks: what the open `with` blocks provide, in one ContextVar, and the rule that an ended block no longer holds.

Each block adds a record that points at the one below it and shares nothing with it but entries. A task that outlives a
block still has its record; its entry is no longer live, and the record is then computed again from the live ones.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextvars import ContextVar, Token
from types import TracebackType
from typing import Any, Final

from synmod.errors import CallError
from synmod.leaves.names import did_you_mean


class Entry:
    """One entry of a block: the field that it adds to, its value, and whether it still holds.

    Shared by all records that are computed from it.
    """

    __slots__ = ("field", "live", "value")

    def __init__(self, field: str, value: Any) -> None:
        self.field = field
        self.value = value
        self.live = True


class Ambient:
    """What holds at one place: the sum of the blocks around it. Never changed after it is made.

    What the values of a field are, only the file of its block knows.

    Attributes:
        parent: The record of the block around, None for the outermost.
        entry: What the innermost block added.
        phase: The phase, None where no block sets one.
        deadline: The earliest, None without one.
        hooks, budgets, usages, reward_tracks, scopes, captures: What each block added, outermost first.
    """

    __slots__ = (
        "budgets", "captures", "deadline", "entry", "hooks", "parent", "phase", "reward_tracks", "scopes", "usages",
    )  # fmt: skip

    def __init__(self, parent: Ambient | None, entry: Entry) -> None:
        self.parent = parent
        self.entry = entry
        below = _NOTHING if parent is None else parent
        self.phase: str | None = below.phase
        self.deadline: Any = below.deadline
        self.hooks: tuple[Any, ...] = below.hooks
        self.budgets: tuple[Any, ...] = below.budgets
        self.usages: tuple[Any, ...] = below.usages
        self.reward_tracks: tuple[Any, ...] = below.reward_tracks
        self.scopes: tuple[Any, ...] = below.scopes
        self.captures: tuple[Any, ...] = below.captures
        join = _JOINS.get(entry.field, _append)
        setattr(self, entry.field, join(getattr(below, entry.field), entry.value))


class _Nothing:
    """The fields of no block at all."""

    __slots__ = ()
    phase = deadline = None
    hooks = budgets = usages = reward_tracks = scopes = captures = ()


_NOTHING: Final = _Nothing()


def _append(old: tuple[Any, ...], new: object) -> tuple[Any, ...]:
    """All blocks hold, outermost first."""
    return (*old, new)


def _replace(_: object, new: object) -> object:
    """The inner block wins."""
    return new


def _earlier(old: Any, new: Any) -> Any:
    """The deadline that comes first holds; the outer one where both come together."""
    return new if old is None or new.left() < old.left() else old


def _join_distinct(old: tuple[Any, ...], new: tuple[Any, ...]) -> tuple[Any, ...]:
    """All hold, outermost first; what is found twice stands once, at its first place."""
    found = list(old)
    for one in new:
        if not any(one is known for known in found):
            found.append(one)
    return tuple(found)


_JOINS: Final[Mapping[str, Callable[[Any, Any], Any]]] = {
    "phase": _replace,
    "deadline": _earlier,
    "hooks": _join_distinct,
}
"""How a field takes another value in; those not named append."""

AMBIENT: ContextVar[Ambient | None] = ContextVar("synmod_ambient", default=None)
"""The record of the innermost block entered in this context; read it through `ambient()`, for it may have ended."""


def effective(record: Ambient | None) -> Ambient | None:
    """Return what of `record` still holds: itself while all its blocks are open, else a record of the open ones."""
    while record is not None and not record.entry.live:
        record = record.parent
    one = record
    while one is not None:
        if not one.entry.live:
            return _of_live_blocks(record)
        one = one.parent
    return record


def _of_live_blocks(record: Ambient | None) -> Ambient | None:
    """Compute a record anew from those blocks of it that are still open."""
    entries: list[Entry] = []
    while record is not None:
        if record.entry.live:
            entries.append(record.entry)
        record = record.parent
    anew: Ambient | None = None
    for entry in reversed(entries):
        anew = Ambient(anew, entry)
    return anew


def ambient() -> Ambient | None:
    """Return what the open blocks around this place provide, None where there are none. Hot: one read and a check."""
    record = AMBIENT.get()
    return None if record is None else effective(record)


class Block:
    """Base of a `with` block that adds one value to one field; it may be entered again, and by several tasks at once.

    A subclass names its `field` and calls `enter(value)` in `__enter__`.
    """

    field: str

    def __init__(self) -> None:
        self._entries: list[Entry] = []

    def enter(self, value: object) -> None:
        """Let the block begin here: `value` joins its field of what holds."""
        entry = Entry(self.field, value)
        self._entries.append(entry)
        AMBIENT.set(Ambient(ambient(), entry))

    def entry(self) -> Entry:
        """Return the entry that was made in this context, else the last one (a generator may be closed elsewhere)."""
        record = AMBIENT.get()
        while record is not None:
            if record.entry in self._entries:
                return record.entry
            record = record.parent
        return self._entries[-1]

    def leave(self, *, keep: bool = False) -> None:
        """Let the block end here; with `keep` it goes on to hold for tasks that outlive it.

        In another context than that of the entry nothing is set back: the flag of the entry alone ends the block.
        """
        entry = self.entry()
        self._entries.remove(entry)
        entry.live = False
        record = AMBIENT.get()
        if record is not None and (left := effective(record)) is not record:
            AMBIENT.set(left)
        entry.live = keep

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> None:
        self.leave()


def reset(variable: ContextVar[Any], token: Token[Any]) -> None:
    """Set a ContextVar back; in another context than that of the token this does nothing."""
    try:
        variable.reset(token)
    except ValueError:
        pass


PHASES: Final = ("inference", "reward", "optimizer")


def check_phase(name: object) -> str:
    """Return `name` if it is a phase.

    Raises:
        CallError: It is not.
    """
    if isinstance(name, str) and name in PHASES:
        return name
    raise CallError(f"unknown phase {name!r}: write one of {', '.join(map(repr, PHASES))}.{did_you_mean(name, PHASES)}")


class phase(Block):  # noqa: N801  # read as a word: `with sm.phase("reward"):`
    """Let the calls of a block belong to a phase.

    Args:
        name: `"inference"` (the phase without a block), `"reward"` or `"optimizer"`.

    Raises:
        CallError: Another word.

    Example:
        >>> import synmod as sm
        >>> with sm.phase("reward"):
        ...     sm.current_phase()
        'reward'

    Source: Synalinks' phases.
    """

    field = "phase"

    def __init__(self, name: str) -> None:
        super().__init__()
        self._name = check_phase(name)

    def __enter__(self) -> None:
        self.enter(self._name)
