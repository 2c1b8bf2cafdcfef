"""Building one module: once for all concurrent callers, on symbols; the first caller builds, others look again."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from time import perf_counter
from typing import Any

from synmod.errors import BuildError
from synmod.scope import BuildBegin, BuildEnd, ambient, current_call, hooks_for, notify, place_of
from synmod.tree import class_of, keeping_writes

from .builds import Build, gave_way_to, is_ready_here, remember, take_turn, wait_for
from .contract import data_among, fresh, inputs_by_parameter, wrong_leaf
from .frames import SymbolicFrame, extend_paths
from .record import ABSENT, Module, attributes_of, where
from .structure import seal
from .wiring import verify_first_call


async def ensure_built(module: Module, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
    """Build `module` on these inputs unless it is built; wait where other code is building it, then look again.

    Args:
        module: The module.
        args: Positional inputs, as `call` gets them.
        kwargs: Keyword inputs.

    Raises:
        BuildError: The build waits for itself, or cannot be given its inputs.
        Exception: What the module's `build` raised.
    """
    record = module._record
    while not is_ready_here(record):
        if record.built and record.building is None:
            verify_first_call(module)
            remember(module)
            seal(module)
            extend_paths(module)
            return
        try:
            mine, other = take_turn(module)
            if mine is not None:
                await _build(mine, module, args, kwargs)
            elif other is not None:
                await wait_for(other)
        except BaseException as error:
            other = gave_way_to(error)
            if other is None:
                raise
            await other.over.wait()


async def _build(mine: Build, module: Module, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
    """Run the module's own `build` as `mine`."""
    with mine:
        before = dict(attributes_of(module))
        inputs = _symbols_for(module, args, kwargs)
        await _announced(mine, module, inputs)
        assigned = [name for name, value in attributes_of(module) if before.get(name, ABSENT) is not value]
        mark_built(module, dict(inputs.arguments), frozenset(assigned))


def mark_built(module: Module, arguments: dict[str, Any], assigned: frozenset[str] = frozenset()) -> None:
    """Note that the module's own build is done, what it was built on and which attributes it assigned, and seal it."""
    record = module._record
    record.build_config = arguments
    record.made_in_build = assigned
    record.built = True
    record.contract = None
    record.declared = None
    seal(module)


async def _announced(mine: Build, module: Module, inputs: inspect.BoundArguments) -> None:
    """Run the body under a frame of its own, between the build events, which show the place of the call that builds."""
    caller = current_call()
    with SymbolicFrame(module, hands_on=False) as frame:
        listeners = hooks_for(ambient(), module._record.hooks)
        if not listeners or module._record.restored is not None:  # a load is not an event
            await _body(mine, module, inputs)
            return
        place = caller if caller is not None and caller.owner is module._record else frame
        started = perf_counter()
        failure: BaseException | None = None
        try:
            notify(listeners, BuildBegin(*place_of(place, place.phase), inputs.args, inputs.kwargs))
            await _body(mine, module, inputs)
        except BaseException as error:
            failure = error
            raise
        finally:
            ended = (inputs.args, failure, perf_counter() - started)
            notify(listeners, BuildEnd(*place_of(place, place.phase), *ended))
            failure = None  # avoids a reference cycle of the exception and this frame


async def _body(mine: Build, module: Module, inputs: inspect.BoundArguments) -> None:
    """Run the class's own `build`, plain or async; what it assigns stays, also where a trace reaches it."""
    mine.in_body = True
    try:
        with keeping_writes():
            pending = inspect.getattr_static(class_of(module), "build").run(module, *inputs.args, **inputs.kwargs)
            if inspect.isawaitable(pending):
                await pending
    finally:
        mine.in_body = False


def _symbols_for(module: Module, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> inspect.BoundArguments:
    """Return the arguments of a module's own `build`: a symbol in the place of each value.

    Raises:
        CallError: What was given by keyword for a required parameter is not data.
        BuildError: A required parameter is left open; names it.
    """
    signature = module._record.declaration.build
    data = data_among(kwargs)
    matched = inputs_by_parameter(signature, args, data)
    missing = [
        name for name, p in signature.parameters.items()
        if name not in matched and p.default is p.empty and p.kind is not inspect.Parameter.VAR_KEYWORD
    ]  # fmt: skip
    for name in missing:
        if name in kwargs and name not in data:
            raise wrong_leaf(module, name, kwargs[name])
    if missing:
        raise BuildError(
            f"{where(module)}: build{signature} is left without {', '.join(map(repr, missing))}. It receives a "
            "symbol for each positional input of call, and the keyword data that it names."
        )
    return inspect.BoundArguments(signature, {name: fresh(value) for name, (_, value) in matched.items()})  # pyright: ignore[reportArgumentType]
