"""Run a module on symbols: its frame, the note on a failure, and the trace of `call` that finds its outputs."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from contextvars import Token
from typing import TYPE_CHECKING, Any, cast

from synmod import errors, scope
from synmod.leaves import is_cancellation, reset
from synmod.scope import FRAME, CallFrame, CallRun, nearest_live
from synmod.tree import discard_writes

from . import contract
from .arguments import is_datum, leaves_of_any, no_call, symbols_of
from .record import paths_below, where

if TYPE_CHECKING:
    from .module import Module


class SymbolicFrame:
    """A block in which a module runs on symbols, with the current frame.

    A class, because a `contextlib` generator assigns `__traceback__` to passing exceptions, which frozen ones refuse.

    Args:
        module: The module.
        training: The caller's `training`.
        inputs: The positional arguments, for the note of a failure; None inside a call of the same module, which notes
            its own failure and receives nothing stashed in the block.
    """

    __slots__ = ("_frame", "_inputs", "_module", "_token", "effects")

    def __init__(self, module: Module, training: bool | None = None, inputs: tuple[Any, ...] | None = None) -> None:
        self._module = module
        self._inputs = inputs
        self.effects: Mapping[Any, Any] | None = None
        """The stashed values that the call left, beside its outputs; set when it ends."""
        parent = nearest_live(FRAME.get())
        phase = scope.phase_in(scope.ambient(), parent)
        record = module._record
        if training is None and parent is not None:
            training = parent.decided_training
        if training is None:
            training = module.__dict__.get("training", record.declaration.call.training_on_class)
        run = CallRun(paths_below(module)) if parent is None else parent.run
        self._frame = CallFrame(parent, run, record, training, phase, True)
        self._token: Token[CallFrame | None] | None = None

    def __enter__(self) -> CallFrame:
        self._token = FRAME.set(self._frame)
        return self._frame

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        frame, layer = self._frame, self._frame.layer
        try:
            if layer is not None and error is None and self._inputs is not None:
                self.effects = layer.effects()
                layer.commit()
            elif layer is not None:
                layer.drop()
            if error is not None and self._inputs is not None:
                note_failure(error, frame, self._module, self._inputs)
        finally:
            frame.live = False
            frame.layer = None
            if self._token is not None:
                reset(FRAME, self._token)


_MARK = "_synmod_noted_in"


def note_failure(error: BaseException, frame: CallFrame, module: Module, inputs: Any) -> None:
    """Add the place of a failed call to the error; of a cancelled call, record where it waited. Interrupts get no note.

    Args:
        error: The exception; a note is added unless a nested call has added one. An exception that is raised again in
            another run (a shared build error, a scripted reply) keeps its first note.
        frame: The frame of the call.
        module: The module that was called.
        inputs: The positional arguments.
    """
    if is_cancellation(error):
        scope.note_waiting(frame)
    elif isinstance(error, Exception) and _MARK not in error.__dict__:
        note = f"in {where(module, frame.path)}, call {frame.id}"
        if not module._record.ready:
            titles = [str(leaf._schema.get("title") or leaf.name) for leaf in leaves_of_any(inputs) if is_datum(leaf)]
            if titles or not inputs:  # the error itself names arguments that are not data
                note += f", while building on {', '.join(titles) or 'no inputs'}"
        if isinstance(error, (TypeError, AttributeError)) and "'coroutine' object" in str(error):
            note += ": is an `await` missing, as in `reply = await module(inputs)`?"
        errors.add_note(error, note)
        error.__dict__[_MARK] = True


_REMEDIES = (
    "`call` ran on symbols, which have no values, to find its output schema. Declare the output instead: "
    "annotate `-> Answer` on call, set `output_spec = Answer`, or override `compute_output_spec`."
)


async def trace(module: Module, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    """Run `call` on symbols; its writes into Variables are discarded.

    Raises:
        NoCallError: The class defines no `call`.
        SymbolicValueError: `call` reads a value; a note lists the remedies.
    """
    call = module._record.declaration.call
    function = getattr(module, "call", None)
    if function is None:
        raise no_call(module)
    frame = scope.current_call()
    run = module._record.runner
    if run is not None and (frame is None or frame.owner is not module._record):
        with SymbolicFrame(module):
            return await trace(module, args, kwargs)
    keywords = dict(kwargs)
    if call.has_training:
        keywords["training"] = frame.training if frame is not None else call.training_default
    try:
        with discard_writes():
            outputs = (
                function(*args, **keywords) if run is None or frame is None else run.run(module, frame, args, keywords)
            )
            if inspect.isawaitable(outputs):
                outputs = await outputs
    except (errors.SymbolicValueError, ExceptionGroup) as raised:
        first = _first_of_group(raised)
        if not isinstance(first, errors.SymbolicValueError):
            raise
        if _REMEDIES not in errors.notes_of(first):
            errors.add_note(first, _REMEDIES)
        raise first from None
    return contract.symbolic_outputs(module, outputs)


async def output_symbols(module: Module, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    """Return the outputs of a call as fresh symbols, from an overridden spec, a declaration, or a trace."""
    with discard_writes():
        outputs = module.compute_output_spec(*args, **kwargs)
        if inspect.isawaitable(outputs):
            outputs = await outputs
    if module._record.declaration.declares_spec:  # a user's method may return classes and schemas
        outputs = symbols_of(outputs, f"{module.name}: compute_output_spec")
    return contract.symbolic_outputs(module, outputs)


async def default_output_spec(module: Module, /, *args: Any, **kwargs: Any) -> Any:
    """Return the declared outputs, else those of a trace: the default of `Module.compute_output_spec`."""
    declared = contract.output_declaration(module)
    if not declared.nothing:
        return declared.fresh()
    return await trace(module, args, kwargs)


def was_cancelled(failure: BaseException) -> bool:
    """Whether a call ended because it was cancelled, or its coroutine closed."""
    return is_cancellation(failure) or isinstance(failure, GeneratorExit)


def is_of_wiring(error: BaseException) -> bool:
    """Whether an error of a trace is that of schemas that do not fit, which no value would mend."""
    return isinstance(_first_of_group(error), errors.SchemaError)


def _first_of_group(error: BaseException) -> BaseException:
    """Return the first error of a task group in `call`; any other error unchanged."""
    while isinstance(error, BaseExceptionGroup):
        error = cast("BaseExceptionGroup[BaseException]", error).exceptions[0]
    return error
