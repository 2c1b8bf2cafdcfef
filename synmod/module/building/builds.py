"""One running build: what it is part of, and how it ends.

Builds begun inside a build are its inner ones; they are committed, or undone, with the outermost. The ContextVar says
in which build a piece of code runs, so that a module called there joins it.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextvars import ContextVar, Token
from types import TracebackType
from typing import TYPE_CHECKING, Self

from synmod.errors import BuildError, DeadlineExceeded
from synmod.leaves.aio import Signal, is_cancellation
from synmod.module.building.undo import Undo, undo_all
from synmod.module.interface.where import where
from synmod.module.paths import extend_paths
from synmod.scope import reset
from synmod.tree import BEFORE_WRITE, EDITS

if TYPE_CHECKING:
    from synmod.module.module import Module
    from synmod.module.record import ModuleRecord
    from synmod.tree import Variable

_BUILDING: ContextVar[Build | None] = ContextVar("synmod_building", default=None)
LOCK = threading.RLock()
"""Guards `record.building`, the tree of builds, and who waits for whom; held for a few instructions, never across an
await. Reentrant: a coroutine that the collector closes while it is held may end a build."""


class Build:
    """One running build of a module, or of a whole tree (`module` None): a block that code can be part of.

    Left without an error it is handed to the build around it, or committed; left with one it is undone.
    """

    __slots__ = (
        "_token",
        "awaited_by",
        "ended",
        "error",
        "in_body",
        "inner",
        "module",
        "outer",
        "schemas",
        "signal",
        "traceback",
        "undo",
        "waits_for",
    )

    def __init__(self, module: Module | None = None, schemas: str = "") -> None:
        self.module = module
        self.schemas = schemas
        """What it is built on, in a form that tells equal inputs."""
        self.outer = current_build()
        self.inner: list[Build] = []
        """Those begun inside it that have ended well."""
        self.undo = Undo()
        self.signal = Signal()
        self.ended = False
        self.in_body = False
        """Whether the module's own `build` runs, so that `super().build(...)` means its body."""
        self.awaited_by = 0
        self.error: BaseException | None = None
        self.traceback: TracebackType | None = None
        self.waits_for: list[Build] = []
        self._token: Token[Build | None] | None = None

    def __enter__(self) -> Self:
        self._token = _BUILDING.set(self)
        return self

    def __exit__(self, _: type[BaseException] | None, error: BaseException | None, __: TracebackType | None) -> None:
        try:
            if error is None:
                self._succeed()
            else:
                self._fail(error)
        finally:
            if self._token is not None:
                reset(_BUILDING, self._token)

    @property
    def around(self) -> Build | None:
        """The nearest build around it that still runs; a task may outlive the build that it was started in."""
        outer = self.outer
        while outer is not None and outer.ended:
            outer = outer.outer
        return outer

    @property
    def outermost(self) -> Build:
        """The build that this one is committed or undone with."""
        build = self
        while (outer := build.around) is not None:
            build = outer
        return build

    def chain(self) -> list[Build]:
        """This build and those around it, from the inside out."""
        chain: list[Build] = []
        build: Build | None = self
        while build is not None:
            chain.append(build)
            build = build.around
        return chain

    def with_inner(self) -> Iterator[Build]:
        """This build and all builds inside it that ended well, each before what is inside it."""
        todo: list[Build] = [self]
        while todo:
            build = todo.pop()
            yield build
            todo.extend(reversed(build.inner))

    def waits_for_itself(self, module: Module, other: Build | None = None) -> BuildError:
        """The error for code of this build that would wait, through `other`, for its own end."""
        way = "its build calls it" if other is None else f"it is being built by {other.names()}"
        return BuildError(
            f"{where(module)} waits for itself: {way}, which waits for {self.names()}. "
            "Build one of them first: `await sm.build(module, Schema)`."
        )

    def names(self) -> str:
        """The modules that it builds, from the outside in."""
        chain = [each.module for each in reversed(self.chain()) if each.module is not None]
        return " > ".join(where(module) for module in chain) or "a build of the whole tree"

    def _succeed(self) -> None:
        """Hand this build to the one around it; the outermost makes all its modules ready for everybody."""
        if self.around is None:
            for build in self.with_inner():
                if build.module is not None:
                    extend_paths(build.module)
        with LOCK:
            outer = self.outer = self.around
            self.ended = True
            builds: list[Build] = [self] if outer is not None else list(self.with_inner())
            if outer is not None:
                outer.inner.append(self)
            else:
                for record in _records(builds):
                    record.ready = True
                    record.building = None
        _let_go(builds)

    def _fail(self, error: BaseException) -> None:
        """Put everything back as it was before, and let those who wait go on."""
        builds = list(self.with_inner())
        undo_all((build.undo for build in builds), builds)
        EDITS.bump()  # structure that was sealed is open again: nobody shall trust what they remember of it
        handed_over = is_cancellation(error) or not isinstance(error, Exception) or isinstance(error, DeadlineExceeded)
        with LOCK:
            if self.awaited_by and not handed_over:
                self.error, self.traceback = error, error.__traceback__
            for build in builds:
                build.ended = True
            for record in _records(builds):
                record.building = None
        _let_go(builds)


def _records(builds: list[Build]) -> Iterator[ModuleRecord]:
    """The records of the modules that these builds are of."""
    return (build.module._record for build in builds if build.module is not None)


def _let_go(builds: list[Build]) -> None:
    """Wake who waits for these builds, and cut what holds them together, so that counting frees them."""
    for build in builds:
        build.signal.set()
    for build in builds:
        if build.around is None:
            build.inner = []
            build.undo = Undo()


def current_build() -> Build | None:
    """The innermost build that the running code is a part of, None outside; one that has ended holds no longer."""
    build = _BUILDING.get()
    return build if build is None or not build.ended else build.around


def running_own_build(record: ModuleRecord) -> Build | None:
    """The build of this module if the running code is its body, else None."""
    build = current_build()
    owned = build is not None and build.in_body and build.module is not None and build.module._record is record
    return build if owned else None


def is_ready_here(record: ModuleRecord) -> bool:
    """Tell whether the module is built for the running code: for everybody, or by the build it is a part of."""
    if record.ready:
        return True
    build, current = record.building, current_build()
    return build is not None and build.ended and current is not None and build.outermost is current.outermost


def is_built_here(record: ModuleRecord) -> bool:
    """Tell whether the module's own build is done; others learn of it when the outermost build has ended."""
    return record.built and (record.building is None or is_ready_here(record))


def current_undo() -> Undo | None:
    """What has to remember what the running code is about to change; None outside of builds."""
    build = current_build()
    return None if build is None else build.undo


def _remember_write(variable: Variable) -> None:
    undo = current_undo()
    if undo is not None:
        undo.remember_variable(variable)


BEFORE_WRITE["build"] = _remember_write
