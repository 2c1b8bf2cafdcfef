"""Frames, blocks and counts: what is true while one call runs, in two ContextVars.

FRAME is the running call: id, path, name, phase. Every module call makes one frame, sets it and resets it, so a nested
frame is nine slots and no work; its id and path are computed when they are read.

AMBIENT is what the open `with` blocks provide: phase, deadline, hooks, budgets and sums. Each block adds a record that
points to the record of the block around it, and shares only entries with it. A task that outlives a block still has its
record; the entry is no longer live, and the record is then computed again from the live ones.

Usage of model calls and counts of module calls are frozen records and their running sums per phase.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar, Token
from dataclasses import dataclass
from time import perf_counter
from typing import Any, Final, Generic, NamedTuple, Protocol, Self, TypeAlias, TypeVar

from synmod import errors
from synmod.leaves import aio, did_you_mean, new_run_id, with_label

PHASES: Final = ("inference", "reward", "optimizer")


def check_phase(name: object) -> str:
    """Return `name` if it is a phase.

    Raises:
        CallError: It is not.
    """
    if isinstance(name, str) and name in PHASES:
        return name
    raise errors.CallError(
        f"unknown phase {name!r}: write one of {', '.join(map(repr, PHASES))}.{did_you_mean(name, PHASES)}"
    )


class _Summed(Protocol):
    """A record that can be added to others of its class."""

    def __add__(self, other: Self, /) -> Self: ...


R = TypeVar("R", bound=_Summed)


@dataclass(frozen=True)
class Usage:
    """What one model call, or a sum of them, used.

    Attributes:
        calls: Model calls.
        requests: Requests that were sent.
        prompt_tokens: Tokens read.
        completion_tokens: Tokens written.
        cached_tokens: Prompt tokens that the provider read from its cache.
        reasoning_tokens: Completion tokens that were reasoning.
        cost_usd: Cost in US dollars, None where no price is known; a sum adds the known costs.
        estimated: Whether a part of it is estimated.

    Example:
        >>> (Usage(calls=1, prompt_tokens=3) + Usage(calls=1, prompt_tokens=4)).prompt_tokens
        7

    Source: chat-completions usage.
    """

    calls: int = 0
    requests: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_tokens: int = 0
    reasoning_tokens: int = 0
    cost_usd: float | None = 0.0
    estimated: bool = False

    def __add__(self, other: Usage) -> Usage:
        costs = [usage.cost_usd for usage in (self, other) if usage.calls or usage.cost_usd]
        known = [cost for cost in costs if cost is not None]
        return Usage(
            self.calls + other.calls,
            self.requests + other.requests,
            self.prompt_tokens + other.prompt_tokens,
            self.completion_tokens + other.completion_tokens,
            self.cached_tokens + other.cached_tokens,
            self.reasoning_tokens + other.reasoning_tokens,
            None if costs and not known else sum(known, 0.0),  # None where calls were made, and no price is known
            self.estimated or other.estimated,
        )


class PerPhase(Generic[R]):
    """Running sums of frozen records, one per phase, exact under any number of tasks and threads.

    `sums["reward"]` is the sum of one phase; an attribute is that field of the sum of all three.

    Source: Synalinks' cumulated counters; differs: one record per phase, not one attribute per phase and count.
    """

    __slots__ = ("_by_phase", "_lock", "_zero")

    def __init__(self, zero: R) -> None:
        self._lock = threading.RLock()  # re-entrant: the collector may close a coroutine in here, which ends a call
        self._zero = zero
        self._by_phase: dict[str, R] = {}

    def add(self, record: R, phase: str) -> None:
        """Add a record to the sum of a phase."""
        with self._lock:
            known = self._by_phase.get(phase)
            self._by_phase[phase] = record if known is None else known + record

    def total(self) -> R:
        """Return the sum of all phases at one moment."""
        return sum(list(self._by_phase.values()), self._zero)

    def __getitem__(self, phase: str) -> R:
        """Return the sum of one phase.

        Raises:
            CallError: There is no such phase.
        """
        return self._by_phase.get(check_phase(phase), self._zero)

    def __getattr__(self, name: str) -> Any:
        """Return one field of the sum of all phases."""
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self.total(), name)

    def __repr__(self) -> str:
        return repr(self.total()).replace(type(self._zero).__name__, type(self).__name__, 1)


class UsageMeter(PerPhase[Usage]):
    """A running sum of usage with the fields of `Usage`.

    Example:
        >>> meter = UsageMeter()
        >>> meter.add(Usage(calls=1), "reward")
        >>> meter.calls, meter["reward"].calls, meter["inference"].calls
        (1, 1, 0)
    """

    __slots__ = ()
    calls: int
    requests: int
    prompt_tokens: int
    completion_tokens: int
    cached_tokens: int
    reasoning_tokens: int
    cost_usd: float | None
    estimated: bool

    def __init__(self) -> None:
        super().__init__(NO_USAGE)


NO_USAGE: Final = Usage()


@dataclass(frozen=True, slots=True)
class PhaseCounters:
    """The entry calls of one phase.

    Attributes:
        invocations: Those that returned or failed; `invocations - failed` succeeded.
        elapsed_s: Their wall seconds.
        failed: Those that failed.
        cancelled: Those that were cancelled or closed; they are not counted as invocations.
    """

    invocations: int = 0
    elapsed_s: float = 0.0
    failed: int = 0
    cancelled: int = 0

    def __add__(self, other: PhaseCounters) -> PhaseCounters:
        return PhaseCounters(
            self.invocations + other.invocations,
            self.elapsed_s + other.elapsed_s,
            self.failed + other.failed,
            self.cancelled + other.cancelled,
        )


class CallCounters(PerPhase[PhaseCounters]):
    """What a module counts of its own calls; read-only for users.

    Entry calls cost one lock each, calls below another call none.

    Attributes:
        invocations, elapsed_s, failed, cancelled: Sums over all phases; `counters["reward"]` has those of one phase.

    Example:
        >>> counters = CallCounters()
        >>> counters.count_entry("reward", 0.5, failed=True)
        >>> counters.failed, counters["reward"].invocations, counters.invocations
        (1, 1, 1)
    """

    __slots__ = ("_nested", "count_nested")
    invocations: int
    elapsed_s: float
    failed: int
    cancelled: int

    def __init__(self) -> None:
        super().__init__(_NO_CALLS)
        self._nested = itertools.count()
        self.count_nested = self._nested.__next__  # hot, and atomic: it needs no lock

    def count_entry(self, phase: str, elapsed_s: float, *, failed: bool = False) -> None:
        """Count an entry call that returned or failed."""
        with self._lock:
            known = self._by_phase.get(phase, self._zero)
            self._by_phase[phase] = PhaseCounters(
                known.invocations + 1, known.elapsed_s + elapsed_s, known.failed + failed, known.cancelled
            )

    def count_cancelled(self, phase: str) -> None:
        """Count an entry call that was cancelled or closed."""
        self.add(PhaseCounters(cancelled=1), phase)

    @property
    def nested(self) -> int:
        """Calls below another call that returned or failed."""
        return int(repr(self._nested)[len("count(") : -1])  # the only way to read it without advancing it

    def __repr__(self) -> str:
        return f"{super().__repr__()[:-1]}, nested={self.nested})"


_NO_CALLS: Final = PhaseCounters()


# -- blocks ------------------------------------------------------------------------------------------------------------


class Entry:
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
        entry: What the innermost block added.
        phase: The phase, None where no block sets one.
        deadline: The earliest, None without one.
        hooks, budgets, usages, reward_tracks, scopes, captures: What each block added, outermost first.
    """

    __slots__ = (
        "budgets", "captures", "deadline", "entry", "hooks", "parent", "phase", "reward_tracks", "scopes", "usages"
    )  # fmt: skip

    def __init__(self, parent: Ambient | None, entry: Entry) -> None:
        self.parent = parent
        self.entry = entry
        if parent is None:
            self.phase: str | None = None
            self.deadline: Any = None
            self.hooks = self.budgets = self.usages = self.reward_tracks = self.scopes = self.captures = _NOTHING
        else:
            self.phase, self.deadline, self.hooks = parent.phase, parent.deadline, parent.hooks
            self.budgets, self.usages, self.reward_tracks = parent.budgets, parent.usages, parent.reward_tracks
            self.scopes, self.captures = parent.scopes, parent.captures
        for field, value in entry.adds.items():
            setattr(self, field, _JOINS.get(field, _append)(getattr(self, field), value))


_NOTHING: Final[tuple[Any, ...]] = ()


def _append(old: tuple[Any, ...], new: object) -> tuple[Any, ...]:
    """Return the values of all blocks, outermost first."""
    return (*old, new)


def _replace(_: object, new: object) -> object:
    """Return the value of the inner block."""
    return new


def _earlier(old: Any, new: Any) -> Any:
    """Return the earlier deadline; the outer one if both come at the same time."""
    return new if old is None or new.left() < old.left() else old


def join_distinct(old: tuple[Any, ...], new: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the values of all blocks, outermost first, each once, at its first place."""
    found = list(old)
    for one in new:
        if not any(one is known for known in found):
            found.append(one)
    return tuple(found)


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
    one = record
    while one is not None and one.entry.live:
        one = one.parent
    if one is None or record is None:
        return record
    around = effective(record.parent)
    return Ambient(around, record.entry) if record.entry.live else around


def ambient() -> Ambient | None:
    """Return what the open blocks around this place provide, None where there are none. Hot: one read and a check."""
    record = AMBIENT.get()
    return None if record is None else effective(record)


class Block:
    """Base of the `with` blocks that add to fields; one may be entered again, and by several tasks at once.

    A subclass calls `enter(field=value)` in `__enter__`.
    """

    def __init__(self) -> None:
        self._entries: list[Entry] = []

    def enter(self, **adds: object) -> None:
        """Begin the block here: each value joins its field in the record of the open blocks."""
        entry = Entry(adds)
        self._entries.append(entry)
        AMBIENT.set(Ambient(ambient(), entry))

    def entry(self) -> Entry:
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


def reset(variable: ContextVar[Any], token: Token[Any]) -> None:
    """Reset a ContextVar; do nothing in a context other than that of the token."""
    try:
        variable.reset(token)
    except ValueError:
        pass


class phase(Block):  # noqa: N801  # read as a word: `with sm.phase("reward"):`
    """Run the calls of a block in a phase.

    Args:
        name: `"inference"` (the phase without a block), `"reward"` or `"optimizer"`.

    Raises:
        CallError: There is no such phase.

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


# -- frames ------------------------------------------------------------------------------------------------------------

_NO_PATHS: Final[Mapping[int, str]] = {}
_FIRST_USE: Final = aio.lock()  # held while a run gets its id or its meter; re-entrant because of the collector

Reward: TypeAlias = tuple[str, str | None, float]
"""Path of the module, name of the reward or None, value."""


class GivenReward(NamedTuple):
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


class CallLayer(Protocol):
    """The values that travel past a call (see the skip room); notified of how the call ends."""

    def commit(self) -> None:
        """Pass everything to the calling module: the call returned."""

    def drop(self) -> None:
        """Leave everything as it was: the call failed."""

    def close(self) -> None:
        """Note that the entry call returned."""

    def left(self) -> Mapping[Any, Any] | None:
        """Return what a call on symbols leaves in addition to its outputs, None for nothing."""


class CallFrame:
    """One running module call: frozen, with a reference to its parent.

    Attributes:
        owner: The module.
        live: Whether the call still runs; cleared by the code that runs it.
        layer: The values that travel past the call (skip connections), None where there are none.
        number: Which call of its run this is, counted from 0 by their starts.
        decided_training: The training mode decided for this call or a call above, None where none is decided.

    Source: trace spans, Synalinks' call context; differs: never mutated, never shared between siblings.
    """

    __slots__ = ("_parent", "_phase", "_root", "_symbolic", "decided_training", "layer", "live", "number", "owner")
    _root: RootFrame

    def __init__(self, parent: CallFrame, owner: Owner, training: bool | None, phase: str, symbolic: bool) -> None:
        self._parent: CallFrame | None = parent
        root: Any = parent._root or parent  # only a root has none
        self._root = root
        self.owner = owner
        self.decided_training = training
        self._phase = phase
        self._symbolic = symbolic
        self.number: int = next(root._numbers)
        self.live = True
        self.layer: CallLayer | None = None

    @property
    def id(self) -> str:
        """A short text, unique among the calls of all processes: the run's id and the number of the call in it."""
        root: RootFrame = self._root or self  # pyright: ignore[reportAssignmentType]  # hot: only a root has none
        return f"{root._run_id or root.run_id}-{self.number}"

    @property
    def parent(self) -> CallFrame | None:
        """The frame of the calling module, None for an entry call."""
        return self._parent

    @property
    def parent_id(self) -> str | None:
        """The id of the calling frame, None for an entry call."""
        return None if self._parent is None else self._parent.id

    @property
    def root(self) -> RootFrame:
        """The frame of the entry call."""
        return self._root

    @property
    def path(self) -> str:
        """The path of the module below the entry module; if it has none, the caller's path and its own name."""
        root: RootFrame = self._root or self  # pyright: ignore[reportAssignmentType]  # as in `id`
        known = root.paths.get(id(self.owner))
        if known is not None or self._parent is None:
            return known or ""
        above = self._parent.path
        return f"{above}/{self.name}" if above else self.name

    @property
    def name(self) -> str:
        """The label of the module."""
        return self.owner.name

    @property
    def phase(self) -> str:
        """`inference`, `reward` or `optimizer`: the phase in which the call began."""
        return self._phase

    @property
    def training(self) -> bool:
        """Whether the call runs in training mode."""
        return self.owner.training_default if self.decided_training is None else self.decided_training

    @property
    def depth(self) -> int:
        """How many calls are above: 0 for an entry call."""
        return 0 if self._parent is None else self._parent.depth + 1

    @property
    def symbolic(self) -> bool:
        """Whether the call runs on symbols, to infer schemas."""
        return self._symbolic

    @property
    def usage(self) -> Usage:
        """What the model calls of the whole run used so far."""
        meter = self.root._meter
        return NO_USAGE if meter is None else meter.total()

    @property
    def rewards(self) -> tuple[Reward, ...]:
        """The rewards of the whole run so far: (path, name, value), by the start of the calls."""
        return tuple([given.reward for given in self.kept_rewards()])

    def kept_rewards(self) -> list[GivenReward]:
        """Return the rewards of the whole run so far, without those of failed calls."""
        root = self.root
        if not root.given_rewards:
            return []
        kept = [given for given in list(root.given_rewards) if root.failed_calls.isdisjoint(given.lineage)]
        return sorted(kept, key=lambda given: given.call)

    def __repr__(self) -> str:
        return f"CallFrame(id={self.id!r}, path={self.path!r}, phase={self.phase!r}, training={self.training})"


class RootFrame(CallFrame):
    """The frame of an entry call; carries what belongs to the whole run.

    Attributes:
        paths: The path of each known module, by its id; the module room passes it with the entry call.
        started: The `perf_counter` of its begin.
        given_rewards: The rewards so far, in the order in which they were given.
        failed_calls: Numbers of the calls that failed, whose rewards no longer count.
    """

    __slots__ = ("_meter", "_numbers", "_run_id", "failed_calls", "given_rewards", "paths", "started")

    def __init__(  # pyright: ignore[reportMissingSuperCall]  # an entry frame has no parent to take its root from
        self, owner: Owner, training: bool | None, phase: str, symbolic: bool, paths: Mapping[int, str] = _NO_PATHS
    ) -> None:
        self._parent = None
        self._root: Any = None  # not itself, so that reference counting frees it
        self.owner = owner
        self.decided_training = training
        self._phase = phase
        self._symbolic = symbolic
        self._numbers: Iterator[int] = itertools.count(1)
        self.number = 0
        self.live = True
        self.layer = None
        self._run_id: str | None = None
        self.paths = paths
        self.started = perf_counter()
        self.given_rewards: list[GivenReward] = []
        self.failed_calls: set[int] = set()
        self._meter: UsageMeter | None = None

    @property
    def root(self) -> RootFrame:
        """Itself."""
        return self

    def keep_reward(self, giver: CallFrame, reward: Reward) -> None:
        """Keep a reward that a call has given until the run ends."""
        lineage, above = list[int](), giver
        while above is not None:
            lineage.append(above.number)
            above = above.parent
        self.given_rewards.append(GivenReward(giver.number, frozenset(lineage), reward))

    @property
    def run_id(self) -> str:
        """The text that begins the ids of all calls of this run."""
        if self._run_id is None:
            with _FIRST_USE:
                self._run_id = self._run_id or new_run_id()
        return self._run_id

    @property
    def meter(self) -> UsageMeter:
        """The meter that sums the usage of this run."""
        if self._meter is None:
            with _FIRST_USE:
                self._meter = self._meter or UsageMeter()
        return self._meter


FRAME: ContextVar[CallFrame | None] = ContextVar("synmod_frame", default=None)
"""The innermost frame entered in this context; its call may have ended, so use `current_call`."""


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


@contextmanager
def below(frame: CallFrame | None) -> Generator[None]:
    """Make the calls of a block children of a call that has ended, such as a reward's calls of the one it judges."""
    if frame is None:  # there was no call: None went in, and was handed on
        yield
        return
    mode, frame.decided_training = frame.decided_training, None  # these calls have a mode of their own
    frame.live, token = True, FRAME.set(frame)
    try:
        yield
    finally:
        frame.live, frame.layer, frame.decided_training = False, None, mode
        reset(FRAME, token)


def phase_in(record: Ambient | None, frame: CallFrame | None) -> str:
    """Return the phase in which a call below `frame` begins: that of a block, else the one that `frame` began in."""
    if record is not None and record.phase is not None:
        return record.phase
    return "inference" if frame is None else frame.phase


def current_phase() -> str:
    """Return the phase in which a call would begin here.

    Returns:
        `"inference"`, `"reward"` or `"optimizer"`.

    Example:
        >>> current_phase()
        'inference'

    Source: Synalinks' phases.
    """
    return phase_in(effective(AMBIENT.get()), current_call())


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
    scopes: tuple[tuple[Owner, CallFrame | None], ...] = () if record is None else record.scopes
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
