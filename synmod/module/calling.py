"""One call, step by step, with values or with symbols, and the build before the first. `call_module` is hot and flat.

A module is built once for all concurrent callers: the first builds, the others wait for the end and check again. All
of a call after its frame is set is in one `try`, so that return, error and cancellation restore the state before. The
common case (values whose schemas were seen before, no listeners) takes a few identity checks.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from contextvars import Token
from time import perf_counter
from typing import TYPE_CHECKING, Any, TypeVar, cast

from synmod import errors, flow, scope
from synmod.data import JsonDataModel
from synmod.leaves import LEAF, KeyPath, drive, is_cancellation, is_driven, kind_of, path_str
from synmod.scope import AMBIENT, FRAME, CallFrame, RootFrame, effective, hooks_for, nearest_live
from synmod.tree import class_of, discarding_writes, keeping_writes, walk

from . import contract, declaring
from .contract import ANY_CLASS, check_inputs, check_output, convert_arguments, holds_symbol, is_not_taken, no_outputs
from .record import ABSENT, ModuleRecord, attributes_of, extend_paths, paths_below, where
from .structure import Build, gave_way_to, is_building_tree, is_ready_here, remember_variable, seal, take_turn, wait_for

if TYPE_CHECKING:
    from .module import Module

T = TypeVar("T")

# -- frames and failures -----------------------------------------------------------------------------------------------


class SymbolicFrame:
    """A block in which a module runs on symbols, with the current frame.

    A class, because a `contextlib` generator assigns `__traceback__` to passing exceptions, which frozen ones refuse.

    Args:
        module: The module.
        training: The caller's `training`.
        inputs: The positional arguments, for the note of a failure; None inside a call of the same module, which notes
            its own failure and receives nothing stashed in the block.
    """

    __slots__ = ("_frame", "_inputs", "_module", "_token", "left")

    def __init__(self, module: Module, training: bool | None = None, inputs: tuple[Any, ...] | None = None) -> None:
        self._module = module
        self._inputs = inputs
        self.left: Mapping[Any, Any] | None = None
        """The stashed values that the call left, beside its outputs; set when it ends."""
        parent = nearest_live(FRAME.get())
        phase = scope.phase_in(scope.ambient(), parent)
        record = module._record
        if training is None and parent is not None:
            training = parent.decided_training
        if training is None:
            training = module.__dict__.get("training", record.declaration.call.training_on_class)
        if parent is None:
            self._frame: CallFrame = RootFrame(record, training, phase, True, paths_below(module))
        else:
            self._frame = CallFrame(parent, record, training, phase, True)
        self._token: Token[CallFrame | None] | None = None

    def __enter__(self) -> CallFrame:
        self._token = FRAME.set(self._frame)
        return self._frame

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        frame, layer = self._frame, self._frame.layer
        try:
            if layer is not None and error is None and self._inputs is not None:
                self.left = layer.left()
                layer.commit()
            elif layer is not None:
                layer.drop()
            if error is not None and self._inputs is not None:
                note_failure(error, frame, self._module, self._inputs)
        finally:
            frame.live = False
            frame.layer = None
            if self._token is not None:
                scope.reset(FRAME, self._token)


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
            titles = [
                str(leaf._schema.get("title") or leaf.name)
                for leaf in contract.leaves_of_any(inputs)
                if contract.is_datum(leaf)
            ]
            if titles or not inputs:  # the error itself names arguments that are not data
                note += f", while building on {', '.join(titles) or 'no inputs'}"
        if isinstance(error, (TypeError, AttributeError)) and "'coroutine' object" in str(error):
            note += ": is an `await` missing, as in `reply = await module(inputs)`?"
        errors.add_note(error, note)
        error.__dict__[_MARK] = True


# -- symbolic calls ----------------------------------------------------------------------------------------------------


_REMEDIES = (
    "`call` ran on symbols, which have no values, to find its output schema. Declare the output instead: "
    "annotate `-> Answer` on call, set `output_spec = Answer`, or override `compute_output_spec`."
)


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
        args, kwargs = contract.convert_arguments(module, args, kwargs)
        contract.check_inputs(module, args, kwargs)
        await ensure_built(module, args, kwargs)
        contract.check_inputs(module, args, kwargs)
        if is_building_tree():
            await _follow(module, args, kwargs)
        outputs = await output_symbols(module, args, kwargs)
        if module._record.runner is not None:
            module._record.runner.assume(module, frame)
    decided = {} if training is None else {"training": training}  # applies when the step runs
    flow.record_call(module, args, {**kwargs, **decided}, outputs, block.left)
    return outputs


async def _follow(module: Module, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
    """Trace a `call` whose output is declared, as far as possible, to build and check the modules inside.

    Raises:
        SchemaError: A module inside cannot take what reaches it. Whatever else the trace meets concerns the values.
    """
    record = module._record
    if record.flow is not None or record.declaration.declares_spec or contract.declared_outputs(module).nothing:
        return
    try:
        with SymbolicFrame(module):
            if is_driven():
                drive(trace(module, args, kwargs))
            else:
                await trace(module, args, kwargs)
    except Exception as error:
        if _is_of_wiring(error):
            raise


def _is_of_wiring(error: BaseException) -> bool:
    """Whether an error of a trace is that of schemas that do not fit, which no value would mend."""
    while isinstance(error, ExceptionGroup):  # of a task group in `call`
        error = cast("ExceptionGroup[Exception]", error).exceptions[0]
    return isinstance(error, errors.SchemaError)


async def output_symbols(module: Module, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    """Return the outputs of a call as fresh symbols, from an overridden spec, a declaration, or a trace."""
    with discarding_writes():
        outputs = module.compute_output_spec(*args, **kwargs)
        if inspect.isawaitable(outputs):
            outputs = await outputs
    if module._record.declaration.declares_spec:  # a user's method may return classes and schemas
        outputs = contract.symbols_of(outputs, f"{module.name}: compute_output_spec")
    return contract.symbolic_outputs(module, outputs)


async def default_output_spec(module: Module, /, *args: Any, **kwargs: Any) -> Any:
    """Return the declared outputs, else those of a trace: the default of `Module.compute_output_spec`."""
    declared = contract.declared_outputs(module)
    if not declared.nothing:
        return declared.fresh()
    return await trace(module, args, kwargs)


async def trace(module: Module, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    """Run `call` on symbols; its writes into Variables are discarded.

    Raises:
        NoCallError: The class defines no `call`.
        SymbolicValueError: `call` reads a value; a note lists the remedies.
    """
    call = module._record.declaration.call
    function = getattr(module, "call", None)
    if function is None:
        raise contract.no_call(module)
    frame = scope.current_call()
    run = module._record.runner
    if run is not None and (frame is None or frame.owner is not module._record):
        with SymbolicFrame(module):
            return await trace(module, args, kwargs)
    named = dict(kwargs)
    if call.has_training:
        named["training"] = frame.training if frame is not None else call.training_default
    try:
        with discarding_writes():
            outputs = function(*args, **named) if run is None or frame is None else run.run(module, frame, args, named)
            if inspect.isawaitable(outputs):
                outputs = await outputs
    except (errors.SymbolicValueError, ExceptionGroup) as raised:
        first: Any = raised
        while isinstance(first, ExceptionGroup):  # of a task group in `call`
            first = cast("ExceptionGroup[Exception]", first).exceptions[0]
        if not isinstance(first, errors.SymbolicValueError):
            raise
        if _REMEDIES not in errors.notes_of(first):
            errors.add_note(first, _REMEDIES)
        raise first from None
    return contract.symbolic_outputs(module, outputs)


# -- the build of one module -------------------------------------------------------------------------------------------


async def ensure_built(module: Module, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
    """Build `module` on these inputs unless it is built; if other code is building it, wait, then check again.

    Args:
        module: The module.
        args: Positional inputs, as passed to `call`.
        kwargs: Keyword inputs.

    Raises:
        BuildError: The build waits for itself, or an input of it is missing.
        Exception: Any exception of the module's `build`.
    """
    record = module._record
    while not is_ready_here(record):
        if record.built and record.building is None:
            declaring.verify_first_call(module)
            seal(module)
            extend_paths(module)
            return
        try:
            own, other = take_turn(module)
            if own is not None:
                await _build(own, module, args, kwargs)
            elif other is not None:
                await wait_for(other)
        except BaseException as error:
            other = gave_way_to(error)
            if other is None:
                raise
            await other.over.wait()


async def _build(block: Build, module: Module, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
    """Run the module's own `build` in its block."""
    with block:
        before = dict(attributes_of(module))
        inputs = _symbols_for(module, args, kwargs)
        await _announced(module, inputs)
        assigned = [name for name, value in attributes_of(module) if before.get(name, ABSENT) is not value]
        mark_built(module, dict(inputs.arguments), frozenset(assigned))


def mark_built(module: Module, arguments: dict[str, Any], assigned: frozenset[str] = frozenset()) -> None:
    """Record that the module's own build is done, on which inputs and with which new attributes; then seal it."""
    record = module._record
    record.build_config, record.made_in_build = arguments, assigned
    record.built = True
    record.contract = record.declared = None
    seal(module)


async def _announced(module: Module, inputs: inspect.BoundArguments) -> None:
    """Run the body in its own frame, between the build events, whose place is that of the call that builds."""
    caller = scope.current_call()
    with SymbolicFrame(module) as frame:
        is_load = module._record.restored is not None  # a load sends no build events
        listeners = () if is_load else hooks_for(scope.ambient(), module._record.hooks)
        place = caller if caller is not None and caller.owner is module._record else frame
        started = perf_counter()
        failure: BaseException | None = None
        try:
            scope.notify(listeners, scope.BuildBegin(*scope.place_of(place, place.phase), inputs.args, inputs.kwargs))
            await _body(module, inputs)
        except BaseException as error:
            failure = error
            raise
        finally:
            ended = (inputs.args, failure, perf_counter() - started)
            scope.notify(listeners, scope.BuildEnd(*scope.place_of(place, place.phase), *ended))
            failure = None  # avoids a reference cycle of the exception and this frame


async def _body(module: Module, inputs: inspect.BoundArguments) -> None:
    """Run the class's own `build`, plain or async, outside traces and overlays: its writes are for all callers."""
    with keeping_writes(remember_variable):
        body = inspect.getattr_static(class_of(module), "build").function.__get__(module)
        pending = body(*inputs.args, **inputs.kwargs)
        if inspect.isawaitable(pending):
            await pending


def _symbols_for(module: Module, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> inspect.BoundArguments:
    """Return the arguments for a module's own `build`: a symbol in place of each value.

    Raises:
        CallError: A keyword argument for a required parameter is not data.
        BuildError: A required parameter has no argument; names it.
    """
    signature = module._record.declaration.build
    data = contract.data_among(kwargs)
    matched = contract.inputs_by_parameter(signature, args, data)
    missing = [
        name for name, p in signature.parameters.items()
        if name not in matched and p.default is p.empty and p.kind is not inspect.Parameter.VAR_KEYWORD
    ]  # fmt: skip
    for name in missing:
        if name in kwargs and name not in data:
            raise contract.wrong_leaf(module, name, kwargs[name])
    if missing:
        raise errors.BuildError(
            f"{where(module)}: build{signature} has no argument for {', '.join(map(repr, missing))}. It receives a "
            "symbol for each positional input of call, and the keyword data that it names."
        )
    return inspect.BoundArguments(signature, {name: contract.fresh(value) for name, (_, value) in matched.items()})  # pyright: ignore[reportArgumentType]


# -- `sm.build` --------------------------------------------------------------------------------------------------------


async def build(module: Module, *schemas: Any, training: bool | None = None, **named: Any) -> Any:
    """Build a module and everything below it, on symbols: no model is called and no value changes.

    Args:
        module: The module; a program with its own Inputs needs no schemas.
        *schemas: The positional inputs of `call`: data models, schemas, symbols, values (only their schema is used), or
            nests of them.
        training: The mode in which `call` is traced.
        **named: The keyword inputs, likewise; values that do not declare data are passed to `call` unchanged.

    Returns:
        The symbolic outputs; None if `call` must read a value, all modules are built, and no output is declared.

    Raises:
        BuildError: A module below defines `build` and was not reached; or a build waits for itself, calls a model, or
            misses an input.
        SchemaError: A schema does not satisfy a contract.
        ArgumentError: The schemas do not fit the signature of `call`.
        SkipVerifyError: The skip connections below do not match.
        NoCallError: The class defines neither `call` nor `build`, and schemas were given.

    Example:
        >>> import synmod as sm
        >>> class Query(sm.DataModel):
        ...     question: str
        >>> sm.run(sm.build, sm.Identity(), Query).keys()
        ('question',)

    Source: Keras `Model.build`; differs: schemas instead of shapes, atomic.
    """
    return await build_and(lambda outputs: outputs, module, schemas, named, training)


async def build_and(
    check: Callable[[Any], T],
    module: Module,
    schemas: tuple[Any, ...],
    named: Mapping[str, Any] | None = None,
    training: bool | None = None,
) -> T:
    """Build a module as `build` does, and return what `check` returns for its outputs; its failure undoes the build."""
    place = f"{where(module)}: sm.build"
    args = tuple(contract.symbols_of(schema, place) for schema in schemas) or declaring.own_inputs_of(module)
    kwargs = {name: _by_keyword(value, place) for name, value in (named or {}).items()}
    while True:
        try:
            with SymbolicFrame(module, training, args) as frame, Build() as whole:
                if module._record.building is None:  # else the other caller's build restores the module
                    whole.remember(module)
                return check(await _verified(module, args, kwargs, is_root=frame.parent is None))
        except BaseException as error:
            other = gave_way_to(error)
            if other is None:
                raise
        await other.over.wait()


def _by_keyword(value: Any, place: str) -> Any:
    """Return a symbol for a value that declares data; return anything else unchanged, for `call`."""
    return contract.symbols_of(value, place) if kind_of(value) != LEAF or contract.is_declaration(value) else value


async def _verified(module: Module, args: tuple[Any, ...], kwargs: Mapping[str, Any], *, is_root: bool) -> Any:
    """Build, and check the wiring of a whole program; a wiring error explains more than the error of a single call."""
    if is_root:
        declaring.RoomsAbove.instance.verify_wiring(module, False)
    try:
        outputs = await _built(module, args, kwargs)
    except errors.SkipError as error:
        if is_root:
            try:
                declaring.RoomsAbove.instance.verify_wiring(module, True)
            except errors.SkipVerifyError as faults:
                raise faults from error
        raise
    if is_root:
        declaring.RoomsAbove.instance.verify_wiring(module, True)
    for _, each in _modules_below(module):  # built modules that no trace has called
        if each._record.built:
            seal(each)
    return outputs


async def _built(module: Module, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    """Build the module, then all modules below it that a trace of `call` reaches, also if the output is declared.

    A functional program, or an overridden `compute_output_spec`, builds the modules inside by itself; then `call` is
    traced only if a module below is still unbuilt.
    """
    record, declaration = module._record, module._record.declaration
    given, call = args or kwargs, declaration.call
    is_followed = hasattr(module, "call") and (
        given or not declaration.defines_build or 0 in call.counts or call.rest is not None
    )
    if is_followed:
        contract.check_signature(module, call, args, kwargs)
        contract.check_inputs(module, args, kwargs)
    elif given and not declaration.defines_build:
        raise contract.no_call(module)  # nothing would use the schemas
    await ensure_built(module, args, kwargs)
    outputs: Any = None
    reason = ""
    if is_followed:
        contract.check_inputs(module, args, kwargs)
        if (record.flow is None and not declaration.declares_spec) or unbuilt_below(module):
            try:
                outputs = await trace(module, args, kwargs)
            except Exception as error:
                is_declared = not contract.declared_outputs(module).nothing
                if _is_of_wiring(error) or not (is_declared or isinstance(error, errors.SymbolicValueError)):
                    raise
                reason = f" The trace of call did not reach them: {error}"
        if declaration.declares_spec or not contract.declared_outputs(module).nothing:
            outputs = await output_symbols(module, args, kwargs)
    elif hasattr(module, "call"):
        outputs = contract.declared_outputs(module).fresh()
    left = unbuilt_below(module)
    if left:
        raise errors.BuildError(
            f"{where(module)}: still unbuilt: {', '.join(path_str(path) or '(root)' for path in left)}.{reason} "
            f"Build them in the parent's build: `await {_expression(left[0])}.build(Schema)`."
        )
    return outputs


def unbuilt_below(module: Module) -> list[KeyPath]:
    """Return the paths of all unbuilt modules, `module` included."""
    return [path for path, each in _modules_below(module) if not each.built]


def _modules_below(module: Module) -> list[tuple[KeyPath, Module]]:
    """Return the modules of a tree with their paths, each once."""
    visits = (visit for visit in walk(module) if visit.first and visit.impl is not None and visit.impl.is_module)
    return [(visit.path, visit.value) for visit in visits]


def _expression(path: KeyPath) -> str:
    """Return the expression for a path, as code in the root writes it."""
    steps = (f".{step}" if isinstance(step, str) and step.isidentifier() else f"[{step!r}]" for step in path)
    return f"self{''.join(steps)}"


def was_cancelled(failure: BaseException) -> bool:
    """Whether a call ended because it was cancelled, or its coroutine closed."""
    return is_cancellation(failure) or isinstance(failure, GeneratorExit)


def end_entry(record: ModuleRecord, frame: CallFrame, phase: str, failure: BaseException | None) -> None:
    """Count an ended entry call, and pass its rewards to the blocks around it if it returned."""
    if failure is not None and was_cancelled(failure):
        record.counters.count_cancelled(phase)
        return
    record.counters.count_entry(phase, perf_counter() - frame.root.started, failed=failure is not None)
    if failure is None and frame.layer is not None:
        frame.layer.close()
    if failure is None and frame.root.given_rewards:
        scope.hand_up(frame)


def end_failed(record: ModuleRecord, frame: CallFrame, failure: BaseException) -> None:
    """Count a failed nested call, and drop the rewards given by it and the calls below it."""
    if not was_cancelled(failure):
        record.counters.count_nested()
    frame.root.failed_calls.add(frame.number)


async def call_module(  # noqa: C901  # flat: a function call more here would slow down every call of every program
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
        Exception: Any exception of `call`, unchanged except for one note.
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
        if is_not_taken(call, args, kwargs) and declaring.passes_none(module):
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
    limit = scope.plain_limit(around) if parent is None and around is not None else None
    if limit is not None:
        limit.__enter__()
    try:
        if not plain:
            try:
                args, kwargs = convert_arguments(module, args, kwargs)
            except errors.SynmodError:
                if listeners:
                    scope.begin_call(listeners, frame, args, kwargs)
                raise
        if listeners:
            scope.begin_call(listeners, frame, args, kwargs)
        if around is not None and around.deadline is not None:
            scope.check_deadline(frame, around)
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
            scope.end_call(begun, frame, args, output, None, started)
        return output
    except BaseException as error:
        failure = error
        if frame.layer is not None:
            frame.layer.drop()
        note_failure(error, frame, module, args)
        if listeners:
            scope.end_call(listeners, frame, args, None, error, started)
        if parent is None:
            errors.shorten_traceback(error)
        raise
    finally:
        frame.live = False
        try:
            FRAME.reset(token)
        except ValueError:  # closed by the garbage collector in another context: there is nothing to restore
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
