"""Calls on symbols: the module is built, its contract checked, its output schema found, a step recorded."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from synmod.errors import SymbolicValueError, add_note, notes_of
from synmod.flow import record_call
from synmod.module.building import ensure_built, is_building_tree
from synmod.module.contract import check_inputs
from synmod.module.frames import SymbolicFrame
from synmod.module.interface.inputs import convert_arguments, no_call
from synmod.module.interface.nests import symbols_of
from synmod.module.interface.outputs import declared_outputs, symbolic_outputs
from synmod.module.notes import note_failure
from synmod.scope import current_call
from synmod.tree import discarding_writes

if TYPE_CHECKING:
    from synmod.module.module import Module

_REMEDIES = (
    "A schema was to be found by running `call` on symbols, which have no values. Say what comes out: "
    "annotate `-> Answer` on call, set `output_spec = Answer`, or override `compute_output_spec`."
)


async def call_symbolic(module: Module, args: tuple[Any, ...], kwargs: dict[str, Any], training: bool | None) -> Any:
    """Call `module` on symbols.

    Args:
        module: The module.
        args: Positional arguments, at least one leaf of them (or of `kwargs`) a symbol.
        kwargs: Keyword arguments.
        training: As the caller gave it.

    Returns:
        A nest of fresh symbols, each of which remembers this call.

    Raises:
        ArgumentError, CallError, SchemaError: As a call with values raises them.
        BuildError: The module cannot be built.
        SymbolicValueError: Nothing declares the output, and `call` reads a value.
    """
    with (block := SymbolicFrame(module, training)) as frame:
        try:
            args, kwargs = convert_arguments(module, args, kwargs)
            check_inputs(module, args, kwargs)
            await ensure_built(module, args, kwargs)
            check_inputs(module, args, kwargs)
            if is_building_tree():
                await _follow(module, args, kwargs)
            outputs = await output_symbols(module, args, kwargs)
            if module._record.runner is not None:
                module._record.runner.assume(module, frame)
        except BaseException as error:
            note_failure(error, frame, module, args)
            raise
    decided = {} if training is None else {"training": training}  # what was said of this call holds when it runs
    record_call(module, args, {**kwargs, **decided}, outputs, block.left)
    return outputs


async def _follow(module: Module, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
    """Trace a `call` whose output is declared, as far as it can be traced: what is inside builds, and is checked."""
    record = module._record
    if record.flow is not None or record.declaration.declares_spec or declared_outputs(module).nothing:
        return
    try:
        with SymbolicFrame(module, hands_on=False):
            await trace(module, args, kwargs)
    except SymbolicValueError:
        return


async def output_symbols(module: Module, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    """Find the outputs of a call as fresh symbols: overridden spec, declaration, or a trace."""
    with discarding_writes():
        outputs = module.compute_output_spec(*args, **kwargs)
        if inspect.isawaitable(outputs):
            outputs = await outputs
    if module._record.declaration.declares_spec:  # what a user's method returned may hold classes and schemas
        outputs = symbols_of(outputs, f"{module.name}: compute_output_spec")
    return symbolic_outputs(module, outputs)


async def default_output_spec(module: Module, /, *args: Any, **kwargs: Any) -> Any:
    """What `Module.compute_output_spec` answers: the declared outputs, else those of a trace."""
    declared = declared_outputs(module)
    if not declared.nothing:
        return declared.fresh()
    return await trace(module, args, kwargs)


async def trace(module: Module, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    """Run `call` on symbols; what it writes into Variables is thrown away.

    Raises:
        NoCallError: The class defines no `call`.
        SymbolicValueError: `call` reads a value; a note tells the remedies.
    """
    call = module._record.declaration.call
    function = getattr(module, "call", None)
    if function is None:
        raise no_call(module)
    frame = current_call()
    run = module._record.runner
    if run is not None and (frame is None or frame.owner is not module._record):
        with SymbolicFrame(module, hands_on=False):
            return await trace(module, args, kwargs)
    named = dict(kwargs)
    if call.has_training:
        named["training"] = frame.training if frame is not None else call.training_default
    try:
        with discarding_writes():
            outputs = function(*args, **named) if run is None or frame is None else run.run(module, frame, args, named)
            if inspect.isawaitable(outputs):
                outputs = await outputs
    except SymbolicValueError as error:
        if _REMEDIES not in notes_of(error):
            add_note(error, _REMEDIES)
        raise
    return symbolic_outputs(module, outputs)
