"""One call, step by step, with values or with symbols. `call_module` is hot, and so it is flat.

Everything after the frame is set is left through one `try`, so that return, error and cancellation restore what was.
The common case (values whose schemas were seen before, nobody listening) is answered by a few identity checks.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from time import perf_counter
from typing import Any

from synmod.data import JsonDataModel
from synmod.errors import SymbolicValueError, SynmodError, add_note, notes_of
from synmod.flow import record_call
from synmod.leaves.aio import is_cancellation
from synmod.scope import (
    AMBIENT,
    FRAME,
    CallFrame,
    RootFrame,
    begin_call,
    check_deadline,
    current_call,
    effective,
    end_call,
    hand_up,
    hooks_for,
    nearest_live,
    note_waiting,
    plain_limit,
)
from synmod.tree import discarding_writes

from .building import ensure_built
from .builds import is_building_tree
from .contract import (
    ANY_CLASS,
    MISS,
    check_inputs,
    convert_arguments,
    holds_symbol,
    is_datum,
    is_not_taken,
    leaves_of_any,
    no_call,
    symbols_of,
)
from .frames import SymbolicFrame, paths_below
from .outputs import check_output, declared_outputs, symbolic_outputs
from .record import Module, ModuleRecord
from .wiring import passes_none


def was_cancelled(failure: BaseException) -> bool:
    """Whether a call ended because it was cancelled, or its coroutine closed."""
    return is_cancellation(failure) or isinstance(failure, GeneratorExit)


def end_entry(record: ModuleRecord, frame: CallFrame, phase: str, failure: BaseException | None) -> None:
    """Count an ended entry call, and hand its rewards to the blocks around it if it returned."""
    if failure is not None and was_cancelled(failure):
        record.counters.count_cancelled(phase)
        return
    record.counters.count_entry(phase, perf_counter() - frame.root.started, failed=failure is not None)
    if failure is None and frame.layer is not None:
        frame.layer.close()
    if failure is None and frame.root.given_rewards:
        hand_up(frame)


def end_failed(record: ModuleRecord, frame: CallFrame, failure: BaseException) -> None:
    """Count a nested call that failed, and drop the rewards that it and the calls below it gave."""
    if not was_cancelled(failure):
        record.counters.count_nested()
    frame.root.failed_calls.add(frame.number)


async def call_module(  # noqa: C901  # flat: what it called would cost every call of every program
    module: Module, /, *args: Any, training: bool | None = None, **kwargs: Any
) -> Any:
    """Call a module: `await module(x)`.

    Args:
        module: The module.
        *args: Data: data models, symbols, None, or lists, tuples and dicts of them.
        training: Training mode for this call and those below; None takes what encloses it.
        **kwargs: Anything that `call` takes by keyword.

    Returns:
        What `call` returned, as data; symbols where symbols went in; None where the call is not taken.

    Raises:
        CallError: A leaf of an argument, or of the output, is not data.
        ArgumentError: The arguments do not fit the signature of `call`.
        SchemaError: An input misses the contract, or the output what was declared.
        BuildError: The module cannot be built.
        NoCallError: The class defines no `call`.
        DeadlineExceeded: An enclosing deadline is over.
        Exception: What `call` raised, as itself, with one note.
    """
    record = module._record
    call = record.declaration.call
    plain = not kwargs and len(args) in call.counts
    if plain:
        for argument in args:
            if type(argument) is not JsonDataModel:
                plain = False
                break
    if not plain:
        if is_not_taken(call, args) and passes_none(module):
            return declared_outputs(module).nones()
        if holds_symbol(args, kwargs):
            return await call_symbolic(module, args, kwargs, training)

    parent = FRAME.get()
    if parent is not None and not parent.live:
        parent = nearest_live(parent)
    around = AMBIENT.get()
    if around is not None:
        around = effective(around)
    phase = (None if around is None else around.phase) or ("inference" if parent is None else parent.phase)
    if training is None:
        training = parent.decided_training if parent is not None else None
        if training is None:
            training = module.__dict__.get("training", call.training_on_class)
    if parent is None:
        frame: CallFrame = RootFrame(record, training, phase, False, paths_below(module))
    else:
        frame = CallFrame(parent, record, training, phase, parent.symbolic)
    token = FRAME.set(frame)
    listeners = hooks_for(around, record.hooks) if record.hooks or (around is not None and around.hooks) else ()
    started = perf_counter() if listeners else 0.0
    refused: SynmodError | None = None
    failure: BaseException | None = None
    limit = plain_limit(around) if parent is None and around is not None else None
    if limit is not None:
        limit.__enter__()
    try:
        if not plain:
            try:
                args, kwargs = convert_arguments(module, args, kwargs)
            except SynmodError as error:
                refused = error
        if listeners:
            begin_call(listeners, frame, args, kwargs)
        if refused is not None:
            raise refused
        if around is not None and around.deadline is not None:
            check_deadline(frame, around)
        contract = record.contract
        if contract is None:
            check_inputs(module, args, kwargs)
        elif not contract.is_empty:
            seen = contract.known.get(id(args[0]._schema), MISS) if plain and len(args) == 1 else MISS
            if seen is not ANY_CLASS and (seen is MISS or seen is not args[0]._model):
                contract.check(module, args, kwargs)
        if not record.ready:
            await ensure_built(module, args, kwargs)
            check_inputs(module, args, kwargs)
        if call.has_training:
            kwargs = {**kwargs, "training": frame.training}
        run = record.runner
        output = module.call(*args, **kwargs) if run is None else run.run(module, frame, args, kwargs)
        if call.is_async or inspect.isawaitable(output):
            output = await output
        declared = record.declared
        if declared is None or type(output) is not JsonDataModel:
            output = check_output(module, output)
        elif not declared.nothing:
            seen = declared.known.get(id(output._schema), MISS)
            if seen is not ANY_CLASS and (seen is MISS or seen is not output._model):
                output = check_output(module, output)
        if frame.layer is not None:
            frame.layer.commit()
        if listeners:
            begun, listeners = listeners, ()  # so that an interrupted end is not repeated below
            end_call(begun, frame, output, None, started)
        return output
    except BaseException as error:
        failure = error
        if frame.layer is not None:
            frame.layer.drop()
        note_failure(error, frame, module, args)
        if listeners:
            end_call(listeners, frame, None, error, started)
        raise
    finally:
        frame.live = False
        try:
            FRAME.reset(token)
        except ValueError:  # collected in another context, where there is nothing to go back to
            pass
        if parent is None:
            end_entry(record, frame, phase, failure)
        elif failure is None:
            record.counters.count_nested()
        else:
            end_failed(record, frame, failure)
        frame.layer = None  # avoids a reference cycle of a frame and its layer
        if limit is not None:
            limit.__exit__(None if failure is None else type(failure), failure, None)
        failure = refused = None  # avoids a reference cycle of the exception and this frame


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
        SymbolicValueError: `call` reads a value; a note lists the remedies.
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


_MARK = "_synmod_noted_in"


def note_failure(error: BaseException, frame: CallFrame, module: Module, inputs: Any) -> None:
    """Note where a call failed, or where a cancellation found it waiting; an interrupt is none of the call's.

    Args:
        error: What was raised; a note is added unless a call below has done so already. An object that is raised again
            in another run (a shared build error, a scripted reply) keeps its first note.
        frame: The frame of the call.
        module: The module that was called.
        inputs: Its positional arguments.
    """
    if is_cancellation(error):
        note_waiting(frame)
    elif isinstance(error, Exception) and _MARK not in error.__dict__:
        note = f"in {frame.path or frame.name!r} ({type(module).__name__}), call {frame.id}"
        if not module._record.ready:
            titles = [str(leaf._schema.get("title") or leaf.name) for leaf in leaves_of_any(inputs) if is_datum(leaf)]
            if titles or not inputs:  # what is not data is told of by the error itself
                note += f", while building on {', '.join(titles) or 'no inputs'}"
        add_note(error, note)
        error.__dict__[_MARK] = True
