"""The lane: the values stashed while an entry call runs. Every nested call is a transaction on the lane of its caller.

Commands act on the lane of their call. When the call returns, its stashes and pops are committed to the lane of its
caller; for an entry call, to the lane of the skip frame. When it fails, its lane is dropped, together with everything
that nested calls committed. So a retry finds the lane unchanged.
"""

from collections.abc import Generator, Iterable, Iterator, KeysView, Mapping
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from itertools import count
from typing import Any, Final, Self, TypeVar, cast

from synmod import data, errors, module, registry, scope, tree
from synmod.leaves import Json, aio, check_name, check_type, frozen, is_object, parse_path, path_str, reset, thaw

# -- Namespaces: identities that separate skips of the same name -------------------------------------------------------

_MADE = count()

Key = tuple["Namespace | None", str]
"""The key of a slot: a Namespace, None for the default one, and a name."""


@registry.register_own()
class Namespace:
    """An identity under which modules stash and pop, so that skips of the same name do not collide.

    Two Namespaces are never equal, even with the same name. `copy.copy` returns the same Namespace; `copy.deepcopy` and
    the clone of a program make new ones, shared by all modules of the clone. They sort by name, then by creation.

    Args:
        name: A label, a Python identifier.

    Raises:
        BadNameError: The name is not an identifier.

    Example:
        >>> Namespace("one") == Namespace("one")
        False

    Source: torchgpipe's `Namespace`; differs: a node of the graph, saved by position.
    """

    def __init__(self, name: str | None = None) -> None:
        self.name = None if name is None else check_name(name, "Namespace")
        self._number = next(_MADE)

    def __lt__(self, other: object) -> bool:
        if not isinstance(other, Namespace):
            return NotImplemented
        return order_of(self) < order_of(other)

    def __copy__(self) -> Self:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return Namespace, (self.name,)

    def __repr__(self) -> str:
        return f"Namespace({'' if self.name is None else repr(self.name)})"


def order_of(namespace: Namespace | None) -> tuple[str, int]:
    """Return the key by which Namespaces are sorted; the default one comes first."""
    return ("", -1) if namespace is None else (namespace.name or "", namespace._number)


def key_text(key: Key) -> str:
    """Return a key for messages: the quoted name, with its Namespace if it has one."""
    namespace, name = key
    return repr(name) if namespace is None else f"{name!r} in {namespace!r}"


tree.register_impl(
    tree.NodeImpl(
        Namespace,
        flatten=lambda namespace: ((), {"name": namespace.name}),
        create_empty=lambda metadata: Namespace(metadata["name"]),
        compared=lambda _: None,
        is_token=True,
    )
)


# -- the lane ----------------------------------------------------------------------------------------------------------

_LOCK: Final = aio.lock()
"""Held for a few instructions while lanes change, never across an await. Reentrant: a coroutine that the garbage
collector closes in the meantime may drop its lane."""

TAKEN: Final[Any] = object()
"""A placeholder for a value that a call on symbols has popped."""


@dataclass(slots=True, eq=False)
class Slot:
    """One value in the lane, held by reference.

    Attributes:
        value: The value.
        producer: The path of the module that stashed it, for messages.
        replaces: Whether it may replace another one.
        reserved_by: The lane of the call that will pop it.
    """

    value: Any
    producer: str
    replaces: bool = False
    reserved_by: "Lane | None" = None


class Lane:
    """The uncommitted stashes and pops of one call; the bottom lane belongs to a skip frame.

    Attributes:
        frame: The frame of the call; None for a block.
        below: The lane of the caller, or of a block around the call; None for the bottom lane.
        symbolic: Whether the lane belongs to calls on symbols, which only find schemas.
        skips: The skips that the module of this call declares; None if only modules below it declare some.
        isolated: The Namespaces of the module's names.
        stashed, popped: The values stashed and popped.
        entry_slots: The slots that this call found at its entry: pops, which it has reserved, and peeks.
        done: The commands performed, as (word, name).
        is_user_owned: Whether a user owns the skip frame (`use_skip_frame`), so that values not popped stay in it.
    """

    __slots__ = (
        "below",
        "done",
        "entry_slots",
        "frame",
        "is_user_owned",
        "isolated",
        "popped",
        "skips",
        "stashed",
        "symbolic",
    )

    def __init__(
        self, frame: scope.CallFrame | None = None, below: "Lane | None" = None, *, symbolic: bool = False
    ) -> None:
        self.frame = frame
        self.below = below
        self.symbolic = symbolic
        self.skips: module.DeclaredSkips | None = None
        self.isolated: Mapping[str, Any] = {}
        self.stashed: dict[Key, Slot] = {}
        self.popped: dict[Key, Slot] = {}
        self.entry_slots: dict[Key, Slot] = {}
        self.done: set[tuple[str, str]] = set()
        self.is_user_owned = False

    def key(self, name: str) -> Key:
        """Return the key of a name of the module."""
        return self.isolated.get(name), name

    @property
    def place(self) -> str:
        """The path of the call; for an entry call, its name."""
        return "" if self.frame is None else self.frame.path or self.frame.name

    @property
    def label(self) -> str:
        """The place, quoted for messages."""
        return repr(self.place)

    def ancestors(self) -> "Iterator[Lane]":
        """Yield this lane and the lanes below it, from the top."""
        lane: Lane | None = self
        while lane is not None:
            yield lane
            lane = lane.below

    def find(self, key: Key, *, popped_too: bool = False) -> Slot | None:
        """Return the slot that this call sees, on request also one that was popped before; or None."""
        lane: Lane | None = self
        while lane is not None:
            if key in lane.stashed:
                return lane.stashed[key]
            if key in lane.popped:
                return lane.popped[key] if popped_too else None
            lane = lane.below
        return None

    def contents(self) -> dict[Key, Slot]:
        """Return everything that this call sees."""
        slots: dict[Key, Slot] = {}
        for lane in reversed(list(self.ancestors())):
            for key in lane.popped:
                slots.pop(key, None)
            slots |= lane.stashed
        return slots

    def reserve(self, key: Key) -> bool:
        """Hold a slot for this call; return False if it is absent, or another module has reserved it.

        Concurrent calls of one module may all read the slot. Calls on symbols reserve nothing, and also find popped
        slots: all alternatives are called, and verification finds double pops.
        """
        with _LOCK:
            slot = self.find(key, popped_too=self.symbolic)
            if slot is None:
                return False
            if not self.symbolic:
                holder = slot.reserved_by and slot.reserved_by.frame
                if holder is not None and self.frame is not None and holder.owner is not self.frame.owner:
                    return False
                slot.reserved_by = self
            self.entry_slots[key] = slot
            return True

    def take(self, key: Key, slot: Slot) -> None:
        """Remove a slot from what this call sees."""
        gone: Slot | None = slot
        if self.stashed.get(key) is slot:
            del self.stashed[key]
            gone = self.find(key) if slot.replaces else None  # the replaced value does not come back
        if gone is not None and self.below is not None:
            self.popped[key] = gone

    def commit(self) -> None:
        """Apply all stashes and pops to the lane of the caller.

        Raises:
            SkipError: A concurrent call has stashed the same name.
        """
        below = self.below
        while below is not None and below.frame is not None and not below.frame.live:
            below = below.below
        if below is None:
            return
        if self.symbolic and not below.symbolic:  # symbols of a build must not reach the call that builds
            self.drop()
            return
        with _LOCK:
            for key, slot in self.stashed.items():
                occupant = below.find(key)
                if occupant is None or occupant is self.popped.get(key) or slot.replaces or self.symbolic:
                    continue
                what = f"{key_text(key)} has already been stashed by {occupant.producer!r}, which ran at the same time"
                raise errors.SkipError(f"{self.label}: {what}. Isolate one: `module.isolate(Namespace())`.")
            for key, slot in self.popped.items():
                below.take(key, slot)
            below.stashed.update(self.stashed)
            self.drop()

    keep = commit
    """`commit` under its name in `CallAttempt`."""

    def drop(self) -> None:
        """Discard the stashes and pops of this call, and release the slots that it has reserved."""
        for slot in self.entry_slots.values():
            if slot.reserved_by is self:
                slot.reserved_by = None
        self.stashed, self.popped, self.entry_slots, self.done = {}, {}, {}, set()

    def effects(self) -> dict[Key, Any] | None:
        """Return the effects of a call on symbols: stashed values by key, `TAKEN` for popped ones; None if none."""
        return {**dict.fromkeys(self.popped, TAKEN), **{key: slot.value for key, slot in self.stashed.items()}} or None

    def close(self) -> None:
        """Drop values not popped by the end of an entry call, with one event; a frame that a user owns keeps them."""
        *_, bottom = self.ancestors()
        if self.frame is not None and bottom.stashed and not bottom.is_user_owned:
            keys = sorted(bottom.stashed, key=lambda key: (key[1], order_of(key[0])))
            producers = tuple(bottom.stashed[key].producer for key in keys)
            bottom.stashed = {}
            scope.notify_skip_dropped(
                self.frame, tuple(name for _, name in keys), tuple(namespace for namespace, _ in keys), producers
            )


# -- lanes of calls and of blocks --------------------------------------------------------------------------------------


@dataclass(slots=True, eq=False)
class LaneBlock:
    """A block whose calls run on its own lane, opened by the call `at`."""

    lane: Lane
    at: scope.CallFrame | None = field(default_factory=scope.current_call)
    is_open: bool = True


_BLOCK: ContextVar[LaneBlock | None] = ContextVar("synmod_skip_block", default=None)
T = TypeVar("T")


def open_block() -> LaneBlock | None:
    """Return the enclosing block, unless it is closed: a task may outlive it."""
    block = _BLOCK.get()
    return block if block is not None and block.is_open else None


@contextmanager
def run_calls_on(lane: Lane, target: T) -> Generator[T]:
    """Run the calls of a block on a lane: that of a given skip frame, or of an attempt."""
    block = LaneBlock(lane)
    token = _BLOCK.set(block)
    try:
        yield target
    finally:
        block.is_open = False
        reset(_BLOCK, token)


def lane_of(frame: scope.CallFrame) -> Lane:
    """Return the lane of a running call; below it is that of its caller, or of a block that its caller opened."""
    lane: Any = frame.layer
    if lane is None:
        with _LOCK:
            above, block = scope.nearest_live(frame.parent), open_block()
            if block is not None and block.lane.symbolic == frame.symbolic and (above is None or block.at is above):
                below = block.lane
            else:
                below = Lane(symbolic=frame.symbolic) if above is None else lane_of(above)
            lane = frame.layer = Lane(frame, below, symbolic=frame.symbolic)
    return lane


def attempt() -> AbstractContextManager[Lane]:
    """Return a block whose calls change the lane only if the attempt is kept."""
    frame = scope.current_call()
    below = None if frame is None else lane_of(frame)
    lane = Lane(None, below, symbolic=below is not None and below.symbolic)
    return run_calls_on(lane, lane)


# -- the skip frame: the values in the lane of one entry call, to inspect, save and resume -----------------------------


class SkipFrame:
    """The values in the lane of an entry call.

    Inside a call it shows the values visible to that call: its own uncommitted stashes and pops, and its callers', too.

    Example:
        >>> frame = SkipFrame.from_json({"doc": {"json": "a text", "schema": None}})
        >>> list(frame.keys())
        [(None, 'doc')]

    Source: torchgpipe's skip tracker; differs: belongs to the entry call, and calls are transactions on it.
    """

    def __init__(self, lane: Lane | None = None) -> None:
        self.lane = lane or Lane()
        """The lane that holds the values (internal)."""

    def keys(self) -> KeysView[Key]:
        """Return the `(namespace, name)` pairs in the lane; the default namespace is None."""
        return self._seen().keys()

    def __len__(self) -> int:
        return len(self._seen())

    def to_json(self) -> dict[str, Json]:
        """Return everything as `{name: {"json": value, "schema": schema or None}}`.

        A name in a Namespace is `namespace/name`, escaped like the steps of a path.

        Raises:
            DataError: A slot holds neither JSON nor a data model; or its Namespace has no name, or the name of another.
                The message names the slot.
        """
        written: dict[str, Json] = {}
        for key, slot in self._seen().items():
            namespace, name = key
            text = path_str((name,) if namespace is None else (namespace.name or "", name))
            if text in written or (namespace is not None and namespace.name is None):
                raise errors.DataError(f"slot {key_text(key)}: give each Namespace its own name: Namespace('one').")
            try:
                written[text] = {"json": thaw(frozen(slot.value)), "schema": thaw(schema_of_value(slot.value))}
            except errors.DataError as error:
                raise errors.DataError(f"slot {key_text(key)} cannot be written: {error}") from None
        return written

    @classmethod
    def from_json(cls, json: Mapping[str, Json], namespaces: Iterable[Namespace] = ()) -> "SkipFrame":
        """Return the frame that `to_json` wrote.

        Args:
            json: The result of `to_json`.
            namespaces: The Namespaces of the program that will run on the frame; matched by name.

        Raises:
            DataError: `json` is not the result of `to_json`, a value is not JSON or does not satisfy its schema, or
                `namespaces` does not have exactly one Namespace with the name of a slot.
        """
        expected = "the object that to_json returned"
        check_type("SkipFrame.from_json: json", json, Mapping, expected, error=errors.DataError)
        frame, candidates = cls(), [*namespaces]
        for text, entry in json.items():
            steps = parse_path(text) if isinstance(text, str) else ()  # pyright: ignore[reportUnnecessaryIsInstance]
            if not is_object(entry) or set(entry) != {"json", "schema"} or not 1 <= len(steps) <= 2:
                form = "`name` or `namespace/name`, with an object of the keys 'json' and 'schema'"
                raise errors.DataError(f"slot {text!r:.100}: wanted {form}, got {entry!r:.100}.")
            *space, name = cast("tuple[str, ...]", steps)
            matches: list[Any] = [ns for ns in candidates if [getattr(ns, "name", None)] == space] if space else [None]
            if len(matches) != 1:
                what = f"wanted one Namespace named {space[0]!r} in namespaces=[...]"
                raise errors.DataError(f"slot {text!r}: {what}, got {len(matches)} among {candidates}.")
            content, schema = entry["json"], entry["schema"]
            try:
                value = frozen(content) if schema is None else data.JsonDataModel(content, schema=schema)
            except (errors.DataError, errors.SchemaError) as error:
                raise errors.DataError(f"slot {text!r}: {error}") from None
            frame.lane.stashed[matches[0], name] = Slot(value, "a frame that was read")
        return frame

    def _seen(self) -> dict[Key, Slot]:
        running = scope.current_call()
        top: Any = None if running is None else running.layer
        if top is not None and any(lane is self.lane for lane in top.ancestors()):
            return top.contents()
        return self.lane.contents()

    def __repr__(self) -> str:
        return f"SkipFrame({', '.join(map(key_text, self._seen()))})"


def current_skip_frame() -> SkipFrame | None:
    """Return the skip frame of the running entry call, as the running call (in a hook, the call of the event) sees it.

    Returns:
        The frame; None outside module calls.

    Example:
        >>> current_skip_frame() is None
        True

    Source: torchgpipe's `current_skip_tracker`.
    """
    frame = scope.current_call()
    if frame is None:
        return None
    *_, bottom = lane_of(frame).ancestors()
    return SkipFrame(bottom)


def use_skip_frame(frame: SkipFrame) -> AbstractContextManager[SkipFrame]:
    """Run the calls of a block on a given skip frame: for tests, or to resume where another run has stopped.

    Values that are not popped stay in the frame.

    Args:
        frame: The frame.

    Returns:
        A context manager whose target is the frame.

    Raises:
        ArgumentError: `frame` is not a SkipFrame.

    Example:
        >>> from synmod.skip import SkipFrame
        >>> with use_skip_frame(SkipFrame()) as frame:
        ...     len(frame)
        0

    Source: torchgpipe's `use_skip_tracker`; differs: a ContextVar, never a thread-local.
    """
    check_type("use_skip_frame: frame", frame, SkipFrame, "a SkipFrame")
    frame.lane.is_user_owned = True
    return run_calls_on(frame.lane, frame)


def schema_of_value(value: Any) -> Any:
    """Return the schema of a value in the lane; None for plain JSON."""
    return data.schema_of(value) if isinstance(value, data.DataModel | data.HasSchema) else None
