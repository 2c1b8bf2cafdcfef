"""The lane: what is stashed while an entry call runs. Every call below it is a transaction on what its caller sees.

Commands act on the lane of their call. When the call returns, what it stashed and popped goes to the lane of its
caller, at the outermost level to the lane of the skip frame. When it fails, its lane is dropped, together with
everything that the calls below it committed. So whatever is tried again finds everything as it was.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextvars import ContextVar
from functools import total_ordering
from itertools import count
from typing import Any, Final, Self

from synmod.errors import GraphError, SkipError
from synmod.leaves.names import check_name
from synmod.module import ATTEMPTS, DeclaredSkips
from synmod.registry import register_own
from synmod.scope import CallFrame, current_call, nearest_live, notify_skip_dropped, reset
from synmod.tree import NodeImpl, register_impl

# -- Namespaces: identities that keep pairs of one name apart ----------------------------------------------------------

_MADE = count()

Key = tuple["Namespace | None", str]
"""The key of a slot: a Namespace, None for the default one, and a name."""


@register_own()
@total_ordering
class Namespace:
    """An identity under which modules stash and pop, so that pairs of one name do not meet.

    Two are never equal, whatever their names; `copy.copy` returns the same one, `copy.deepcopy` and the clone of a
    program new ones, the same for all modules of the clone. They sort by name and then by the order of making.

    Args:
        name: A label, which is a Python identifier; two Namespaces of one name are still different.

    Raises:
        BadNameError: The name is not an identifier.

    Example:
        >>> Namespace("one") == Namespace("one")
        False

    Source: torchgpipe's `Namespace`; differs: a node of the graph, saved by position.
    """

    __slots__ = ("__weakref__", "_number", "name")

    def __init__(self, name: str | None = None) -> None:
        self.name = None if name is None else check_name(name, "Namespace")
        self._number = next(_MADE)

    def __lt__(self, other: object) -> bool:
        if not isinstance(other, Namespace):
            return NotImplemented
        return order_of(self) < order_of(other)

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Namespace:
        return Namespace(self.name)

    def __reduce__(self) -> tuple[Any, ...]:
        return Namespace, (self.name,)

    def __repr__(self) -> str:
        return f"Namespace({'' if self.name is None else repr(self.name)})"


def order_of(namespace: Namespace | None) -> tuple[str, int]:
    """Return the key by which Namespaces are sorted; the default one comes first."""
    return ("", -1) if namespace is None else (namespace.name or "", namespace._number)


def shown(key: Key) -> str:
    """Return a key for messages: the quoted name, with its Namespace where it has one."""
    namespace, name = key
    return repr(name) if namespace is None else f"{name!r} in {namespace!r}"


def _has_no_children(namespace: Any, *_: Any) -> None:
    raise GraphError(f"{namespace!r} has no children.")


def _rewrite(namespace: Any, metadata: Any, _: Any) -> None:
    """Take over the name, the only content."""
    namespace.name = metadata["name"]


register_impl(
    NodeImpl(
        Namespace,
        flatten=lambda namespace: ((), {"name": namespace.name}),
        set_key=_has_no_children,
        pop_key=_has_no_children,
        create_empty=lambda metadata: Namespace(metadata["name"]),
        compared=lambda _: None,
        rewrite=_rewrite,
        is_token=True,
    )
)


# -- the lane ----------------------------------------------------------------------------------------------------------

_LOCK: Final = threading.RLock()
"""Held for a few instructions while values change hands, never across an await. Reentrant: a coroutine that the
garbage collector closes in the meantime may drop its lane."""

TAKEN: Final[Any] = object()
"""Stands for a value that a call on symbols has popped."""


class Slot:
    """One value in the lane, held by reference, with its producer and the call that has reserved it."""

    __slots__ = ("producer", "replaces", "taker", "value")

    def __init__(self, value: Any, producer: str, *, replaces: bool = False) -> None:
        self.value = value
        self.producer = producer
        """Path of the module that stashed it, as messages name it."""
        self.replaces = replaces
        """Whether it may take the place of another value."""
        self.taker: Lane | None = None


class Lane:
    """What one call has stashed and popped and not committed yet; the one at the bottom belongs to a skip frame."""

    __slots__ = ("below", "done", "frame", "held", "in_hand", "isolated", "popped", "skips", "stashed", "symbolic")

    def __init__(self, frame: CallFrame | None = None, below: Lane | None = None, *, symbolic: bool = False) -> None:
        self.frame = frame
        self.below = below
        self.symbolic = symbolic
        """Whether it belongs to calls on symbols, which run to find out schemas."""
        self.skips: DeclaredSkips | None = None
        """What the module of this call declares; None for one that only has such modules below it."""
        self.isolated: Mapping[str, Any] = {}
        self.stashed: dict[Key, Slot] = {}
        self.popped: dict[Key, Slot] = {}
        self.held: dict[Key, Slot] = {}
        """What this call found at its entry: pops, which it has reserved, and peeks."""
        self.done: set[tuple[str, str]] = set()
        """The commands performed, as (word, name)."""
        self.in_hand = False
        """Whether a user holds the skip frame: then values that nobody pops stay in it."""

    @property
    def place(self) -> str:
        """The path of the call, or of an entry call its name."""
        return "" if self.frame is None else self.frame.path or self.frame.name

    @property
    def label(self) -> str:
        """The place, quoted for messages."""
        return repr(self.place)

    def downwards(self) -> Iterator[Lane]:
        """Yield this lane and those that it lies on."""
        lane: Lane | None = self
        while lane is not None:
            yield lane
            lane = lane.below

    def find(self, key: Key, *, popped_too: bool = False) -> Slot | None:
        """Return the slot that this call sees, on demand also one that was popped before."""
        lane: Lane | None = self
        while lane is not None:
            slot = lane.stashed.get(key)
            if slot is not None:
                return slot
            if key in lane.popped:
                return lane.popped[key] if popped_too else None
            lane = lane.below
        return None

    def has_popped(self, key: Key) -> bool:
        """Whether a value was popped that this call would see."""
        return any(key in lane.popped for lane in self.downwards())

    def contents(self) -> dict[Key, Slot]:
        """Return everything that this call sees."""
        seen: dict[Key, Slot] = {}
        for lane in reversed(list(self.downwards())):
            for key in lane.popped:
                seen.pop(key, None)
            seen |= lane.stashed
        return seen

    def reserve(self, key: Key) -> bool:
        """Hold a slot for this call; False where there is none, or where another module has reserved it.

        Runs of one module at the same time may all read it. Symbols reserve nothing, and find also what was popped:
        alternatives are called side by side, and verification finds what is popped twice.
        """
        with _LOCK:
            slot = self.find(key, popped_too=self.symbolic)
            if slot is None:
                return False
            if not self.symbolic:
                if slot.taker is not None and _owner(slot.taker) is not _owner(self):
                    return False
                slot.taker = self
            self.held[key] = slot
            return True

    def take(self, key: Key, slot: Slot) -> None:
        """Remove a slot from what this call sees."""
        gone: Slot | None = slot
        if self.stashed.get(key) is slot:
            del self.stashed[key]
            gone = self.find(key) if slot.replaces else None  # what it took the place of does not come back
        if gone is not None and self.below is not None:
            self.popped[key] = gone

    def commit(self) -> None:
        """Hand everything to the caller.

        Raises:
            SkipError: Another call has stashed the same name in the meantime.
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
                known = below.find(key)
                if known is None or known is self.popped.get(key) or slot.replaces or self.symbolic:
                    continue
                raise SkipError(
                    f"{self.label}: {shown(key)} has already been stashed by {known.producer!r}, which ran at the same "
                    "time. Put the two into different Namespaces: `module.isolate(Namespace())`."
                )
            for key, slot in self.popped.items():
                below.take(key, slot)
            below.stashed.update(self.stashed)
            self.drop()

    def drop(self) -> None:
        """Forget everything that this call did, and release what it has reserved."""
        for slot in self.held.values():
            if slot.taker is self:
                slot.taker = None
        self.stashed, self.popped, self.held, self.done = {}, {}, {}, set()

    def left(self) -> dict[Key, Any] | None:
        """Return what a call on symbols leaves beside its outputs: values by key, `TAKEN` for what it popped."""
        return {**dict.fromkeys(self.popped, TAKEN), **{key: slot.value for key, slot in self.stashed.items()}} or None

    def close(self) -> None:
        """Drop what nobody popped at the end of an entry call, with one event; a frame in hand keeps it."""
        *_, bottom = self.downwards()
        if self.frame is not None and bottom.stashed and not bottom.in_hand:
            keys = sorted(bottom.stashed, key=lambda key: (key[1], order_of(key[0])))
            producers = tuple(bottom.stashed[key].producer for key in keys)
            bottom.stashed = {}
            notify_skip_dropped(
                self.frame, tuple(name for _, name in keys), tuple(namespace for namespace, _ in keys), producers
            )


def _owner(lane: Lane) -> Any:
    return None if lane.frame is None else lane.frame.owner


class Block:
    """A block whose calls run on a lane opened there: that of a frame in hand, or of one of several attempts."""

    __slots__ = ("_around", "_is_open", "_token", "at", "lane")

    def __init__(self, lane: Lane) -> None:
        self.lane = lane
        self.at = current_call()
        """The call that opened it."""
        self._around = open_block()
        self._is_open = True
        self._token = _BLOCK.set(self)

    def innermost(self) -> Block | None:
        """Return this block, or the nearest one around it that is still open: a task may outlive a block."""
        block: Block | None = self
        while block is not None and not block._is_open:
            block = block._around
        return block

    def close(self) -> None:
        """End the block."""
        self._is_open = False
        reset(_BLOCK, self._token)


_BLOCK: ContextVar[Block | None] = ContextVar("synmod_skip_block", default=None)


def open_block() -> Block | None:
    """Return the innermost open block around this place."""
    block = _BLOCK.get()
    return None if block is None else block.innermost()


def lane_of(frame: CallFrame) -> Lane:
    """Return the lane of a running call: it lies on that of its caller, or of the block that its caller has opened."""
    known: Any = frame.layer
    if known is not None:
        return known
    with _LOCK:
        missing: list[CallFrame] = []
        one: CallFrame | None = frame
        below: Any = None
        while one is not None and below is None:
            missing.append(one)
            above, block = nearest_live(one.parent), open_block()
            if block is not None and block.lane.symbolic == one.symbolic and (above is None or block.at is above):
                below = block.lane
            elif above is not None:
                below = above.layer
            one = above
        if below is None:
            below = Lane(symbolic=missing[-1].symbolic)
        for each in reversed(missing):
            below = each.layer = Lane(each, below, symbolic=each.symbolic)
    return below


class SkipAttempt:
    """A block whose calls change the lane only if the attempt is kept."""

    __slots__ = ("_block", "_lane")
    _block: Block

    def __init__(self) -> None:
        frame = current_call()
        below = None if frame is None else lane_of(frame)
        self._lane = Lane(None, below, symbolic=below is not None and below.symbolic)

    def __enter__(self) -> Self:
        self._block = Block(self._lane)
        return self

    def __exit__(self, *_: object) -> None:
        self._block.close()

    def keep(self) -> None:
        """Commit what the calls of the block did."""
        self._lane.commit()


ATTEMPTS["skips"] = SkipAttempt
