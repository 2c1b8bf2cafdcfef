"""The one note that the innermost failing call adds to an exception."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from synmod.errors import add_note
from synmod.leaves.aio import is_cancellation
from synmod.module.interface.nests import each_leaf, is_datum, title_of
from synmod.scope import note_waiting

if TYPE_CHECKING:
    from synmod.module.module import Module
    from synmod.scope import CallFrame

_MARK = "_synmod_noted_in"


def note_failure(error: BaseException, frame: CallFrame, module: Module, inputs: Any) -> None:
    """Note where a call failed, or where a cancellation found it waiting; an interrupt is none of the call's.

    Args:
        error: What was raised; a note is added unless a call below has done so already. An object that is raised again
            in another run (a shared build error, a scripted reply) keeps its first note.
        frame: The frame of the call.
        module: The module that was called.
        inputs: Its positional arguments.
    """
    if is_cancellation(error):
        note_waiting(frame)
    elif isinstance(error, Exception) and _MARK not in error.__dict__:
        note = f"in {frame.path or frame.name!r} ({type(module).__name__}), call {frame.id}"
        if not module._record.ready:
            titles = [title_of(leaf) for leaf in each_leaf(inputs) if is_datum(leaf)]
            if titles or not inputs:  # what is no data is told of by the error itself
                note += f", while building on {', '.join(titles) or 'no inputs'}"
        add_note(error, note)
        error.__dict__[_MARK] = True
