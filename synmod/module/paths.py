"""Where modules stand below an entry module: one table, made at its first entry call, kept while nothing moves."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from synmod.leaves.paths import path_str
from synmod.module.record import ModuleRecord
from synmod.scope.frame import current_call
from synmod.tree.edits import EDITS
from synmod.tree.walk import walk

if TYPE_CHECKING:
    from synmod.module.module import Module


def paths_below(root: Module) -> dict[int, str]:
    """The path of every module and Variable below `root`, by the id of its record or its own."""
    record = root._record
    edits = EDITS.now
    held = record.paths
    if held is not None and held[0] == edits:
        return held[1]
    table = {id(located): path for located, path in _located(root, "")}
    record.paths = (edits, table)
    return table


def _located(root: Module, prefix: str) -> Iterator[tuple[Any, str]]:
    """The record of each module, and each Variable, at and below `root`, with its path at the first visit."""
    for visit in walk(root):
        if not visit.first or visit.kind == "container":
            continue
        located = getattr(visit.value, "_record", None) if visit.kind == "node" else visit.value
        if located is not None:
            below = path_str(visit.path)
            yield located, f"{prefix}/{below}" if prefix and below else prefix or below


def extend_paths(module: Module) -> None:
    """Note where a module that was just built, and what its build made, stand below the entry module."""
    frame = current_call()
    if frame is None:
        return
    table = frame.root.paths
    if not isinstance(table, dict):
        return
    own = table.get(id(module._record))
    prefix = frame.path if own is None else own
    for located, path in _located(module, prefix):
        if own is not None:
            path = table.setdefault(id(located), path)
        if isinstance(located, ModuleRecord):
            located.home = path


def current_path(module: Module) -> str:
    """The path below the entry module of the running call; outside a call, below the root that built it last."""
    frame = current_call()
    if frame is not None:
        known = frame.root.paths.get(id(module._record))
        if known is not None:
            return known
        if frame._owner is module._record:
            return frame.path
    return module._record.home


def note_edit(module: Module) -> None:
    """Count a structural edit of a sealed module: tables of paths are made anew at the next entry call."""
    module._record.version += 1
    EDITS.bump()
