"""Where modules stand below an entry module: one table, made at its first entry call, kept while nothing moves."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from synmod.leaves.names import KeyPath, parse_path, path_str
from synmod.module.attributes import structural_attributes
from synmod.module.record import ModuleRecord
from synmod.module.sealing import held
from synmod.scope import CallFrame, current_call
from synmod.tree import EDITS, walk

if TYPE_CHECKING:
    from synmod.module.module import Module
    from synmod.tree import Visit


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
