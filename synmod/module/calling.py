"""One call, step by step, with values or with symbols. `call_module` is hot and flat.

All of a call after its frame is set is in one `try`, so that return, error and cancellation restore the state before.
The common case (values whose schemas were seen before, no listeners) takes a few identity checks.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from contextvars import Token
from time import perf_counter
from typing import TYPE_CHECKING, Any

from synmod import data, errors, flow, scope
from synmod.data import DataModel, JsonDataModel, SymbolicDataModel
from synmod.leaves import aio, drive, is_driven, map_leaves
from synmod.scope import AMBIENT, FRAME, Ambient, CallFrame, effective, hooks_for, new_frame

from . import contract
from .building import SymbolicFrame, ensure_built, is_of_wiring, note_failure, output_symbols, trace, was_cancelled
from .contract import ANY_CLASS, check_inputs, check_output, no_outputs
from .declaring import passes_none
from .signatures import CallSignature
from .structure import ModuleRecord, paths_below, where
from .transactions import is_building_tree

if TYPE_CHECKING:
    from synmod.scope import Hook
    from synmod.scope.limits import LimitedWait

    from .module import Module


async def call_symbolic(module: Module, args: tuple[Any, ...], kwargs: dict[str, Any], training: bool | None) -> Any:
    """Call `module` on symbols.

    Args:
        module: The module.
        args: Positional arguments; at least one leaf of them, or of `kwargs`, is a symbol.
        kwargs: Keyword arguments.
        training: The caller's `training`.

    Returns:
        A nest of fresh symbols, each of which records this call.

    Raises:
        ArgumentError, CallError, SchemaError: As for a call with values.
        BuildError: The module cannot be built.
        SymbolicValueError: Nothing declares the output, and `call` reads a value.
    """
    with (block := SymbolicFrame(module, training, args)) as frame:
        args, kwargs = convert_arguments(module, args, kwargs)
        contract.check_inputs(module, args, kwargs)
        await ensure_built(module, args, kwargs)
        contract.check_inputs(module, args, kwargs)
        if is_building_tree():
            await _trace_declared(module, args, kwargs)
        outputs = await output_symbols(module, args, kwargs)
        if module._record.runner is not None:
            module._record.runner.assume(module, frame)
    decided = {} if training is None else {"training": training}  # applies when the step runs
    flow.record_call(module, args, {**kwargs, **decided}, outputs, block.effects)
    return outputs


async def _trace_declared(module: Module, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
    """Trace a `call` whose output is declared, as far as possible, to build and check the modules inside.

    Raises:
        SchemaError: A module inside cannot take what reaches it. Whatever else the trace meets concerns the values.
    """
    record = module._record
    if record.flow is not None or record.declaration.declares_spec or contract.output_declaration(module).nothing:
        return
    try:
        with SymbolicFrame(module):
            if is_driven():
                drive(trace(module, args, kwargs))
            else:
                await trace(module, args, kwargs)
    except Exception as error:
        if is_of_wiring(error):
            raise


# -- arguments ---------------------------------------------------------------------------------------------------------


def should_skip(call: CallSignature, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> bool:
    """Whether an argument of data is None (or a nest of None only) and its parameter does not accept None.

    All arguments for `*args` count as one nest. By keyword, data are what is annotated with a data model.
    """
    for parameter, argument in zip(call.positional, args, strict=False):
        if not parameter.takes_none and contract.is_nothing(argument):
            return True
    for name, argument in kwargs.items():
        parameter = call.by_name.get(name)
        if parameter is not None and parameter.model and not parameter.takes_none and contract.is_nothing(argument):
            return True
    rest = args[len(call.positional) :]
    return bool(rest) and call.rest is not None and not call.rest.takes_none and all(map(contract.is_nothing, rest))


def holds_symbol(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> bool:
    """Whether any leaf of the arguments is a symbol."""
    nests = (*args, *kwargs.values())
    return any(isinstance(leaf, SymbolicDataModel) for nest in nests for leaf in contract.leaves_of_any(nest))


def convert_arguments(
    module: Module, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Check the signature and the leaves, and turn model instances into values.

    Args:
        module: The module that is called.
        args: Positional arguments: data.
        kwargs: Keyword arguments: data for parameters declared as data, anything for others.

    Returns:
        The arguments for `call`; containers are rebuilt only if a leaf was converted.

    Raises:
        ArgumentError: The arguments do not fit the signature of `call`.
        CallError: A leaf of a positional argument is not data.
        NoCallError: The class defines no `call`.
    """
    if not hasattr(module, "call"):
        raise contract.no_call(module)
    call = module._record.declaration.call
    converted = tuple(
        argument if type(argument) is JsonDataModel else _convert_argument(module, index, argument)
        for index, argument in enumerate(args)
    )
    if kwargs:
        kwargs = {name: _convert_keyword(module, call, name, value) for name, value in kwargs.items()}
    contract.check_signature(module, call, converted, kwargs)
    return converted, kwargs


def _convert_keyword(module: Module, call: CallSignature, name: str, value: Any) -> Any:
    """Convert a keyword argument; any value is allowed unless its parameter is declared as data."""
    parameter = call.keyword(name)
    if parameter is not None and parameter.takes_data:
        return _convert_argument(module, name, value)
    if any(isinstance(leaf, DataModel) for leaf in contract.leaves_of_any(value)):
        return map_leaves(_model_to_value, value)
    return value


def _convert_argument(module: Module, argument: int | str, nest: Any) -> Any:
    """Convert an argument whose leaves must all be data."""
    try:
        converted = map_leaves(_model_to_value, nest)
    except errors.CallError as error:
        raise errors.CallError(f"{where(module)}: {contract.place_of(argument)}: {error}") from None
    if not contract.is_data(converted):
        raise contract.wrong_leaf(module, argument, converted)
    return converted


def _model_to_value(leaf: Any) -> Any:
    return data.to_value(leaf) if isinstance(leaf, DataModel) else leaf


# -- calls with values -------------------------------------------------------------------------------------------------


def _start_run(module: Module, frame: CallFrame, around: Ambient | None) -> LimitedWait | None:
    """Set the paths of an entry call, and enter and return the time limit to run in, None in the common case."""
    paths = module._record.paths
    frame.run.paths = paths if paths is not None and paths.is_current else paths_below(module)
    limit = None if around is None or around.deadline is None else scope.plain_limit(around)
    if limit is not None:
        limit.__enter__()
    return limit


def _is_known(declared: contract.Contract | contract.DeclaredOutputs, value: JsonDataModel[Any]) -> bool:
    """Whether values with the schema and class of this one are known to be valid. Hot."""
    entry = declared.known.get(id(value._schema))
    return entry is not None and (entry[1] is ANY_CLASS or entry[1] is value._model)


def _begin(
    module: Module,
    frame: CallFrame,
    listeners: tuple[Hook, ...],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    *,
    are_values: bool,
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return the converted arguments, and notify listeners of the call, also where an argument is refused."""
    try:
        if not are_values:
            args, kwargs = convert_arguments(module, args, kwargs)
    finally:
        if listeners:
            scope.begin_call(listeners, frame, args, kwargs)
    return args, kwargs


def _fail(
    module: Module, frame: CallFrame, error: BaseException, listeners: tuple[Hook, ...], args: Any, started: float
) -> BaseException:
    """Return the failure of a call, with its note, after its listeners were notified."""
    failure = scope.unwrap_group(error)
    if frame.layer is not None:
        frame.layer.drop()
    note_failure(failure, frame, module, args)
    if listeners:
        scope.end_call(listeners, frame, args, None, failure, started)
    if frame.parent is None:
        errors.shorten_traceback(failure)
    return failure


def _leave(
    record: ModuleRecord,
    frame: CallFrame,
    token: Token[CallFrame | None],
    limit: LimitedWait | None,
    failure: BaseException | None,
) -> None:
    """Restore the frame around, and count the call; a failed one drops the rewards given by it and below it."""
    frame.live = False
    try:
        FRAME.reset(token)
    except ValueError:  # closed by the garbage collector in another context: there is nothing to restore
        pass
    if not frame.number:
        _end_entry(record, frame, failure)
    elif failure is None:
        next(record.counters.nested_calls)
    else:
        if not was_cancelled(failure):
            next(record.counters.nested_calls)
        frame.run.failed_calls.add(frame.number)
    frame.layer = None  # avoids a reference cycle of a frame and its layer
    if limit is not None:
        limit.__exit__(None if failure is None else type(failure), failure, None)


def _end_entry(record: ModuleRecord, frame: CallFrame, failure: BaseException | None) -> None:
    """Count an ended entry call, and pass its rewards to the blocks around it if it returned."""
    if failure is not None and was_cancelled(failure):
        record.counters.count_cancelled(frame.phase)
        return
    record.counters.count_entry(frame.phase, perf_counter() - frame.run.started, failed=failure is not None)
    if failure is None and frame.layer is not None:
        frame.layer.close()
    if failure is None and frame.run.all_rewards:
        scope.publish_rewards(frame)


async def call_module(  # noqa: C901  # flat: each function called here slows down every call of every program
    module: Module, /, *args: Any, training: bool | None = None, **kwargs: Any
) -> Any:
    """Call a module: `await module(x)`.

    Args:
        module: The module.
        *args: Data: data models, symbols, None, or lists, tuples and dicts of them.
        training: Training mode for this call and the calls inside it; None takes the mode of the enclosing call.
        **kwargs: Any keyword arguments of `call`.

    Returns:
        The result of `call`, as data; symbols if an argument is a symbol; None if the call is skipped.

    Raises:
        CallError: A leaf of an argument, or of the output, is not data.
        ArgumentError: The arguments do not fit the signature of `call`.
        SchemaError: An input does not satisfy the contract, or the output its declaration.
        BuildError: The module cannot be built.
        NoCallError: The class defines no `call`.
        DeadlineExceeded: An enclosing deadline has passed.
        Exception: Any exception of `call`, unchanged except for one note; the only one of a group as itself.
    """
    record = module._record
    call = record.declaration.call
    plain = not kwargs and len(args) in call.counts
    for argument in args:
        plain = plain and type(argument) is JsonDataModel
    if not plain:
        if should_skip(call, args, kwargs) and passes_none(module):
            return no_outputs(module)
        if holds_symbol(args, kwargs):
            return await call_symbolic(module, args, kwargs, training)

    around = AMBIENT.get()
    if around is not None:
        around = effective(around)
    listeners = hooks_for(around, record.hooks) if record.hooks or (around is not None and around.hooks) else ()
    if listeners and around is not None and around.readers:
        await scope.wait_for_readers(around)
    frame = new_frame(record, around, training, module.__dict__.get("training", call.training_on_class))
    limit = None if frame.number else _start_run(module, frame, around)  # an entry call is the first one of its run
    token = FRAME.set(frame)
    started = perf_counter() if listeners else 0.0
    failure: BaseException | None = None
    try:
        if listeners or not plain:
            args, kwargs = _begin(module, frame, listeners, args, kwargs, are_values=plain)
        if around is not None and around.deadline is not None:
            scope.check_deadline(frame, around)
        contract = record.contract
        if contract is None or not (contract.is_empty or (plain and len(args) == 1 and _is_known(contract, args[0]))):
            check_inputs(module, args, kwargs)
        if not record.ready:
            await ensure_built(module, args, kwargs)
            check_inputs(module, args, kwargs)
        if call.has_training:
            mode = frame.decided_training
            kwargs = {**kwargs, "training": call.training_default if mode is None else mode}
        runner = record.runner
        output = module.call(*args, **kwargs) if runner is None else runner.run(module, frame, args, kwargs)
        if call.is_async or inspect.isawaitable(output):
            output = await output
        declared = record.declared
        is_value = type(output) is JsonDataModel
        if declared is None or not (is_value and (declared.nothing or _is_known(declared, output))):
            output = check_output(module, output)
        if frame.layer is not None:
            frame.layer.commit()
        if listeners:
            notified, listeners = listeners, ()  # so that an interrupted end is not repeated below
            scope.end_call(notified, frame, args, output, None, started)
        return output
    except BaseException as error:
        failure = _fail(module, frame, error, listeners, args, started)
        if failure is not error:
            aio.reraise(failure)
        raise
    finally:
        _leave(record, frame, token, limit, failure)
        failure = None  # avoids a reference cycle of the exception and this frame
