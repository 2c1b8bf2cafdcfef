"""Layers: each call is a transaction on what its caller sees of the lane.

Commands act on the layer of their call. When the call returns, its layer goes into that of the calling module, at the
outermost level into the skip frame; when it fails, the layer is dropped with everything that calls below committed into
it. So what is tried again finds the lane as it was.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, cast

from synmod.errors import SkipError
from synmod.scope.frame import CallFrame, nearest_live
from synmod.scope.notify import notify_skip_dropped
from synmod.skip.given import given_store, is_given
from synmod.skip.namespace import Key, order_of, shown
from synmod.skip.skip_frame import SkipFrame
from synmod.skip.slots import LOCK, Journal, Slot, Store, undo, write

if TYPE_CHECKING:
    from synmod.leaves.aio import Signal
    from synmod.module.skips import DeclaredSkips

_NONE: Final[Any] = {}  # never written to
_NO_JOURNAL: Final[Any] = []  # likewise


class Run:
    """What the layers of one entry call share."""

    __slots__ = ("running", "waits")

    def __init__(self) -> None:
        self.running: dict[Layer, None] = {}
        """The calls under way of modules that declare skips, or have such below them, by the time they began."""
        self.waits: dict[Layer, Layer] = {}
        """For each consumer that waits, the call that it waits for."""


class Layer:
    """What one call has done to the lane and not committed yet."""

    # what most layers leave as it is stands on the class: a layer is made for each call that takes part
    followed = False
    """Whether `call` runs under it; where a spec of one's own calls children on symbols they stand side by side."""
    skips: DeclaredSkips | None = None
    """What the module of this call declares; None for one that only stands around such modules."""
    isolated: Mapping[str, Any] = _NONE
    spent: dict[Key, Slot] = _NONE
    """What was popped and is retained for the same consumer."""
    held: dict[Key, Slot] = _NONE
    """What is reserved for this call."""
    peeked: dict[Key, Slot] = _NONE
    reused: frozenset[Key] = frozenset()
    stashes_done: frozenset[str] = frozenset()
    pops_done: frozenset[str] = frozenset()
    handed: Mapping[Key, Slot] = _NONE
    """What was committed as stashed."""
    watchers: tuple[Signal, ...] = ()
    _journal: Journal = _NO_JOURNAL

    def __init__(self, frame: CallFrame, below: Store, run: Run) -> None:
        self.frame = frame
        self.below = below
        self.run = run
        self.base: SkipFrame = below.base
        """The skip frame at the bottom."""
        self.stashed: dict[Key, Slot] = {}
        self.popped: dict[Key, Slot] = {}
        """What is gone from what lies below."""

    @property
    def label(self) -> str:
        """The path of the call, of an entry call its name, quoted for messages."""
        return repr(self.frame.path or self.frame.name)

    @property
    def is_apart(self) -> bool:
        """Whether this is the outermost call on symbols: what it does is seen inside, and goes nowhere."""
        return self.frame._symbolic and not (isinstance(self.below, Layer) and self.below.frame._symbolic)

    # -- what is seen -------------------------------------------------------------------------------------------------

    def find(self, key: Key) -> Slot | None:
        """The slot that this call sees."""
        layer: Store = self
        while isinstance(layer, Layer):
            slot = layer.stashed.get(key)
            if slot is not None:
                return slot
            if key in layer.popped:
                return None
            layer = layer.below
        return layer.find(key)

    def contents(self) -> dict[Key, Slot]:
        """Everything that this call sees."""
        layers: list[Layer] = []
        store: Store = self
        while isinstance(store, Layer):
            layers.append(store)
            store = store.below
        seen = dict(cast("SkipFrame", store).slots)
        for layer in reversed(layers):
            for key in layer.popped:
                seen.pop(key, None)
            seen |= layer.stashed
        return seen

    def reserve(self, key: Key) -> bool:
        """Hold the slot of a key for this call; False where there is none, or another call has it."""
        slot = self.find(key) or self._retained(key)
        if slot is None or self._is_refused(slot):
            return False
        if not self.frame._symbolic:
            slot.taker = self
        self.held = {**self.held, key: slot}
        return True

    def _is_refused(self, slot: Slot) -> bool:
        """Tell whether another module has reserved a slot; runs of one module at the same time may all read it."""
        return slot.taker is not None and slot.taker.frame._owner is not self.frame._owner

    def _retained(self, key: Key) -> Slot | None:
        """A slot that this very module popped before, if the frame retains those."""
        base = self.base
        if not base.retain:
            return None
        store: Store = self
        while isinstance(store, Layer):
            slot = store.spent.get(key)
            if slot is not None:
                break
            store = store.below
        else:
            slot = base.spent.get(key)
        if slot is None or slot.consumer != id(self.frame._owner) or slot.reuses >= base.retain:
            return None
        self.reused |= {key}
        return slot

    # -- changes ------------------------------------------------------------------------------------------------------

    def take(self, key: Key, slot: Slot, journal: Journal) -> None:
        """Let a slot be gone."""
        if self.frame._symbolic and not self.followed:
            return
        if self.stashed.get(key) is slot:
            write(self.stashed, key, None, journal)
        else:
            write(self.popped, key, slot, journal)
        if slot.consumer is not None and self.base.retain:
            self.spent = self.spent or {}
            write(self.spent, key, slot, journal)

    def put(self, key: Key, slot: Slot, journal: Journal) -> None:
        """Let a slot be seen."""
        if self.frame._symbolic and not self.followed:  # what goes on below is told by the symbols alone
            self.handed = {**self.handed, key: slot}
        else:
            write(self.stashed, key, slot, journal)

    # -- the end ------------------------------------------------------------------------------------------------------

    def commit(self) -> None:
        """Hand everything to the calling module.

        Raises:
            SkipError: Another call has stashed the same name meanwhile.
        """
        if self.stashed or self.popped or self.held or self.spent:
            with LOCK:
                if not (self.frame._symbolic and self.is_apart):
                    self._journal = []
                    self._hand_on(self._open_below())
                self.handed, self.stashed, self.popped, self.spent = self.stashed, {}, {}, _NONE
                self._release()
        self._wake()

    def drop(self) -> None:
        """Leave the lane as it was before this call."""
        with LOCK:
            if self._journal:
                undo(self._journal)
            self.stashed, self.popped, self.spent = {}, {}, _NONE
            self._release()
        self._wake()

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
        """What a call on symbols leaves stashed, None for nothing."""
        return {key: slot.value for key, slot in self.handed.items()} or None

    def _open_below(self) -> Store:
        """The layer of the nearest calling module that still runs, else the frame."""
        store = self.below
        while isinstance(store, Layer) and not store.frame._live:
            store = store.below
        return store

    def _hand_on(self, below: Store) -> None:
        for key, slot in self.popped.items():
            below.take(key, slot, self._journal)
            slot.reuses += key in self.reused
        for key, slot in self.stashed.items():
            old = below.find(key)
            if old is not None and not slot.replaces:
                raise SkipError(
                    f"{self.label}: {shown(key)} has already been stashed by {old.producer!r}, which ran at the same "
                    "time. Put the two into different Namespaces: `module.isolate(Namespace())`."
                )
            below.put(key, slot, self._journal)
        for key, slot in self.spent.items():
            if isinstance(below, Layer):
                below.spent = below.spent or {}
                write(below.spent, key, slot, self._journal)

    def _release(self) -> None:
        """Let go of what is reserved."""
        if self.held:
            for slot in self.held.values():
                if slot.taker is self:
                    slot.taker = None
            self.held = _NONE
        self.peeked = _NONE

    def _wake(self) -> None:
        """Tell those who wait for the end of this call."""
        self.run.running.pop(self, None)
        if self.watchers:
            watchers, self.watchers = self.watchers, ()
            for signal in watchers:
                signal.set()


def layer_of(frame: CallFrame) -> Layer:
    """The layer of a running call; a call that has none yet gets one, with all calls above it."""
    layer = frame._layer
    if layer is not None:
        return cast("Layer", layer)
    above = frame._parent
    if above is not None and above._live and above._layer is not None and not is_given():
        below = cast("Layer", above._layer)
        layer = frame._layer = Layer(frame, below, below.run)
        return layer
    with LOCK:
        missing: list[CallFrame] = []
        one: CallFrame | None = frame
        while one is not None and one._layer is None:
            missing.append(one)
            one = None if given_store(one) is not None else nearest_live(one._parent)
        for each in reversed(missing):
            each._layer = _new_layer(each)
    return cast("Layer", frame._layer)


def _new_layer(frame: CallFrame) -> Layer:
    """A layer on that of the calling module, which is there already, or on the skip frame."""
    above = nearest_live(frame._parent)
    given = given_store(frame)
    if given is not None:
        return Layer(frame, given, Run() if above is None else layer_of(above).run)
    if above is None:
        return Layer(frame, SkipFrame(), Run())
    below = layer_of(above)
    return Layer(frame, below, below.run)
