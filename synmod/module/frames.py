"""Where modules stand and calls run: paths below an entry module, the frame of a symbolic call, `sow`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextvars import Token
from types import TracebackType
from typing import TYPE_CHECKING, Any

from synmod.errors import DataError
from synmod.leaves.frozen import frozen
from synmod.leaves.names import KeyPath, check_name, parse_path, path_str
from synmod.scope import FRAME, CallFrame, RootFrame, ambient, current_call, nearest_live, phase_in, reset
from synmod.tree import EDITS, Sown, Variable, open_captures, walk

from .record import ModuleRecord, held, structural_attributes, where

if TYPE_CHECKING:
    from synmod.tree import Visit

    from .module import Module


class PathTable(dict[int, str]):
    """The path of every module and Variable below one entry module, by the id of a module's record, or its own.

    It keeps what stands below the root alive, since an id is taken again by what comes after.
    """

    __slots__ = ("_below", "_steps", "edits")

    def __init__(self, edits: int) -> None:
        super().__init__()
        self.edits = edits
        """The structural edit that it was made at."""
        self._below: list[Any] = []
        self._steps: dict[str, KeyPath] = {}  # of those whose text does not tell all

    def note(self, located: Any, path: str, steps: KeyPath) -> str:
        """Give something a path, unless it has one; the first is canonical."""
        key = id(located)
        if key not in self:
            self[key] = path
            if any(type(step) is int for step in steps):
                self._steps[path] = steps
            if path:  # not the root, which holds this table
                self._below.append(located)
        return self[key]

    def steps_of(self, path: str) -> KeyPath:
        """Take the text of a path apart; the table knows which steps are ints."""
        names: list[str] = []
        while path and path not in self._steps:
            path, _, last = path.rpartition("/")
            names += parse_path(last)
        return (*self._steps.get(path, ()), *reversed(names))


def steps_of(frame: CallFrame, path: str) -> KeyPath:
    """Take the text of a path below the entry module of a running call apart."""
    table = frame.root.paths
    return table.steps_of(path) if isinstance(table, PathTable) else parse_path(path)


def paths_below(root: Module) -> PathTable:
    """The paths below an entry module."""
    record = root._record
    edits = EDITS.now
    table = record.paths
    if table is not None and table.edits == edits:
        return table
    table = PathTable(edits)
    visits = list(walk(root))
    for located, path, steps in _located(visits, ""):
        table.note(located, path, steps)
        if isinstance(located, ModuleRecord) and located.home is None:
            located.home = path
    record.paths = table
    return table


def _located(visits: list[Visit], prefix: str) -> Iterator[tuple[Any, str, KeyPath]]:
    """The record of each module, and each Variable, that a walk visits, with its path at the first visit.

    The path comes as text, which begins with that of the root, and as steps below the root.
    """
    for visit in visits:
        if not visit.first or visit.kind == "container":
            continue
        located = getattr(visit.value, "_record", None) if visit.kind == "node" else visit.value
        if located is not None:
            steps = visit.path
            below = path_str(steps)
            yield located, f"{prefix}/{below}" if prefix and below else prefix or below, steps


def extend_paths(module: Module) -> None:
    """Note what a module that was just built or sealed holds since the table of the running entry call was made."""
    frame = current_call()
    table = None if frame is None else frame.root.paths
    if frame is None or not isinstance(table, PathTable):
        return
    record = module._record
    own = table.get(id(record))
    record.home = prefix = frame.path if own is None else own
    above = table.steps_of(prefix)
    for name, value in structural_attributes(module):
        for below, part, _ in held(value):
            if own is not None and id(getattr(part, "_record", part)) in table:
                continue
            at = (name, *below)
            visits = list(walk(part))
            place = "/".join(filter(None, (prefix, path_str(at))))
            for located, path, steps in _located(visits, place):
                known = path if own is None else table.note(located, path, (*above, *at, *steps))
                if isinstance(located, ModuleRecord) and located.home is None:
                    located.home = known


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
            training = vars(module).get("training", record.declaration.call.training_on_class)
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
