"""Who is told: the hooks of the blocks around a place, of a module, and of the modules above."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, ClassVar, cast

from synmod.errors import ArgumentError
from synmod.scope.ambient import Ambient, Block
from synmod.scope.frame import CallFrame
from synmod.scope.hook import Hook, check_hook
from synmod.scope.place import Place, place_of

if TYPE_CHECKING:
    from synmod.scope.in_place import InPlace

__all__ = ["Hook", "Listeners", "check_hook", "hooks", "hooks_for", "hooks_inside"]


class hooks(Block):  # noqa: N801  # read as a word: `with sm.hooks(h):`
    """Let hooks see everything that happens in a block.

    Args:
        *hooks: Told in this order at each begin, in reverse at each end; after those of enclosing blocks.

    Raises:
        ArgumentError: No hook, something that is no hook, or an async method where plain code tells it.

    Example:
        >>> class Names(Hook):
        ...     def on_call_begin(self, event):
        ...         names.append(event.name)
        >>> names = []
        >>> with hooks(Names()):
        ...     pass

    Source: structlog's context; differs: no process-wide list, so nobody pays for hooks that are not there.
    """

    __slots__ = ()

    def __init__(self, *hooks: Hook) -> None:
        if not hooks:
            raise ArgumentError("hooks() got no hook: write `with sm.hooks(hook):`.")
        super().__init__("hooks", tuple(map(check_hook, hooks)))


class Listeners:
    """The hooks that one begin and its end go to, in order.

    `begun` counts those whose begin was reached. `in_place` are all of them where they are traces and nothing else:
    these take a call as it is, and no record need be made.
    """

    __slots__ = ("_place", "begun", "hooks", "in_place")

    records: ClassVar[Any] = None
    """`synmod.scope.events`, imported for the first who listens; in each call that would cost microseconds."""

    def __init__(self, hooks: tuple[Hook, ...]) -> None:
        self.hooks = hooks
        self.begun = len(hooks)
        self.in_place = cast("tuple[InPlace, ...]", hooks) if _are_in_place(hooks) else ()
        if Listeners.records is None:
            from synmod.scope import events

            Listeners.records = events
        self._place: Place | None = None

    def place_of(self, frame: CallFrame | None, phase: str) -> Place:
        """Tell where the call is, alike at its begin and its end."""
        if self._place is None:
            self._place = place_of(frame, phase)
        return self._place

    def want(self, method: str) -> bool:
        """Tell whether any of them overrides a method: if not, no record need be made."""
        for hook in self.hooks:  # noqa: SIM110  # a generator would cost every call that is watched
            if method in hook.told:
                return True
        return False


def hooks_for(record: Ambient | None, own: tuple[Hook, ...]) -> Listeners | None:
    """Give those who listen to a call or build: the blocks' hooks, then the module's; None if nobody does.

    Args:
        record: What `ambient()` gives.
        own: The hooks of the module.
    """
    if record is None:
        return Listeners(own) if own else None
    found = record.hooks
    if own:
        found = _united(found, own)
    if record.muted:
        found = tuple(hook for hook in found if not _among(hook, record.muted))
    return Listeners(found) if found else None


def hooks_inside(record: Ambient | None, frame: CallFrame | None) -> Listeners | None:
    """Give those who listen to what happens inside the call of `frame`: also the modules above, outermost first."""
    own: tuple[Hook, ...] = ()
    while frame is not None:
        if frame.owner.hooks:
            own = _united((), (*frame.owner.hooks, *own))
        frame = frame.parent
    return hooks_for(record, own)


def _are_in_place(hooks: tuple[Hook, ...]) -> bool:
    """Tell whether all of them are of the kind that takes calls as they are."""
    for hook in hooks:  # noqa: SIM110  # a generator would cost every call that is watched
        if not hook._in_place:
            return False
    return True


def _united(found: tuple[Hook, ...], more: Iterable[Hook]) -> tuple[Hook, ...]:
    """Join hooks; one found twice stands once, at its first place."""
    united = list(found)
    for hook in more:
        if not _among(hook, united):
            united.append(hook)
    return tuple(united)


def _among(hook: Hook, known: Iterable[Hook]) -> bool:
    """Tell whether this very object is there, whatever `__eq__` says."""
    return any(hook is one for one in known)
