"""A build as a transaction: what it changed is kept or undone as a whole, and builds that need one another are found.

A build begun inside another is kept or undone together with the outermost one. A ContextVar holds the build that the
running code is part of.
"""

from __future__ import annotations

import copy
import dataclasses
from collections import OrderedDict, defaultdict, deque
from contextvars import Token
from typing import TYPE_CHECKING, Any, Final, Self

from synmod import leaves, scope
from synmod.errors import BuildError
from synmod.tree import PathTable, Variable, class_of, invalidate_paths, own_impl

from .structure import BUILDING, LABELS, ModuleRecord, current_build, extend_paths, where

if TYPE_CHECKING:
    from .module import Module


# -- snapshots ---------------------------------------------------------------------------------------------------------


_CONFIG: Final = ("arguments", "build_config", "flow", "layout", "made_in_build", "reassigned", "removed", "statics")
_FIELDS: Final = (*LABELS, *_CONFIG, "built", "ready", "sealed")


_EXTENDED: Final = (list, deque)


_UPDATED: Final = (set, dict, OrderedDict, defaultdict)
"""Mutable plain containers, by the method that fills an empty one."""


class Snapshot:
    """A snapshot of a module: its attributes, the plain containers in them, the fields of its record."""

    __slots__ = ("_containers", "_fields", "module")

    def __init__(self, module: Module) -> None:
        self.module = module
        self._fields = {name: copy.copy(getattr(module._record, name)) for name in _FIELDS}
        self._containers: list[tuple[Any, Any]] = []
        visited: set[int] = set()
        pending: list[Any] = [module.__dict__]
        while pending:
            x = pending.pop()
            cls = class_of(x)
            if id(x) in visited:
                continue
            visited.add(id(x))
            if cls in _EXTENDED or cls in _UPDATED:
                content = copy.copy(x)
                self._containers.append((x, content))
                pending += content.values() if issubclass(cls, dict) else content
            elif issubclass(cls, tuple | frozenset):
                pending += x
            elif dataclasses.is_dataclass(cls) and own_impl(cls) is None:
                pending.append(getattr(x, "__dict__", None))

    def restore(self) -> None:
        """Restore the module."""
        record = self.module._record
        for name, value in self._fields.items():
            setattr(record, name, value)
        record.contract = record.declared = None
        for container, content in self._containers:
            container.clear()
            container.extend(content) if class_of(container) in _EXTENDED else container.update(content)


# -- running builds ----------------------------------------------------------------------------------------------------


_LOCK = leaves.aio.lock()
"""Guards `record.building`, the builds' `snapshots` and `waits_for`; held for a few instructions, never across an
await. Reentrant: a coroutine that the garbage collector closes while the lock is held may end a build."""


class Build:
    """A running build, of one module or (None) of a whole tree: a block that code can be part of.

    On success inside another build, its snapshots pass to that one; the outermost build makes all modules ready. On an
    error, everything is undone.
    """

    __slots__ = ("_token", "module", "outer", "over", "snapshots", "values", "waits_for")

    def __init__(self, module: Module | None = None) -> None:
        self.module = module
        self.outer = current_build()
        self.over = leaves.Signal()
        self.snapshots: dict[int, Snapshot] = {}
        """Snapshots of the changed modules, by id, in order of their first change."""
        self.values: dict[int, tuple[Variable, Any]] = {}
        """The changed Variables, by id, each with its snapshot."""
        self.waits_for: list[Build] = []
        """The builds that code of this build waits for."""
        self._token: Token[Build | None] | None = None

    def remember(self, module: Module) -> None:
        """Take a snapshot of a module that is about to change, unless there is one."""
        if id(module) not in self.snapshots:
            self.snapshots[id(module)] = Snapshot(module)

    def __enter__(self) -> Self:
        self._token = BUILDING.set(self)
        if self.module is not None:
            self.remember(self.module)
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            with _LOCK:
                around = self.around
                if kind is not None or around is None:
                    self._end(is_kept=kind is None)
                else:
                    for key, before in self.snapshots.items():
                        around.snapshots.setdefault(key, before)
                    for key, value in self.values.items():
                        around.values.setdefault(key, value)
        finally:
            self.over.set()
            if self._token is not None:
                leaves.reset(BUILDING, self._token)

    def _end(self, *, is_kept: bool) -> None:
        """Make all modules of this build ready, or restore them."""
        snapshots = list(self.snapshots.values())
        if is_kept:
            for before in snapshots:
                extend_paths(before.module)
        else:
            for before in reversed(snapshots):
                before.restore()
            for variable, snapshot in self.values.values():
                variable.restore(snapshot)
        for before in snapshots:
            record = before.module._record
            if record.building is not None and self in record.building.chain():
                record.building = None
            if is_kept:
                record.ready = record.built and record.sealed and record.building is None
        self.snapshots, self.values = {}, {}
        frame = scope.current_call()
        own = frame.run.paths if is_kept and frame is not None else None
        for before in snapshots:  # path tables of other programs that list these modules are outdated
            invalidate_paths(before.module._record, own if isinstance(own, PathTable) else None)

    def undo_lost(self) -> None:
        """Undo the builds of the chain whose loop was closed before they ended."""
        for build in self.chain():
            if build.over.is_lost:
                build._end(is_kept=False)
                build.over.set()

    @property
    def around(self) -> Build | None:
        """The nearest enclosing build that still runs; a task may outlive the build that it was started in."""
        outer = self.outer
        while outer is not None and outer.over.is_set:
            outer = outer.outer
        return outer

    def chain(self) -> list[Build]:
        """Return this build and the enclosing builds that still run, from the inside out."""
        chain: list[Build] = [self]
        while (around := chain[-1].around) is not None:
            chain.append(around)
        return chain

    @property
    def outermost(self) -> Build:
        """The build that this one is kept or undone with."""
        return self.chain()[-1]


def remember_variable(variable: Variable) -> None:
    """Take a snapshot of a Variable, before it changes, for the current build."""
    build = current_build()
    if build is not None:
        build.values.setdefault(id(variable), (variable, variable.snapshot()))


def current_own_build(record: ModuleRecord) -> Build | None:
    """Return the build of this module if its body is running, in which `super().build()` runs the base's body."""
    build = current_build()
    return build if build is not None and build.module is not None and build.module._record is record else None


def is_building_tree() -> bool:
    """Whether the running code is part of `sm.build`."""
    build = current_build()
    return build is not None and any(block.module is None for block in build.chain())


def is_ready_here(record: ModuleRecord) -> bool:
    """Whether the module is built for the running code: for all callers, or by the outermost build around both."""
    if record.ready:
        return True
    build, current = record.building, current_build()
    return build is not None and build.over.is_set and current is not None and build.outermost is current.outermost


def is_built_here(record: ModuleRecord) -> bool:
    """Whether the module's own build is done; for code outside, only after the outermost build has ended."""
    return record.built and (record.building is None or is_ready_here(record))


# -- waiting for another build -----------------------------------------------------------------------------------------


class _RestartBuild(BaseException):
    """Ends an outermost build that would deadlock with another one; it starts again after the other has ended.

    Not an Exception, so that `except Exception` in user code does not catch it.
    """

    def __init__(self, blocker: Build) -> None:
        super().__init__()
        self.blocker = blocker


def build_to_wait_for(error: BaseException) -> Build | None:
    """Return the build that the outermost build must await before it starts again; None for any other error."""
    if current_build() is not None:
        return None
    while isinstance(error, BaseExceptionGroup):  # of a task group in a `build`
        group: BaseExceptionGroup[_RestartBuild] | None = error.subgroup(_RestartBuild)  # pyright: ignore[reportUnknownMemberType]
        if group is None:
            return None
        error = group.exceptions[0]
    return error.blocker if isinstance(error, _RestartBuild) else None


def take_turn(module: Module) -> tuple[Build | None, Build | None]:
    """Begin the build of a module, or return the build to wait for.

    Returns:
        `(own, None)` to run a new build, `(None, other)` to wait, `(None, None)` if the module is built.

    Raises:
        BuildError: The running code is part of the other build, or of one that the other waits for.
        _RestartBuild: Two outermost builds would wait for one another.
    """
    record, current = module._record, current_build()
    with _LOCK:
        if record.building is not None:
            record.building.undo_lost()
        running = record.building
        if running is None:
            if not record.built:
                record.building = Build(module)
            return record.building, None
        if current is None:
            return None, running.outermost
        chain, same = current.chain(), running.outermost is current.outermost
        target = running if same else running.outermost
        if _leads_to(target, chain):
            if same:
                raise self_wait_error(module)
            raise _RestartBuild(target)
        for build in chain:
            build.waits_for.append(target)
        return None, target


def _leads_to(start: Build, goals: list[Build]) -> bool:
    """Whether a build is one of the goals, or waits for one, directly or through others."""
    return start in goals or any(_leads_to(build, goals) for build in start.waits_for)


async def wait_for(blocker: Build) -> None:
    """Wait until a build has ended; then remove it from `waits_for`, where `take_turn` has put it."""
    current = current_build()
    try:
        await blocker.over.wait()
    finally:
        with _LOCK:
            for build in () if current is None else current.chain():
                if blocker in build.waits_for:
                    build.waits_for.remove(blocker)


def self_wait_error(module: Module) -> BuildError:
    """Return the error for a build that would wait for its own end."""
    current = current_build()
    builders = [] if current is None else [where(build.module) for build in reversed(current.chain()) if build.module]
    return BuildError(
        f"{where(module)} waits for itself: it is being built, and that needs {' > '.join(builders) or 'the module'}, "
        "which needs it. Build one of them first: `await sm.build(module, Schema)`."
    )
