"""Building: once for all concurrent callers, all or nothing, and never in a circle.

One `Build` stands for one running build. Builds begun inside it are its inner ones; they are committed, or undone, with
the outermost. The ContextVar says in which build a piece of code runs, so that a module called there joins it.
"""

from __future__ import annotations

import inspect
import threading
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from types import TracebackType
from typing import TYPE_CHECKING, Any

from synmod.errors import BuildError, DeadlineExceeded
from synmod.flow.nest import map_leaves
from synmod.leaves.aio import Signal, is_cancellation
from synmod.module.build_events import announced
from synmod.module.declaration import POSITIONAL
from synmod.module.inputs import where
from synmod.module.nests import fresh
from synmod.module.paths import extend_paths
from synmod.module.sealing import seal
from synmod.module.undo import Undo
from synmod.scope.ambient import reset

if TYPE_CHECKING:
    from synmod.module.module import Module
    from synmod.module.record import ModuleRecord

_BUILDING: ContextVar[Build | None] = ContextVar("synmod_building", default=None)
_LOCK = threading.Lock()
"""Guards `record.building` and who waits for whom; held for a few instructions, never across an await."""


class Build:
    """One running build of a module, or of a whole tree (`record` None)."""

    __slots__ = (
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

    def __init__(self, module: Module | None, outer: Build | None, schemas: Any) -> None:
        self.module = module
        self.outer = outer
        self.schemas = schemas
        self.inner: list[Build] = []
        self.undo = Undo()
        self.signal = Signal()
        self.ended = False
        self.in_body = False
        self.error: BaseException | None = None
        self.traceback: TracebackType | None = None
        self.waits_for: list[Build] = []

    @property
    def outermost(self) -> Build:
        """The build that this one is committed or undone with."""
        build = self
        while build.outer is not None:
            build = build.outer
        return build

    def chain(self) -> list[Build]:
        """This build and those around it, from the inside out."""
        chain: list[Build] = [self]
        while chain[-1].outer is not None:
            chain.append(chain[-1].outer)
        return chain


def current_build() -> Build | None:
    """The innermost build that the running code is a part of, None outside; one that has ended holds no longer."""
    build = _BUILDING.get()
    while build is not None and build.ended:
        build = build.outer
    return build


def is_in_own_build(record: ModuleRecord) -> bool:
    """Tell whether the running code is the body of this module's own build."""
    build = current_build()
    return build is not None and build.in_body and build.module is not None and build.module._record is record


def is_ready_here(record: ModuleRecord) -> bool:
    """Tell whether the module is built for the running code: for everybody, or by the build it is a part of."""
    if record.ready:
        return True
    build, current = record.building, current_build()
    return build is not None and build.ended and current is not None and build.outermost is current.outermost


def is_built_here(record: ModuleRecord) -> bool:
    """Tell whether the module's own build is done; others learn of it when the outermost build has ended."""
    return record.built and (record.building is None or is_ready_here(record))


async def ensure_built(module: Module, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
    """Build `module` on these inputs unless it is built; wait where somebody else is building it.

    Args:
        module: The module.
        args: Positional inputs, as `call` gets them.
        kwargs: Keyword inputs.

    Raises:
        BuildError: The build waits for itself, or cannot be given its inputs.
        Exception: What the module's `build` raised, the same object for all who waited with the same schemas.
    """
    record = module._record
    while not is_ready_here(record):
        if not record.declaration.defines_build or (record.built and record.building is None):
            _seal_here(module)
            return
        schemas = schema_key([args, dict(kwargs)])
        with _LOCK:
            other = record.building
            if other is None and not record.built:
                record.building = mine = Build(module, current_build(), schemas)
            else:
                mine = None
        if mine is not None:
            await _build(mine, module, args, kwargs)
            return
        if other is not None:
            await _wait_for(other, module)
            if other.error is not None and other.schemas == schemas:
                raise other.error.with_traceback(other.traceback)


def schema_key(nest: Any) -> str:
    """What makes the schemas of two inputs equal: their structure, and the identity of each schema."""
    return repr(map_leaves(lambda leaf: id(getattr(leaf, "_schema", None)), nest))


def _seal_here(module: Module) -> None:
    """Seal a module that has nothing to build; inside a build it opens again should the build fail."""
    build = current_build()
    if build is not None:
        for each in build.chain():
            each.undo.remember(module)
    seal(module)


async def _build(mine: Build, module: Module, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
    """Run the module's own `build` as `mine`."""
    with building(mine):
        mine.undo.remember_below(module)
        before = frozenset(vars(module))
        inputs = _build_inputs(module, args, kwargs)
        async with announced(module, inputs.args, inputs.kwargs):
            mine.in_body = True
            pending = module.build(*inputs.args, **inputs.kwargs)
            if inspect.isawaitable(pending):
                await pending
            mine.in_body = False
        mark_built(module, dict(inputs.arguments), frozenset(vars(module)) - before)


def mark_built(module: Module, arguments: dict[str, Any], made: frozenset[str]) -> None:
    """Note that the module's own build is done, what it was built on and what it made, and seal it."""
    record = module._record
    record.build_config = arguments
    record.made_in_build = made
    record.built = True
    record.contract = None
    record.declared = None
    seal(module)


def _build_inputs(module: Module, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> inspect.BoundArguments:
    """Symbols in place of the data: as many positional ones as `build` takes, and the keywords that it names."""
    signature = module._record.declaration.build
    parameters = list(signature.parameters.values())
    star = any(p.kind is inspect.Parameter.VAR_POSITIONAL for p in parameters)
    room = sum(p.kind in POSITIONAL for p in parameters)
    positional = tuple(fresh(argument) for argument in (args if star else args[:room]))
    taken = {p.name for p in parameters[: len(positional)]}
    named = {name: fresh(value) for name, value in kwargs.items() if name in signature.parameters and name not in taken}
    try:
        return signature.bind(*positional, **named)
    except TypeError as error:
        raise BuildError(
            f"{where(module)}: build{signature} cannot be given its inputs: {error}. "
            "It receives a symbol for each positional input of call, and the keyword data that it names."
        ) from None


@contextmanager
def building(build: Build) -> Generator[None]:
    """Let code in the block be part of `build`, and end it with the block.

    On success it is handed to the outer build, or committed; on any failure it is undone.
    """
    token = _BUILDING.set(build)
    try:
        yield
    except BaseException as error:
        _undo(build, error)
        raise
    else:
        build.ended = True
        if build.outer is None:
            _commit(build)
        else:
            build.outer.inner.append(build)
            build.signal.set()
    finally:
        reset(_BUILDING, token)


def _commit(build: Build) -> None:
    """Make the modules of a finished outermost build ready for everybody."""
    builds = list(_with_inner(build))
    for each in builds:
        if each.module is not None:
            record = each.module._record
            extend_paths(each.module)
            record.ready = True
            record.building = None
    for each in builds:
        each.signal.set()


def _undo(build: Build, error: BaseException) -> None:
    """Put everything back as it was before `build`, and let those who wait go on."""
    shared = not is_cancellation(error) and isinstance(error, Exception) and not isinstance(error, DeadlineExceeded)
    builds = list(_with_inner(build))
    for each in reversed(builds):
        each.undo.restore()
    build.undo.restore()
    for each in builds:
        each.ended = True
        if each is build and shared:
            each.error, each.traceback = error, error.__traceback__
        if each.module is not None:
            each.module._record.building = None
    for each in builds:
        each.signal.set()


def _with_inner(build: Build) -> Iterator[Build]:
    """A build and all builds inside it, each before what is inside it."""
    todo = [build]
    while todo:
        each = todo.pop()
        yield each
        todo.extend(reversed(each.inner))


async def _wait_for(other: Build, module: Module) -> None:
    """Wait until `other` has ended: its own body where the running code is part of the same outermost build."""
    current = current_build()
    outermost = other.outermost
    if current is None:
        await outermost.signal.wait()
        return
    target = other if outermost is current.outermost else outermost
    chain = current.chain()
    with _LOCK:
        if _reaches(other, set(chain)):
            raise BuildError(
                f"{where(module)} waits for itself: it is being built by {_names(other)}, "
                f"which waits for {_names(current)}. Build one of them first: `await sm.build(module, Schema)`."
            )
        for each in chain:
            each.waits_for.append(target)
    try:
        await target.signal.wait()
    finally:
        with _LOCK:
            for each in chain:
                each.waits_for.remove(target)


def _reaches(start: Build, goal: set[Build]) -> bool:
    """Tell whether `start` is in `goal`, or waits for something that is."""
    seen: set[Build] = set()
    todo = [start, *([start.outermost] if start.outermost not in goal else [])]
    while todo:
        build = todo.pop()
        if build in goal:
            return True
        if build not in seen:
            seen.add(build)
            todo.extend(build.waits_for)
    return False


def _names(build: Build) -> str:
    chain = [each.module for each in reversed(build.chain()) if each.module is not None]
    return " > ".join(where(module) for module in chain) or "a build of the whole tree"
