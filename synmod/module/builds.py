"""Builds under way: what one changes is kept or undone as a whole, and code that needs it waits for its end.

A build begun inside another is kept, or undone, with the outermost one. A ContextVar holds the build that the running
code is part of.
"""

from __future__ import annotations

import copy
import dataclasses
import threading
from collections import OrderedDict, defaultdict, deque
from contextvars import ContextVar, Token
from typing import Any, Final, Self

from synmod.errors import BuildError
from synmod.leaves.aio import Signal
from synmod.scope import current_call, reset
from synmod.tree import PathTable, Variable, class_of, outdate

from .frames import extend_paths
from .record import ABSENT, LABELS, Module, ModuleRecord, attributes_of, put_attribute, where

_BUILDING: ContextVar[Build | None] = ContextVar("synmod_building", default=None)

_LOCK = threading.RLock()
"""Guards `record.building`, the builds' `befores` and `waits_for`; held for a few instructions, never across an await.
Reentrant: a coroutine that the garbage collector closes while the lock is held may end a build."""

# -- what a failed build puts back ------------------------------------------------------------------------------------

_FIELDS: Final = (
    *LABELS, "build_config", "built", "flow", "layout", "made_in_build", "ready", "reassigned", "removed", "sealed",
    "statics",
)  # fmt: skip
_EXTENDED: Final = (list, deque)
_UPDATED: Final = (set, dict, OrderedDict, defaultdict)
"""Plain containers that can change, by the method that fills an empty one."""


class Before:
    """A module as it was: its attributes, the plain containers and Variables in them, the fields of its record."""

    __slots__ = ("_attributes", "_containers", "_fields", "_objects", "_values", "module")

    def __init__(self, module: Module) -> None:
        self.module = module
        self._attributes = attributes_of(module)
        self._fields = {name: copy.copy(getattr(module._record, name)) for name in _FIELDS}
        self._containers: list[tuple[Any, Any]] = []
        self._objects: list[tuple[Any, dict[str, Any]]] = []
        self._values: list[tuple[Variable, Any]] = []
        seen: set[int] = set()
        pending: list[Any] = [value for _, value in self._attributes]
        while pending:
            x = pending.pop()
            cls = class_of(x)
            if id(x) in seen:
                continue
            seen.add(id(x))
            if issubclass(cls, Variable):
                self._values.append((x, x.snapshot()))
            elif cls in _EXTENDED or cls in _UPDATED:
                self._containers.append((x, copy.copy(x)))
                pending += x.values() if issubclass(cls, dict) else x
            elif issubclass(cls, tuple | frozenset):
                pending += x
            elif dataclasses.is_dataclass(cls) and hasattr(x, "__dict__"):
                self._objects.append((x, dict(x.__dict__)))
                pending += x.__dict__.values()

    def restore(self) -> None:
        """Put all of it back."""
        for name, _ in attributes_of(self.module):
            put_attribute(self.module, name, ABSENT)
        for name, value in self._attributes:
            put_attribute(self.module, name, value)
        record = self.module._record
        for name, value in self._fields.items():
            setattr(record, name, value)
        record.contract = record.declared = None
        for container, content in self._containers:
            container.clear()
            container.extend(content) if class_of(container) in _EXTENDED else container.update(content)
        for thing, fields in self._objects:
            thing.__dict__.clear()
            thing.__dict__.update(fields)
        for variable, snapshot in self._values:
            variable.restore(snapshot)


# -- builds under way -------------------------------------------------------------------------------------------------


class Build:
    """A build under way, of one module or (None) of a whole tree: a block that code can be part of.

    Left well inside another build, it hands what it remembers to that one; the outermost build makes all of its modules
    ready. Left with an error, everything is undone.
    """

    __slots__ = ("_token", "befores", "in_body", "module", "outer", "over", "waits_for")

    def __init__(self, module: Module | None = None) -> None:
        self.module = module
        self.outer = current_build()
        self.in_body = False
        """Whether the module's own `build` runs, so that `super().build(...)` means its body."""
        self.over = Signal()
        self.befores: dict[int, Before] = {}
        """The modules it changed, by id, in the order in which it came to them."""
        self.waits_for: list[Build] = []
        """What code of this build waits for."""
        self._token: Token[Build | None] | None = None

    def remember(self, module: Module) -> None:
        """Remember a module that is about to be changed."""
        if id(module) not in self.befores:
            self.befores[id(module)] = Before(module)

    def __enter__(self) -> Self:
        self._token = _BUILDING.set(self)
        if self.module is not None:
            self.remember(self.module)
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            with _LOCK:
                around = self.around
                if kind is not None or around is None:
                    self._end(kept=kind is None)
                else:
                    for key, before in self.befores.items():
                        around.befores.setdefault(key, before)
        finally:
            self.over.set()
            if self._token is not None:
                reset(_BUILDING, self._token)

    def _end(self, *, kept: bool) -> None:
        """Make all modules of this build ready, or put everything back."""
        befores = list(self.befores.values())
        if kept:
            for before in befores:
                extend_paths(before.module)
        else:
            for before in reversed(befores):
                before.restore()
        for before in befores:
            record = before.module._record
            if record.building is not None and self in record.building.chain():
                record.building = None
            if kept:
                record.ready = record.built and record.sealed and record.building is None
        self.befores = {}
        frame = current_call()
        own = frame.root.paths if kept and frame is not None else None
        for before in befores:  # tables of paths that other programs made of these modules no longer hold
            outdate(before.module._record, own if isinstance(own, PathTable) else None)

    @property
    def around(self) -> Build | None:
        """The nearest build around this one that still runs; a task may outlive the build that it was started in."""
        outer = self.outer
        while outer is not None and outer.over.is_set:
            outer = outer.outer
        return outer

    def chain(self) -> list[Build]:
        """This build and those around it that still run, from the inside out."""
        chain: list[Build] = [self]
        while (around := chain[-1].around) is not None:
            chain.append(around)
        return chain

    @property
    def outermost(self) -> Build:
        """The build that this one is kept or undone with."""
        return self.chain()[-1]


class _GivesWay(BaseException):
    """Ends an outermost build that waits in a circle with another one; it begins anew when that one has ended.

    Not an Exception, so that the fallbacks of user code let it pass.
    """

    def __init__(self, other: Build) -> None:
        super().__init__()
        self.other = other


def gave_way_to(error: BaseException) -> Build | None:
    """Return the build whose end the outermost build must await before it begins anew; None for any other error."""
    if current_build() is not None:
        return None
    while isinstance(error, BaseExceptionGroup):  # of a task group in a `build`
        group: BaseExceptionGroup[_GivesWay] | None = error.subgroup(_GivesWay)  # pyright: ignore[reportUnknownMemberType]
        if group is None:
            return None
        error = group.exceptions[0]
    return error.other if isinstance(error, _GivesWay) else None


def current_build() -> Build | None:
    """Return the innermost build that the running code is part of, if it has not ended; None outside."""
    build = _BUILDING.get()
    return build if build is None or not build.over.is_set else build.around


def remember(module: Module) -> bool:
    """Remember a module, before it changes, in the build that the running code is part of; whether there is one."""
    build = current_build()
    if build is not None:
        build.remember(module)
    return build is not None


def running_own_build(record: ModuleRecord) -> Build | None:
    """Return the build of this module if the running code is its body, else None."""
    build = current_build()
    owned = build is not None and build.in_body and build.module is not None and build.module._record is record
    return build if owned else None


def is_building_tree() -> bool:
    """Whether the running code is part of `sm.build`."""
    build = current_build()
    return build is not None and any(each.module is None for each in build.chain())


def is_ready_here(record: ModuleRecord) -> bool:
    """Whether the module is built for the running code: for everybody, or by the outermost build it is part of."""
    if record.ready:
        return True
    build, current = record.building, current_build()
    return build is not None and build.over.is_set and current is not None and build.outermost is current.outermost


def is_built_here(record: ModuleRecord) -> bool:
    """Whether the module's own build is done; code outside sees it when the outermost build has ended."""
    return record.built and (record.building is None or is_ready_here(record))


def take_turn(module: Module) -> tuple[Build | None, Build | None]:
    """Begin the build of a module, or find the one to wait for: (mine, None), (None, other) or, built, (None, None).

    Raises:
        BuildError: The running code is part of the other build, or of one that the other waits for.
        _GivesWay: Two outermost builds would wait for one another.
    """
    record, current = module._record, current_build()
    with _LOCK:
        other = record.building
        if other is None:
            if not record.built:
                record.building = Build(module)
            return record.building, None
        if current is None:
            return None, other.outermost
        chain, same = current.chain(), other.outermost is current.outermost
        target = other if same else other.outermost
        if _leads_to(target, chain):
            if same:
                raise waits_for_itself(module)
            raise _GivesWay(target)
        for build in chain:
            build.waits_for.append(target)
        return None, target


def _leads_to(start: Build, goals: list[Build]) -> bool:
    """Whether a build is one of the goals, or waits for one, directly or through others."""
    seen: set[Build] = set()
    pending = [start]
    while pending:
        build = pending.pop()
        if build in goals:
            return True
        if build not in seen:
            seen.add(build)
            pending += build.waits_for
    return False


async def wait_for(other: Build) -> None:
    """Wait until a build has ended; `take_turn` has noted that the running code does."""
    current = current_build()
    try:
        await other.over.wait()
    finally:
        with _LOCK:
            for build in () if current is None else current.chain():
                if other in build.waits_for:
                    build.waits_for.remove(other)


def waits_for_itself(module: Module) -> BuildError:
    """Return the error for code of a build that would wait for its own end."""
    current = current_build()
    builders = [] if current is None else [where(each.module) for each in reversed(current.chain()) if each.module]
    return BuildError(
        f"{where(module)} waits for itself: it is being built, and that needs {' > '.join(builders) or 'the module'}, "
        "which needs it. Build one of them first: `await sm.build(module, Schema)`."
    )
