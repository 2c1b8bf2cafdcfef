"""The one note that the innermost failing call adds to an exception."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from synmod.flow.nest import leaves
from synmod.leaves.aio import is_cancellation
from synmod.scope.limits import note_waiting

if TYPE_CHECKING:
    from synmod.module.module import Module
    from synmod.scope.frame import CallFrame

_MARK = "_synmod_noted_in"


def note_failure(error: BaseException, frame: CallFrame, module: Module, args: tuple[Any, ...]) -> None:
    """Note where a call failed, or where a cancellation found it waiting; an interrupt is none of the call's."""
    if is_cancellation(error):
        note_waiting(frame)
    elif isinstance(error, Exception):
        note_call(error, frame, module, args)


def note_call(error: BaseException, frame: CallFrame, module: Module, args: tuple[Any, ...]) -> None:
    """Say in which call `error` arose, unless a call below has said so already.

    An object that is raised again in another run (a shared build error, a scripted reply) keeps its first note.
    """
    if hasattr(error, _MARK):
        return
    note = f"in {frame.path or frame.name!r} ({type(module).__name__}), call {frame.id}"
    if not module._record.ready:
        titles = [str(leaf.name) for leaf in leaves(list(args)) if leaf is not None and hasattr(leaf, "_schema")]
        note += f", while building on {', '.join(titles) or 'no inputs'}"
    object.__setattr__(error, _MARK, True)  # also where a frozen exception refuses plain assignment
    error.add_note(note)
