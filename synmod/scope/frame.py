"""Frames: what is true while one call runs, in one ContextVar.

This file is hot: every module call makes one frame, sets it and resets it. So a nested frame is nine slots and no
work; id, path, name and depth are computed when they are read.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterator, Mapping
from contextvars import ContextVar
from time import perf_counter
from typing import Any, Final, NamedTuple, Protocol, TypeAlias

from synmod.data import RECORDERS
from synmod.leaves.names import new_run_id

from .ambient import AMBIENT, Ambient, Block, ambient, effective
from .events import Hook
from .usage import NO_USAGE, Usage, UsageMeter

_NO_PATHS: Final[Mapping[int, str]] = {}
_FIRST_USE: Final = threading.RLock()  # held where a run gets its id or its meter; re-entrant, also for the collector

Reward: TypeAlias = tuple[str, str | None, float]
"""Path of the module, name of the reward or None, value."""


class GivenReward(NamedTuple):
    """A reward, the number of the call that gave it, and the numbers of this call and those above it."""

    call: int
    lineage: frozenset[int]
    reward: Reward


class Owner(Protocol):
    """What a frame knows of the module whose call it is.

    Attributes:
        recorded: Its last entry call as a trace recorded it, so that the module can be shown with it.
    """

    recorded: Any

    @property
    def name(self) -> str:
        """Its label."""
        ...

    @property
    def training_default(self) -> bool:
        """The training mode of a call where nothing else decides one."""
        ...

    @property
    def hooks(self) -> tuple[Hook, ...]:
        """Its own hooks, in the order added."""
        ...


class CallLayer(Protocol):
    """The values that travel past a call (see the skip room); notified of how the call ends."""

    def commit(self) -> None:
        """Hand everything to the calling module: the call returned."""
        ...

    def drop(self) -> None:
        """Leave everything as it was: the call failed."""
        ...

    def close(self) -> None:
        """Note that the entry call returned."""
        ...

    def left(self) -> Mapping[Any, Any] | None:
        """Return what a call on symbols leaves beside its outputs, None for nothing."""
        ...


class CallFrame:
    """One running module call: frozen, pointing at its parent.

    Attributes:
        owner: What the frame knows of the module.
        live: Whether the call still runs; cleared by the code that runs it.
        layer: The values that travel past the call (skip connections), None where there are none.

    Source: trace spans, Synalinks' call context; differs: never mutated, never shared between siblings.
    """

    __slots__ = ("_number", "_parent", "_phase", "_root", "_symbolic", "_training", "layer", "live", "owner")
    _root: RootFrame

    def __init__(self, parent: CallFrame, owner: Owner, training: bool | None, phase: str, symbolic: bool) -> None:
        self._parent: CallFrame | None = parent
        root: Any = parent._root or parent  # only a root has none
        self._root = root
        self.owner = owner
        self._training = training
        self._phase = phase
        self._symbolic = symbolic
        self._number: int = next(root._numbers)
        self.live = True
        self.layer: CallLayer | None = None

    @property
    def id(self) -> str:
        """A short text, unique among the calls of all processes: the run's id and the number of the call in it."""
        root: RootFrame = self._root or self  # pyright: ignore[reportAssignmentType]  # hot: only a root has none
        return f"{root._run_id or root.run_id}-{self._number}"

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
        """Where the module stands below the entry module; where it stands nowhere, the caller's path and its name."""
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
    def number(self) -> int:
        """Which call of its run this is, counted from 0 by their starts."""
        return self._number

    @property
    def phase(self) -> str:
        """`inference`, `reward` or `optimizer`: the phase in which the call began."""
        return self._phase

    @property
    def training(self) -> bool:
        """Whether the call runs in training mode."""
        return self.owner.training_default if self._training is None else self._training

    @property
    def decided_training(self) -> bool | None:
        """The mode decided for this call or by a call above, None where nothing decided one."""
        return self._training

    @property
    def depth(self) -> int:
        """How many calls stand above: 0 for an entry call."""
        depth, frame = 0, self._parent
        while frame is not None:
            depth, frame = depth + 1, frame._parent
        return depth

    @property
    def symbolic(self) -> bool:
        """Whether the call runs on symbols, to find out schemas."""
        return self._symbolic

    @property
    def usage(self) -> Usage:
        """What the model calls of the whole run used so far."""
        meter = self.root._meter
        return NO_USAGE if meter is None else meter.total()

    @property
    def rewards(self) -> tuple[Reward, ...]:
        """The rewards of the whole run so far: (path, name, value), by the start of the calls."""
        return tuple(given.reward for given in self.kept_rewards())

    def kept_rewards(self) -> list[GivenReward]:
        """Return the rewards of the whole run so far, those of failed calls left out."""
        root = self.root
        kept = [given for given in list(root.given_rewards) if root.failed_calls.isdisjoint(given.lineage)]
        return sorted(kept, key=lambda given: given.call)

    def __repr__(self) -> str:
        return f"CallFrame(id={self.id!r}, path={self.path!r}, phase={self.phase!r}, training={self.training})"


class RootFrame(CallFrame):
    """The frame of an entry call; carries what belongs to the whole run.

    Attributes:
        paths: The path of each known module, by its id; the module room hands it in with the entry call.
        started: The `perf_counter` of its begin.
        given_rewards: The rewards given so far, in the order in which they were given.
        failed_calls: Numbers of the calls that failed, whose rewards no longer count.
    """

    __slots__ = ("_meter", "_numbers", "_run_id", "failed_calls", "given_rewards", "paths", "started")

    def __init__(  # pyright: ignore[reportMissingSuperCall]  # an entry frame has no parent to take its root from
        self, owner: Owner, training: bool | None, phase: str, symbolic: bool, paths: Mapping[int, str] = _NO_PATHS
    ) -> None:
        self._parent = None
        self._root: Any = None  # not itself, so that reference counting frees it
        self.owner = owner
        self._training = training
        self._phase = phase
        self._symbolic = symbolic
        self._numbers: Iterator[int] = itertools.count(1)
        self._number = 0
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

    @property
    def run_id(self) -> str:
        """The text with which the ids of all calls of this run begin."""
        if self._run_id is None:
            with _FIRST_USE:
                self._run_id = self._run_id or new_run_id()
        return self._run_id

    @property
    def meter(self) -> UsageMeter:
        """What sums the usage of this run."""
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


def phase_in(record: Ambient | None, frame: CallFrame | None) -> str:
    """Return the phase in which a call below `frame` begins; a call outlives the block it was begun in."""
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


def open_meters(frame: CallFrame | None) -> tuple[UsageMeter, ...]:
    """Return the meters that a model call begun here counts into: take them at its begin, add to them at its end.

    Args:
        frame: The running module call; its run measures too.
    """
    record = ambient()
    of_blocks: tuple[UsageMeter, ...] = () if record is None else record.usages
    return of_blocks if frame is None else (*of_blocks, frame.root.meter)


class NameScope(Block):
    """Add the name of a module to the scope of a block: a label, which decides nothing.

    Args:
        owner: The module. Where its scope is innermost already, nothing is added.

    Source: tf.name_scope; differs: a label only, never a key.
    """

    field = "scopes"

    def __init__(self, owner: Owner) -> None:
        super().__init__()
        self._owner = owner

    def __enter__(self) -> None:
        self.enter((self._owner, current_call()))


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
    while frame is not None:
        owners += [owner for owner, opened_in in reversed(scopes) if opened_in is frame]
        owners.append(frame.owner)
        frame = frame.parent
    owners += [owner for owner, opened_in in reversed(scopes) if opened_in is None]
    owners.reverse()
    return "/".join(owner.name for at, owner in enumerate(owners) if not at or owner is not owners[at - 1])


def place_name(where: CallFrame | str | None = None) -> str:
    """Return the name of a place for an error: its path, the name of an entry call, "" outside of calls."""
    if isinstance(where, str) and where:
        return where
    frame = where if isinstance(where, CallFrame) else current_call()
    return "" if frame is None else frame.path or frame.name


RECORDERS["path"] = place_name  # errors of symbols and operators name the module that runs or is traced
