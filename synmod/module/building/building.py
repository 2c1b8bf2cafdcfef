"""Building: once for all concurrent callers, on symbols, by the first who comes."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from time import perf_counter
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from synmod.flow import map_leaves
from synmod.module.attributes import attributes_of
from synmod.module.building.build_inputs import symbols_for
from synmod.module.building.build_method import build_method_of
from synmod.module.building.builds import LOCK, Build, current_undo, is_ready_here
from synmod.module.building.waiting import wait_for
from synmod.module.frames import SymbolicFrame
from synmod.module.interface.inputs import data_among
from synmod.module.paths import extend_paths
from synmod.module.sealing import seal
from synmod.scope import ambient, begin_build, current_call, end_build, hooks_for, place_of

if TYPE_CHECKING:
    from synmod.module.module import Module


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
        schemas = schema_key(args, kwargs)
        mine = None
        with LOCK:
            other = record.building
            if other is not None:
                other.awaited_by += 1
            elif not record.built:
                record.building = mine = Build(module, schemas)
        if mine is not None:
            await _build(mine, module, args, kwargs)
            return
        if other is not None:
            await wait_for(other, module)
            if other.error is not None and other.schemas == schemas:
                raise other.error.with_traceback(other.traceback)


def schema_key(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> str:
    """What makes the schemas of two inputs equal: their structure, and the identity of each schema."""
    data = dict(sorted(data_among(kwargs).items()))
    return repr(map_leaves(lambda leaf: id(getattr(leaf, "_schema", None)), [args, data]))


def _seal_here(module: Module) -> None:
    """Seal a module that has nothing to build; inside a build it opens again should the build fail."""
    module._verify_wiring()
    undo = current_undo()
    if undo is not None:
        undo.remember_lifecycle(module)
    seal(module)
    extend_paths(module)


async def _build(mine: Build, module: Module, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
    """Run the module's own `build` as `mine`."""
    with mine:
        mine.undo.remember_containers(module, [mine])  # first, so that they come back last, when it is unbuilt again
        mine.undo.remember_lifecycle(module)
        mine.undo.remember_all(module)
        before = frozenset(name for name, _ in attributes_of(module))
        inputs = symbols_for(module, args, kwargs)
        await _announced(mine, module, inputs)
        made = frozenset(name for name, _ in attributes_of(module)) - before
        mark_built(module, dict(inputs.arguments), made)


def mark_built(module: Module, arguments: dict[str, Any], made: frozenset[str] = frozenset()) -> None:
    """Note that the module's own build is done, what it was built on and what it made, and seal it."""
    record = module._record
    record.build_config = arguments
    record.made_in_build = made
    record.built = True
    record.contract = None
    record.declared = None
    seal(module)


async def _announced(mine: Build, module: Module, inputs: inspect.BoundArguments) -> None:
    """Run the body under a frame of its own, between the build events; these tell the place of the call that builds."""
    caller = current_call()
    with SymbolicFrame(module, hands_on=False) as frame:
        heard = hooks_for(ambient(), module._record.hooks)
        if heard is None:
            await _body(mine, module, inputs)
            return
        from synmod.scope import BuildBegin, BuildEnd

        place = place_of(caller if caller is not None and caller.owner is module._record else frame, frame.phase)
        started = perf_counter()
        failure: BaseException | None = None
        try:
            await begin_build(heard, BuildBegin(*place, inputs.args, MappingProxyType(inputs.kwargs)))
            await _body(mine, module, inputs)
        except BaseException as error:
            failure = error
            raise
        finally:
            await end_build(heard, BuildEnd(*place, inputs.args, failure, perf_counter() - started))
            failure = None  # no circle of an exception and the frame that holds it


async def _body(mine: Build, module: Module, inputs: inspect.BoundArguments) -> None:
    """Run the body of the class's `build`, plain or async."""
    mine.in_body = True
    try:
        pending = build_method_of(module).run(module, *inputs.args, **inputs.kwargs)
        if inspect.isawaitable(pending):
            await pending
    finally:
        mine.in_body = False
