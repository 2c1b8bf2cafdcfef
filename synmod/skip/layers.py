"""Layers: each call is a transaction on what its caller sees of the lane.

Commands act on the layer of their call. When the call returns, its layer goes into that of the calling module, at the
outermost level into the skip frame; when it fails, the layer is dropped with everything that calls below committed into
it. So what is tried again finds the lane as it was.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from synmod.errors import SkipError
from synmod.scope import notify_skip_dropped
from synmod.skip.namespace import Key, order_of, shown
from synmod.skip.slots import LOCK, TAKEN, Journal, Slot, Store, undo, write

if TYPE_CHECKING:
    from synmod.leaves.aio import Signal
    from synmod.module import DeclaredSkips
    from synmod.scope import CallFrame
    from synmod.skip.skip_frame import SkipFrame

_NONE: Final[Any] = {}  # never written to
_NO_JOURNAL: Final[Any] = []  # likewise
_NOTHING: Final = frozenset[Any]()


class Run:
    """What the layers of one entry call share."""

    __slots__ = ("running", "waits")

    def __init__(self) -> None:
        self.running: dict[Layer, None] = {}
        """The calls under way of modules that declare skips, or have such below them, by the time they began."""
        self.waits: dict[Layer, Layer] = {}
        """For each consumer that waits, the call that it waits for."""


class Layer:
    """What one call has done to the lane and not committed yet.

    Args:
        frame: The frame of the call.
        below: The layer that this one lies on, that of the calling module; None where it lies on the skip frame.
        base: The skip frame at the bottom.
        run: What it shares with the other layers of the entry call.
    """

    __slots__ = (
        "_journal", "base", "below", "followed", "frame", "handed", "held", "isolated", "peeked", "popped",
        "pops_done", "reused", "run", "skips", "spent", "stashed", "stashes_done", "taken", "watchers",
    )  # fmt: skip

    def __init__(self, frame: CallFrame, below: Layer | None, base: SkipFrame, run: Run) -> None:
        self.frame = frame
        self.below = below
        self.base = base
        self.run = run
        self.followed = False
        """Whether `call` runs under it; where a spec of one's own calls children on symbols they stand side by side."""
        self.skips: DeclaredSkips | None = None
        """What the module of this call declares; None for one that only stands around such modules."""
        self.isolated: Mapping[str, Any] = _NONE
        # One is made for each call that takes part, and most of what follows stays empty: it is made when written to.
        self.stashed: dict[Key, Slot] = _NONE
        self.popped: dict[Key, Slot] = _NONE
        """What is gone from what lies below."""
        self.spent: dict[Key, Slot] = _NONE
        """What was popped and is retained for the same consumer."""
        self.held: dict[Key, Slot] = _NONE
        """What is reserved for this call."""
        self.peeked: dict[Key, Slot] = _NONE
        self.handed: Mapping[Key, Slot] = _NONE
        """What was committed as stashed."""
        self.taken: Mapping[Key, Slot] = _NONE
        """What was committed as popped."""
        self.reused: frozenset[Key] = _NOTHING
        self.stashes_done: frozenset[str] = _NOTHING
        self.pops_done: frozenset[str] = _NOTHING
        self.watchers: tuple[Signal, ...] = ()
        self._journal: Journal = _NO_JOURNAL

    @property
    def label(self) -> str:
        """The path of the call, of an entry call its name, quoted for messages."""
        return repr(self.frame.path or self.frame.name)

    @property
    def is_apart(self) -> bool:
        """Whether this is the outermost call on symbols: what it does is seen inside, and goes nowhere."""
        return self.frame.symbolic and not (self.below is not None and self.below.frame.symbolic)

    # -- what is seen -------------------------------------------------------------------------------------------------

    def find(self, key: Key) -> Slot | None:
        """The slot that this call sees."""
        layer: Layer | None = self
        while layer is not None:
            slot = layer.stashed.get(key)
            if slot is not None:
                return slot
            if key in layer.popped:
                return None
            layer = layer.below
        return self.base.slots.get(key)

    def contents(self) -> dict[Key, Slot]:
        """Everything that this call sees."""
        seen = dict(self.base.slots)
        for layer in reversed(list(self._downwards())):
            for key in layer.popped:
                seen.pop(key, None)
            seen |= layer.stashed
        return seen

    def _downwards(self) -> Iterator[Layer]:
        """This layer, and those that it lies on."""
        layer: Layer | None = self
        while layer is not None:
            yield layer
            layer = layer.below

    def reserve(self, key: Key) -> bool:
        """Hold the slot of a key for this call; False where there is none, or another call has it."""
        slot = self.find(key) or self._retained(key)
        if slot is None or self._is_refused(slot):
            return False
        if not self.frame.symbolic:
            slot.taker = self
        self.hold(key, slot)
        return True

    def hold(self, key: Key, slot: Slot) -> None:
        """Keep a slot for this call."""
        if self.held is _NONE:
            self.held = {}
        self.held[key] = slot

    def _is_refused(self, slot: Slot) -> bool:
        """Tell whether another module has reserved a slot; runs of one module at the same time may all read it."""
        return slot.taker is not None and slot.taker.frame.owner is not self.frame.owner

    def _retained(self, key: Key) -> Slot | None:
        """A slot that this very module popped before, if the frame retains those."""
        base = self.base
        if not base.retain:
            return None
        found = (layer.spent[key] for layer in self._downwards() if key in layer.spent)
        slot = next(found, None) or base.spent.get(key)
        if slot is None or slot.consumer != id(self.frame.owner) or slot.reuses >= base.retain:
            return None
        self.reused |= {key}
        return slot

    # -- commands ------------------------------------------------------------------------------------------------------

    def stash(self, key: Key, slot: Slot) -> None:
        """Let a slot be seen, by a command of this call."""
        if self.stashed is _NONE:
            self.stashed = {}
        self.stashed[key] = slot
        self.stashes_done |= {key[1]}

    def pop(self, key: Key, slot: Slot | None) -> None:
        """Let a slot be gone, by a command of this call; None for one that was absent."""
        self.pops_done |= {key[1]}
        if slot is not None:
            slot.consumer = id(self.frame.owner)
            self.take(key, slot, [])

    # -- changes ------------------------------------------------------------------------------------------------------

    def take(self, key: Key, slot: Slot, journal: Journal) -> None:
        """Let a slot be gone."""
        if self.frame.symbolic and not self.followed:
            return
        gone: Slot | None = slot
        if self.stashed.get(key) is slot:
            write(self.stashed, key, None, journal)
            if not self.frame.symbolic:  # of what ran on symbols it is asked what was popped
                gone = self.find(key) if slot.replaces else None  # what it took the place of does not come back
        if gone is not None:
            if self.popped is _NONE:
                self.popped = {}
            write(self.popped, key, gone, journal)
        if slot.consumer is not None and self.base.retain:
            if self.spent is _NONE:
                self.spent = {}
            write(self.spent, key, slot, journal)

    def put(self, key: Key, slot: Slot, journal: Journal) -> None:
        """Let a slot be seen."""
        if self.frame.symbolic and not self.followed:  # what goes on below is told by the symbols alone
            self.handed = {**self.handed, key: slot}
        else:
            if self.stashed is _NONE:
                self.stashed = {}
            write(self.stashed, key, slot, journal)

    # -- the end ------------------------------------------------------------------------------------------------------

    def commit(self) -> None:
        """Hand everything to the calling module.

        Raises:
            SkipError: Another call has stashed the same name meanwhile.
        """
        if self.stashed or self.popped or self.held or self.spent:
            with LOCK:
                if not (self.frame.symbolic and self.is_apart):
                    self._journal = []
                    self._hand_on(self._open_below())
                self.handed, self.taken = self.stashed, self.popped
                self.stashed = self.popped = self.spent = _NONE
                self._release()
        self._ended()

    def drop(self) -> None:
        """Leave the lane as it was before this call."""
        with LOCK:
            if self._journal:
                undo(self._journal)
            self.stashed = self.popped = self.spent = _NONE
            self._release()
        self._ended()

    def restart(self) -> None:
        """Begin anew."""
        self.drop()
        self.stashes_done = self.pops_done = _NOTHING

    def close(self) -> None:
        """Drop what nobody popped, at the end of an entry call, and tell of it; a frame given by hand keeps it."""
        frame = self.base
        if frame.is_given or not frame.slots:
            return
        with LOCK:
            left = sorted(frame.slots.items(), key=lambda item: (item[0][1], order_of(item[0][0])))
            frame.slots.clear()
        names = tuple(name for (_, name), _ in left)
        namespaces = tuple(namespace for (namespace, _), _ in left)
        notify_skip_dropped(self.frame, names, namespaces, tuple(slot.producer for _, slot in left))

    def left(self) -> Mapping[Key, Any] | None:
        """What a call on symbols leaves stashed, or has popped; None for nothing."""
        return {**dict.fromkeys(self.taken, TAKEN), **{key: slot.value for key, slot in self.handed.items()}} or None

    def has_popped(self, key: Key) -> bool:
        """Tell whether a slot is gone that was here, or further out."""
        return any(key in layer.popped for layer in self._downwards())

    def _open_below(self) -> Store:
        """The layer of the nearest calling module that still runs, else the frame."""
        layer = self.below
        while layer is not None and not layer.frame.live:
            layer = layer.below
        return self.base if layer is None else layer

    def _hand_on(self, below: Store) -> None:
        journal = self._journal
        for key, slot in self.popped.items():
            below.take(key, slot, journal)
            slot.reuses += key in self.reused
        for key, slot in self.stashed.items():
            old = below.find(key)
            if old is not None and not slot.replaces:
                raise SkipError(
                    f"{self.label}: {shown(key)} has already been stashed by {old.producer!r}, which ran at the same "
                    "time. Put the two into different Namespaces: `module.isolate(Namespace())`."
                )
            below.put(key, slot, journal)
        for key, slot in self.spent.items():
            if isinstance(below, Layer):
                if below.spent is _NONE:
                    below.spent = {}
                write(below.spent, key, slot, journal)

    def _release(self) -> None:
        """Let go of what is reserved."""
        if self.held:
            for slot in self.held.values():
                if slot.taker is self:
                    slot.taker = None
        self.held = self.peeked = _NONE

    def _ended(self) -> None:
        """Be under way no longer, and tell those who wait for that."""
        self.run.running.pop(self, None)
        if self.watchers:
            watchers, self.watchers = self.watchers, ()
            for signal in watchers:
                signal.set()
