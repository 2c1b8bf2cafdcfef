"""`sow`: what a module notes on the way to a result, for the captures of the running call."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from synmod.errors import DataError
from synmod.leaves.frozen import frozen
from synmod.leaves.names import check_name
from synmod.module.interface.where import where
from synmod.module.paths import current_path, frame_of, steps_of
from synmod.scope import current_call
from synmod.tree import Sown, Variable, open_captures

if TYPE_CHECKING:
    from synmod.module.module import Module


def sow(module: Module, kind: type[Variable], name: str, value: Any) -> bool:
    """Add a value to the open captures of its type; whether there was one."""
    frame = current_call()
    wanted = () if frame is None or frame.symbolic else open_captures(kind)
    if frame is None or not wanted:
        return False
    check_name(name, "variable")
    try:
        json = frozen(value)
    except DataError as error:
        raise DataError(f"{where(module)}: sow of {name!r}: {error}") from None
    root, giver = frame.root, frame_of(module._record, frame) or frame
    path = (*steps_of(frame, current_path(module)), name)
    sown = Sown(root.started, root.id, giver.number, path, kind, json)
    for capture in wanted:
        capture.add(sown)
    return True
