"""Frames: what is true while one call runs, in one ContextVar.

This file is hot: every module call makes one frame, sets it and resets it. So a nested frame is nine slots and no
work; id, path, name and depth are made when somebody asks.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterator, Mapping
from contextvars import ContextVar
from time import perf_counter
from typing import TYPE_CHECKING, Any, Final, Protocol

from synmod.data import RECORDERS
from synmod.leaves.names import new_run_id
from synmod.scope.ledger import Reward, RewardLedger
from synmod.scope.meter import UsageMeter
from synmod.scope.usage_record import Usage

if TYPE_CHECKING:
    from synmod.scope.events import Hook
    from synmod.scope.trace_views import TraceNode

_NO_PATHS: Mapping[int, str] = {}
_NO_USAGE: Final = Usage()
_FIRST_USE = threading.RLock()  # taken where a run gets its id, its meter or its ledger: once each, also in clean-up


class Owner(Protocol):
    """What a frame knows of the module whose call it is: its name, the hooks that are its own, its last recorded call.

    The last is written by a trace when the call ends, so that the module can be shown with it.
    """

    recorded: TraceNode | None

    @property
    def name(self) -> str:
        """Its label."""
        ...

    @property
    def training_default(self) -> bool:
        """The mode of a call of which nobody has said one."""
        ...

    @property
    def hooks(self) -> tuple[Hook, ...]:
        """Its own hooks, in the order added."""
        ...


class CallLayer(Protocol):
    """What goes past a call beside its value (see the skip room): told how the call ends."""

    def commit(self) -> None:
        """The call returned: hand everything to the calling module."""
        ...

    def drop(self) -> None:
        """The call failed: leave everything as it was."""
        ...

    def close(self) -> None:
        """The entry call has ended well."""
        ...

    def left(self) -> Mapping[Any, Any] | None:
        """What a call on symbols leaves beside its outputs, None for nothing."""
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
        return _NO_USAGE if meter is None else meter.total()

    @property
    def rewards(self) -> tuple[Reward, ...]:
        """The rewards of the whole run so far: (path, name, value), by the start of the calls."""
        ledger = self.root.ledger
        return () if ledger is None else ledger.rewards()

    def __repr__(self) -> str:
        return f"CallFrame(id={self.id!r}, path={self.path!r}, phase={self.phase!r}, training={self.training})"


class RootFrame(CallFrame):
    """The frame of an entry call; carries what belongs to the whole run.

    `paths` maps the id of each known module to its path; the module room hands it in with the entry call.
    """

    __slots__ = ("_meter", "_numbers", "_run_id", "ledger", "paths", "started")

    def __init__(  # pyright: ignore[reportMissingSuperCall]  # an entry frame has no parent to take its root from
        self, owner: Owner, training: bool | None, phase: str, symbolic: bool, paths: Mapping[int, str] = _NO_PATHS
    ) -> None:
        self._parent = None
        self._root: Any = None  # not itself: counting shall free it
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
        self.ledger: RewardLedger | None = None  # made by the first reward
        self._meter: UsageMeter | None = None  # made by the first model call

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

    def open_ledger(self) -> RewardLedger:
        """Give the rewards of this run, to be written."""
        if self.ledger is None:
            with _FIRST_USE:
                self.ledger = self.ledger or RewardLedger(self.started)
        return self.ledger


FRAME: ContextVar[CallFrame | None] = ContextVar("synmod_frame", default=None)
"""The innermost frame entered in this context; its call may have ended: ask `current_call`."""


def nearest_live(frame: CallFrame | None) -> CallFrame | None:
    """Step up to the first frame whose call still runs."""
    while frame is not None and not frame.live:
        frame = frame._parent
    return frame


def current_call() -> CallFrame | None:
    """Tell the frame of the running module call.

    Returns:
        The nearest frame whose call still runs, None outside module calls.

    Example:
        >>> current_call() is None
        True

    Source: Synalinks' call context, trio's current task.
    """
    return nearest_live(FRAME.get())


def place_name(where: CallFrame | str | None = None) -> str:
    """Name a place for an error: by its path; the entry call, whose path is empty, by its name; "" outside of calls."""
    if isinstance(where, str) and where:
        return where
    frame = where if isinstance(where, CallFrame) else current_call()
    return "" if frame is None else frame.path or frame.name


RECORDERS["path"] = place_name  # errors of symbols and operators name the module that runs or is traced
