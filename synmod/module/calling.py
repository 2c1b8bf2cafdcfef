"""One call, step by step, with values or with symbols. `call_module` is hot, and so it is flat.

Everything after the frame is set is left through one `try`, so that return, error and cancellation restore what was.
The common case (values whose schemas were seen before, nobody listening) is answered by a few identity checks.
"""

from __future__ import annotations

import inspect
from time import perf_counter
from typing import Any

from synmod.data import JsonDataModel
from synmod.errors import SynmodError
from synmod.leaves.aio import is_cancellation
from synmod.scope import (
    AMBIENT,
    FRAME,
    CallFrame,
    RootFrame,
    begin_call,
    check_deadline,
    effective,
    end_call,
    hand_up,
    hooks_for,
    nearest_live,
    plain_limit,
)

from .building import call_symbolic, ensure_built, note_failure
from .contract import ANY_CLASS, check_inputs, check_output, convert_arguments, holds_symbol, is_not_taken, no_outputs
from .declaring import passes_none
from .record import Module, ModuleRecord, paths_below


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
            return no_outputs(module)
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
    failure: BaseException | None = None
    limit = plain_limit(around) if parent is None and around is not None else None
    if limit is not None:
        limit.__enter__()
    try:
        if not plain:
            try:
                args, kwargs = convert_arguments(module, args, kwargs)
            except SynmodError:
                if listeners:
                    begin_call(listeners, frame, args, kwargs)
                raise
        if listeners:
            begin_call(listeners, frame, args, kwargs)
        if around is not None and around.deadline is not None:
            check_deadline(frame, around)
        contract = record.contract
        if contract is None:
            check_inputs(module, args, kwargs)
        elif not contract.is_empty:
            known = contract.known.get(id(args[0]._schema)) if plain and len(args) == 1 else None
            if known is None or (known[1] is not ANY_CLASS and known[1] is not args[0]._model):
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
            known = declared.known.get(id(output._schema))
            if known is None or (known[1] is not ANY_CLASS and known[1] is not output._model):
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
        failure = None  # avoids a reference cycle of the exception and this frame
