"""What the open `with` blocks say: one ContextVar with one record, and the rule that an ended block no longer holds.

Each block adds a record that points at the one below it and shares nothing but a flag. A task that outlives a block
still has its record; the flag tells that the block ended, and the record is then computed again from the live ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar, Token
from typing import Any, Final, NamedTuple, TypeVar

from synmod.scope.deadline import Deadline, earlier
from synmod.scope.events import Hook
from synmod.scope.frame import CallFrame, Owner
from synmod.scope.ledger import RewardTrack
from synmod.scope.meter import UsageMeter
from synmod.scope.spending import Account

T = TypeVar("T")


class Flag:
    """Whether one block still holds; shared by all records computed from it."""

    __slots__ = ("live",)

    def __init__(self) -> None:
        self.live = True


class Ambient:
    """What holds at one place: the sum of the blocks around it. Never changed after it is made."""

    __slots__ = (
        "_change", "budgets", "captures", "deadline", "flag", "hooks", "parent", "phase", "reward_tracks",
        "scopes", "usages",
    )  # fmt: skip

    def __init__(self, parent: Ambient | None, change: tuple[str, Any], flag: Flag) -> None:
        self.parent = parent
        self.flag = flag
        self._change = change
        below = _NOTHING if parent is None else parent
        self.phase: str | None = below.phase
        self.hooks: tuple[Hook, ...] = below.hooks
        self.deadline: Deadline | None = below.deadline
        self.budgets: tuple[Account, ...] = below.budgets
        self.usages: tuple[UsageMeter, ...] = below.usages
        self.reward_tracks: tuple[RewardTrack, ...] = below.reward_tracks
        self.scopes: tuple[tuple[Owner, CallFrame | None], ...] = below.scopes
        self.captures: tuple[object, ...] = below.captures  # what they are, only the room above knows
        field, value = change
        setattr(self, field, _FOLDS[field](getattr(below, field), value))


class _Nothing:
    """The fields of no block at all."""

    __slots__ = ()
    phase = None
    deadline = None
    hooks = budgets = usages = reward_tracks = scopes = captures = ()


_NOTHING: Final = _Nothing()


def _replaced(_: object, new: object) -> object:
    """The inner block wins."""
    return new


def _appended(old: tuple[object, ...], new: object) -> tuple[object, ...]:
    """All blocks hold, outermost first."""
    return (*old, new)


def _joined(old: tuple[object, ...], new: tuple[object, ...]) -> tuple[object, ...]:
    """Several at once, outermost first; what is found twice stands once, at its first place."""
    fresh: list[object] = []
    for one in new:
        if not any(one is known for known in (*old, *fresh)):
            fresh.append(one)
    return (*old, *fresh)


_FOLDS: Final[Mapping[str, Callable[[Any, Any], Any]]] = {
    "phase": _replaced,
    "hooks": _joined,
    "deadline": earlier,
    "budgets": _appended,
    "usages": _appended,
    "reward_tracks": _appended,
    "scopes": _appended,
    "captures": _appended,
}

AMBIENT: ContextVar[Ambient | None] = ContextVar("synmod_ambient", default=None)
"""The record of the innermost block entered in this context; ask `ambient()`, for the block may have ended."""


def effective(record: Ambient | None) -> Ambient | None:
    """Give what of `record` still holds: itself while all its blocks are open, else one of the open ones."""
    one = record
    while one is not None:
        if not one.flag.live:
            return _of_live_blocks(record)
        one = one.parent
    return record


def _of_live_blocks(record: Ambient | None) -> Ambient | None:
    """Compute a record anew from those blocks below it that are still open."""
    open_blocks: list[Ambient] = []
    while record is not None:
        if record.flag.live:
            open_blocks.append(record)
        record = record.parent
    anew: Ambient | None = None
    for one in reversed(open_blocks):
        anew = Ambient(anew, one._change, one.flag)
    return anew


def ambient() -> Ambient | None:
    """Give what the open blocks around this place say, None where there are none. Hot: one read and a check."""
    record = AMBIENT.get()
    return None if record is None else effective(record)


class Entered(NamedTuple):
    """One entry of a block: its record, and the token that takes it back."""

    record: Ambient
    token: Token[Ambient | None]


def enter(field: str, value: object) -> Entered:
    """Let a block begin here: `value` joins `field` of what holds."""
    record = Ambient(ambient(), (field, value), Flag())
    return Entered(record, AMBIENT.set(record))


def leave(entered: Entered, *, keep: bool = False) -> None:
    """Let a block end, wherever this is called; `keep` says that it goes on to hold for tasks that outlive it.

    In another context than that of the entry nothing is set back: the flag alone ends the block.
    """
    record, token = entered
    record.flag.live = keep
    if AMBIENT.get() is record:
        reset(AMBIENT, token)
    left = AMBIENT.get()
    if left is not None and (held := effective(left)) is not left:  # blocks were left out of order
        AMBIENT.set(held)  # says the same, and forgets what has ended


def reset(variable: ContextVar[Any], token: Token[Any]) -> None:
    """Set a ContextVar back; in another context than that of the token this does nothing."""
    try:
        variable.reset(token)
    except ValueError:
        pass


class Block:
    """A `with` block that adds one value to one field; may be entered again, and by several tasks at once."""

    __slots__ = ("_entries", "_field", "_value")

    def __init__(self, field: str, value: object) -> None:
        self._field = field
        self._value = value
        self._entries: list[Entered] = []

    def __enter__(self) -> None:
        self._entries.append(enter(self._field, self._value))

    def __exit__(self, *_: object) -> None:
        leave(take_entry(self._entries, lambda entry: entry.record))


def take_entry(entries: list[T], record_of: Callable[[T], Ambient]) -> T:
    """Take out the entry that was made in this context, else the last one: tasks may share one block object."""
    if len(entries) > 1:
        for record in _chain(AMBIENT.get()):
            for index, entry in enumerate(entries):
                if record_of(entry) is record:
                    return entries.pop(index)
    return entries.pop()


def _chain(record: Ambient | None) -> Iterator[Ambient]:
    """Go from a record outwards."""
    while record is not None:
        yield record
        record = record.parent
