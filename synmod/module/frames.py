"""Where modules stand and calls run: paths below an entry module, the frame of a symbolic call, `sow`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextvars import Token
from types import TracebackType
from typing import Any

from synmod.errors import DataError
from synmod.leaves.frozen import frozen
from synmod.leaves.names import KeyPath, check_name, parse_path
from synmod.scope import FRAME, CallFrame, RootFrame, ambient, current_call, nearest_live, phase_in, reset
from synmod.tree import PathTable, Sown, Variable, open_captures, path_table, walk

from .record import Module, ModuleRecord, held, structural_attributes, where


def steps_of(frame: CallFrame, path: str) -> KeyPath:
    """Take the text of a path below the entry module of a running call apart."""
    table = frame.root.paths
    return table.steps_of(path) if isinstance(table, PathTable) else parse_path(path)


def paths_below(root: Module) -> PathTable:
    """The paths below an entry module. Hot: one look at each entry call."""
    table = root._record.paths
    if table is not None and table.is_current:
        return table
    table = path_table(root)
    _note_homes(table, (root._record, *table.located))
    return table


def extend_paths(module: Module) -> None:
    """Note what a module that was just built or sealed holds since the table of the running entry call was made."""
    frame = current_call()
    table = None if frame is None else frame.root.paths
    if frame is None or not isinstance(table, PathTable):
        return
    record = module._record
    own = table.get(id(record))
    record.home = prefix = frame.path if own is None else own
    if own is None:  # made inside a call: it has no path below the entry module
        table = PathTable()
    for name, value in structural_attributes(module):
        for below, part, _ in held(value):
            if id(getattr(part, "_record", part)) not in table:
                _note_homes(table, table.add(walk(part), prefix, (name, *below)))


def _note_homes(table: PathTable, located: Iterable[Any]) -> None:
    """Note the path of each module that has none yet."""
    for each in located:
        if isinstance(each, ModuleRecord) and each.home is None:
            each.home = table[id(each)]


def current_path(module: Module) -> str:
    """The path below the entry module of the running call; outside a call, below the root that built it last."""
    record = module._record
    frame = current_call()
    if frame is None:
        return record.home or ""
    known = frame.root.paths.get(id(record))
    if known is not None:
        return known
    running = frame_of(record, frame)
    if running is not None:
        return running.path
    return f"{frame.path}/{record.name}".lstrip("/")


def frame_of(record: ModuleRecord, frame: CallFrame | None) -> CallFrame | None:
    """The innermost running call of a module."""
    while frame is not None and frame.owner is not record:
        frame = frame.parent
    return frame


class SymbolicFrame:
    """The block in which a module runs on symbols: its frame is the current one.

    A class, because what `contextlib` makes of a generator writes to exceptions that pass, which frozen ones refuse.
    """

    __slots__ = ("_frame", "_hands_on", "_token", "left")

    def __init__(self, module: Module, training: bool | None = None, *, hands_on: bool = True) -> None:
        self._hands_on = hands_on
        """Whether what was stashed inside goes on to the calling module."""
        self.left: Mapping[Any, Any] | None = None
        """What the call has left beside its outputs, once it has ended."""
        parent = nearest_live(FRAME.get())
        phase = phase_in(ambient(), parent)
        record = module._record
        if training is None and parent is not None:
            training = parent.decided_training
        if training is None:
            training = module.__dict__.get("training", record.declaration.call.training_on_class)
        if parent is None:
            self._frame: CallFrame = RootFrame(record, training, phase, True, paths_below(module))
        else:
            self._frame = CallFrame(parent, record, training, phase, True)
        self._token: Token[CallFrame | None] | None = None

    def __enter__(self) -> CallFrame:
        self._token = FRAME.set(self._frame)
        return self._frame

    def __exit__(self, _: type[BaseException] | None, error: BaseException | None, __: TracebackType | None) -> None:
        layer = self._frame.layer
        try:
            if layer is not None and error is None and self._hands_on:
                self.left = layer.left()
                layer.commit()
            elif layer is not None:
                layer.drop()
        finally:
            self._frame.live = False
            self._frame.layer = None
            if self._token is not None:
                reset(FRAME, self._token)


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
