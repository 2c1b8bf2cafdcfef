"""What surrounds running code: the open blocks, in the ContextVar AMBIENT, and the running call, in FRAME.

A block (a phase, a deadline, hooks, budgets, sums) adds a record that points to the record of the block around it, and
shares only entries with it. A task that outlives a block still has its record; the entry is no longer live, and the
record is then computed again from the live ones.

Every module call makes one frame, sets it and resets it, so a nested frame is nine slots and no work; its id and path
are computed when they are read.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from time import perf_counter
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol, TypeAlias

from synmod.leaves import aio, new_run_id, reset, with_label

from .usage import NO_USAGE, Usage, UsageMeter, check_phase

if TYPE_CHECKING:
    from synmod.journal import Part
    from synmod.skip.lane import Lane

    from .hooks import Hook

# -- blocks ------------------------------------------------------------------------------------------------------------


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
        journal: The part of a journal that belongs to this code, None outside of runs and durable blocks.
        hooks, budgets, usages, reward_tracks, scopes, captures, injected, readers, answers: What each block added,
            outermost first.
    """

    phase: str | None = None
    deadline: Any = None
    journal: Part | None = None
    hooks: tuple[Any, ...] = ()
    budgets: tuple[Any, ...] = ()
    usages: tuple[Any, ...] = ()
    reward_tracks: tuple[Any, ...] = ()
    scopes: tuple[Any, ...] = ()
    captures: tuple[Any, ...] = ()
    injected: tuple[Any, ...] = ()
    readers: tuple[Any, ...] = ()
    answers: tuple[Any, ...] = ()

    def __init__(self, parent: Ambient | None, entry: BlockEntry) -> None:
        if parent is not None:
            vars(self).update(vars(parent))
        self.parent = parent
        self.entry = entry
        for name, value in entry.adds.items():
            setattr(self, name, _JOINS.get(name, _append)(getattr(self, name), value))


def _append(old: tuple[Any, ...], new: object) -> tuple[Any, ...]:
    """Return the values of all blocks, outermost first."""
    return (*old, new)


def _earlier(old: Any, new: Any) -> Any:
    """Return the earlier deadline; the outer one if both come at the same time."""
    return new if old is None or new.remaining() < old.remaining() else old


def _join_distinct(old: tuple[Any, ...], new: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the values of all blocks, outermost first, each once, at its first place."""
    distinct = list(old)
    for value in new:
        if not any(value is earlier for earlier in distinct):
            distinct.append(value)
    return tuple(distinct)


_JOINS: Final[Mapping[str, Callable[[Any, Any], Any]]] = {
    "phase": lambda _, inner: inner,
    "journal": lambda _, inner: inner,
    "deadline": _earlier,
    "hooks": _join_distinct,
}
"""How a new value joins its field; fields not named here append."""


NO_BLOCKS: Final = Ambient(None, BlockEntry({}))
"""The record of code outside of all blocks."""

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


def ambient() -> Ambient:
    """Return the values of the open blocks around this place. Hot: one read and a check."""
    return effective(AMBIENT.get()) or NO_BLOCKS


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
        AMBIENT.set(Ambient(effective(AMBIENT.get()), entry))

    def entry(self) -> BlockEntry:
        """Return the entry that was made in this context, else the last one (a generator may be closed elsewhere)."""
        record = AMBIENT.get()
        while record is not None and record.entry not in self._entries:
            record = record.parent
        return self._entries[-1] if record is None else record.entry

    def leave(self, *, keep: bool = False) -> None:
        """End the block here; with `keep` it still applies to tasks that outlive it.

        In a context other than that of the entry nothing is reset: the flag of the entry alone ends the block.
        """
        entry = self.entry()
        self._entries.remove(entry)
        entry.live = False
        AMBIENT.set(effective(AMBIENT.get()))
        entry.live = keep

    def __exit__(self, *_: object) -> None:
        self.leave()


class SameBlock(Block):
    """Base of the blocks that add the same at each entry.

    Args:
        **adds: What the block adds, by field.
    """

    def __init__(self, **adds: object) -> None:
        super().__init__()
        self._adds = adds

    def __enter__(self) -> None:
        self.enter(**self._adds)


class phase(SameBlock):  # noqa: N801  # read as a word: `with sm.phase("reward"):`
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
        super().__init__(phase=check_phase(name))


# -- frames ------------------------------------------------------------------------------------------------------------

_FIRST_USE: Final = aio.lock()  # held while a run gets its id or its meter; re-entrant because of the collector

Reward: TypeAlias = tuple[str, str | None, float]
"""Path of the module, name of the reward or None, value."""


class RewardOfCall(NamedTuple):
    """A reward, the number of the call that gave it, and the numbers of this call and those above it."""

    call: int
    lineage: frozenset[int]
    reward: Reward


class Owner(Protocol):
    """The module of a frame, as far as this room knows it.

    Attributes:
        recorded: Its last entry call as a trace recorded it, for display.
        hooks: Its own hooks, in the order added.
    """

    recorded: Any
    hooks: tuple[Any, ...]

    @property
    def name(self) -> str:
        """Its label."""
        ...

    @property
    def training_default(self) -> bool:
        """The training mode of a call if nothing else decides it."""
        ...


class CallRun:
    """An entry call with all calls below it: what they share.

    Attributes:
        paths: The path of each known module, by its id; the module room sets it as the entry call begins.
        numbers: The numbers of the calls to come, counted from 0 by their starts.
        started: The `perf_counter` of the begin of the entry call.
        all_rewards: The rewards so far, in the order in which they were given.
        failed_calls: Numbers of the calls that failed, whose rewards no longer count.
    """

    __slots__ = ("_id", "_meter", "all_rewards", "failed_calls", "numbers", "paths", "started")

    def __init__(self) -> None:
        self.paths: Mapping[int, str] = {}
        self.numbers = itertools.count()
        self.started = perf_counter()
        self.all_rewards: list[RewardOfCall] = []
        self.failed_calls: set[int] = set()
        self._id: str | None = None
        self._meter: UsageMeter | None = None

    @property
    def id(self) -> str:
        """The text that begins the ids of all calls of this run, made when it is first needed."""
        if self._id is None:
            with _FIRST_USE:
                self._id = self._id or new_run_id()
        return self._id

    @property
    def meter(self) -> UsageMeter:
        """The meter that sums the usage of this run, made when it is first needed."""
        if self._meter is None:
            with _FIRST_USE:
                self._meter = self._meter or UsageMeter()
        return self._meter

    @property
    def usage(self) -> Usage:
        """What the model calls used so far."""
        return NO_USAGE if self._meter is None else self._meter.total()

    def add_reward(self, frame: CallFrame, reward: Reward) -> None:
        """Keep a reward that a call has given until the run ends."""
        lineage, ancestor = [frame.number], frame.parent
        while ancestor is not None:
            lineage.append(ancestor.number)
            ancestor = ancestor.parent
        self.all_rewards.append(RewardOfCall(frame.number, frozenset(lineage), reward))

    def rewards(self) -> list[RewardOfCall]:
        """Return the rewards so far by the start of the calls, without those of failed calls."""
        valid = [reward for reward in list(self.all_rewards) if self.failed_calls.isdisjoint(reward.lineage)]
        return sorted(valid, key=lambda reward: reward.call)


class CallFrame:
    """One running module call, with a reference to the one that calls it; what users read of it is read-only.

    `new_frame` makes it: a constructor would cost as much again.

    Attributes:
        run: The values that all calls below one entry call share.
        owner: The module.
        number: Which call of its run this is, counted from 0 by their starts.
        decided_training: The training mode decided for this call or a call above, None where none is decided.
        live: Whether the call still runs; cleared by the code that runs it.
        layer: The values that travel past the call (skip connections), None without skips.

    Source: trace spans, Synalinks' call context; differs: never shared between siblings.
    """

    __slots__ = ("_parent", "_phase", "_symbolic", "decided_training", "layer", "live", "number", "owner", "run")

    run: CallRun
    owner: Owner
    number: int
    decided_training: bool | None
    live: bool
    layer: Lane | None
    _parent: CallFrame | None
    _phase: str
    _symbolic: bool

    @property
    def id(self) -> str:
        """A short text, unique among the calls of all processes: the run's id and the number of the call in it."""
        return f"{self.run.id}-{self.number}"

    @property
    def parent(self) -> CallFrame | None:
        """The frame of the calling module, None for an entry call."""
        return self._parent

    @property
    def parent_id(self) -> str | None:
        """The id of the calling frame, None for an entry call."""
        return None if self._parent is None else self._parent.id

    @property
    def root(self) -> CallFrame:
        """The frame of the entry call."""
        frame = self
        while frame._parent is not None:
            frame = frame._parent
        return frame

    @property
    def path(self) -> str:
        """The path of the module below the entry module; if it has none, the caller's path and its own name."""
        path = self.run.paths.get(id(self.owner))
        if path is not None or self._parent is None:
            return path or ""
        return f"{self._parent.path}/{self.name}".lstrip("/")

    @property
    def name(self) -> str:
        """The label of the module."""
        return self.owner.name

    @property
    def phase(self) -> str:
        """`inference`, `reward` or `optimizer`: the phase in which the call began."""
        return self._phase

    @property
    def symbolic(self) -> bool:
        """Whether the call runs on symbols, to infer schemas."""
        return self._symbolic

    @property
    def training(self) -> bool:
        """Whether the call runs in training mode."""
        return self.owner.training_default if self.decided_training is None else self.decided_training

    @property
    def depth(self) -> int:
        """How many calls are above: 0 for an entry call."""
        return 0 if self._parent is None else self._parent.depth + 1

    @property
    def usage(self) -> Usage:
        """What the model calls of the whole run used so far."""
        return self.run.usage

    @property
    def rewards(self) -> tuple[Reward, ...]:
        """The rewards of the whole run so far: (path, name, value), by the start of the calls."""
        return tuple([reward.reward for reward in self.run.rewards()])

    def innermost_of(self, owner: Owner) -> CallFrame | None:
        """Return the innermost running call of a module, from this one up, or None."""
        frame: CallFrame | None = self
        while frame is not None and frame.owner is not owner:
            frame = frame._parent
        return frame

    def path_of(self, owner: Owner) -> str:
        """Return the path of a module below the entry module of this call."""
        path = self.run.paths.get(id(owner))
        if path is not None:
            return path
        running = self.innermost_of(owner)
        return f"{self.path}/{owner.name}".lstrip("/") if running is None else running.path

    def __repr__(self) -> str:
        return f"CallFrame(id={self.id!r}, path={self.path!r}, phase={self.phase!r}, training={self.training})"


_make: Final = object.__new__

FRAME: ContextVar[CallFrame | None] = ContextVar("synmod_frame", default=None)
"""The innermost frame entered in this context; its call may have ended, so use `current_call`."""


def new_frame(
    owner: Owner, around: Ambient | None, training: bool | None, own_training: bool | None, symbolic: bool = False
) -> CallFrame:
    """Return the frame of a call that begins here, below the running call. Hot.

    Args:
        owner: The module.
        around: The open blocks, from `ambient()`.
        training: The training mode that the caller decided; None takes the one of the running call.
        own_training: The training mode of the module where no call has decided one.
        symbolic: Whether the call runs on symbols; calls below one that does are symbolic, too.
    """
    frame, parent = _make(CallFrame), FRAME.get()
    if parent is not None and not parent.live:
        parent = nearest_live(parent)
    frame._phase = (None if around is None else around.phase) or ("inference" if parent is None else parent._phase)
    frame.run = run = CallRun() if parent is None else parent.run
    if training is None and parent is not None:
        training = parent.decided_training
    frame.decided_training = own_training if training is None else training
    frame.number = next(run.numbers)
    frame._symbolic = symbolic or (parent is not None and parent._symbolic)
    frame._parent = parent
    frame.owner = owner
    frame.live = True
    frame.layer = None
    return frame


def nearest_live(frame: CallFrame | None) -> CallFrame | None:
    """Return the nearest frame, from this one up, whose call still runs."""
    while frame is not None and not frame.live:
        frame = frame._parent
    return frame


def current_call() -> CallFrame | None:
    """Return the frame of the running module call.

    Returns:
        The nearest frame whose call still runs, None outside module calls.

    Example:
        >>> current_call() is None
        True

    Source: Synalinks' call context, trio's current task.
    """
    return nearest_live(FRAME.get())


class as_children_of:  # noqa: N801  # read as a word: `with as_children_of(frame):`
    """Make the calls of a block children of a call that has ended, such as a reward's calls of the one it judges.

    Hot: a class takes a third of the time of a generator.
    """

    __slots__ = ("_frame", "_mode", "_token")

    def __init__(self, frame: CallFrame | None) -> None:
        self._frame = frame  # None where no call was made: the input was None

    def __enter__(self) -> None:
        if (frame := self._frame) is not None:
            self._mode, frame.decided_training = frame.decided_training, None  # these calls have a mode of their own
            frame.live, self._token = True, FRAME.set(frame)

    def __exit__(self, *_: object) -> None:
        if (frame := self._frame) is not None:
            frame.live, frame.layer, frame.decided_training = False, None, self._mode
            reset(FRAME, self._token)


def phase_in(record: Ambient, frame: CallFrame | None) -> str:
    """Return the phase in which a call below `frame` begins: that of a block, else the one that `frame` began in."""
    return record.phase or ("inference" if frame is None else frame.phase)


def current_phase() -> str:
    """Return the phase in which a call would begin here.

    Returns:
        `"inference"`, `"reward"` or `"optimizer"`.

    Example:
        >>> current_phase()
        'inference'

    Source: Synalinks' phases.
    """
    return phase_in(ambient(), current_call())


IN_A_HOOK: ContextVar[bool] = ContextVar("synmod_in_a_hook", default=False)
"""Whether the running code is a method of a hook, whose own calls notify no one."""


def hooks_for(record: Ambient | None, own: tuple[Hook, ...]) -> tuple[Hook, ...]:
    """Return the listeners of a call or build: the hooks of the blocks, then those of the module, each once.

    Args:
        record: The open blocks, from `ambient()`.
        own: The hooks of the module.
    """
    of_blocks: tuple[Hook, ...] = () if record is None else record.hooks
    if not (of_blocks or own) or IN_A_HOOK.get():
        return ()
    return _join_distinct(of_blocks, own) if own else of_blocks


def hooks_inside(record: Ambient, frame: CallFrame | None) -> tuple[Hook, ...]:
    """Return the listeners of events inside the call of `frame`, with those of the modules above, outermost first."""
    own: tuple[Hook, ...] = ()
    while frame is not None:
        if frame.owner.hooks:
            own = (*frame.owner.hooks, *own)
        frame = frame.parent
    return hooks_for(record, own)


class NameScope(Block):
    """Add the name of a module to the scope of a block: a label without effect.

    Args:
        owner: The module; its name is not repeated if its scope is the innermost already.

    Source: tf.name_scope; differs: a label only, never a key.
    """

    def __init__(self, owner: Owner) -> None:
        super().__init__()
        self._owner = owner

    def __enter__(self) -> None:
        self.enter(scopes=(self._owner, current_call()))


def current_scope() -> str:
    """Return the names of the calls and name scopes around this place.

    Returns:
        Names joined by `/`, the outermost first; `""` outside.

    Example:
        >>> current_scope()
        ''

    Source: tf.name_scope.
    """
    record, frame = ambient(), current_call()
    scopes: tuple[tuple[Owner, CallFrame | None], ...] = record.scopes
    owners: list[Owner] = []  # innermost first
    while True:
        owners += [owner for owner, opened_in in reversed(scopes) if opened_in is frame]
        if frame is None:
            break
        owners.append(frame.owner)
        frame = frame.parent
    owners.reverse()
    return "/".join(owner.name for at, owner in enumerate(owners) if not at or owner is not owners[at - 1])


def place_name(where: CallFrame | str | None = None) -> str:
    """Return the name of a place for an error: its path, the name of an entry call, "" outside of calls."""
    if isinstance(where, str) and where:
        return where
    frame = where if isinstance(where, CallFrame) else current_call()
    return "" if frame is None else with_label(frame.path, frame.name)
