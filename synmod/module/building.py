"""The build before the first call: once for all concurrent callers, completely or not at all.

The first caller builds, the others wait for the end and check again. `build` builds a whole tree, on symbols: their
frame and the trace of `call` come first.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator, Mapping
from contextvars import Token
from time import perf_counter
from typing import TYPE_CHECKING, Any, TypeVar, cast

from synmod import data, errors, leaves, scope, tree
from synmod.leaves import LEAF, KeyPath, is_cancellation, kind_of, path_str
from synmod.scope import FRAME, CallFrame, hooks_for
from synmod.tree import class_of, discard_writes, keep_writes, walk

from . import contract, transactions
from .contract import is_datum, is_declaration, symbols_of
from .declaring import RoomsAbove, own_inputs_of, verify_first_call
from .structure import ABSENT, attributes_of, extend_paths, paths_below, seal, where
from .transactions import Build

if TYPE_CHECKING:
    from .module import Module

T = TypeVar("T")


# -- on symbols -------------------------------------------------------------------------------------------------------


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
        record = module._record
        default = module.__dict__.get("training", record.declaration.call.training_on_class)
        self._frame = scope.new_frame(record, scope.ambient(), training, default, symbolic=True)
        if self._frame.parent is None:
            self._frame.run.paths = paths_below(module)
        self._token: Token[CallFrame | None] | None = None

    def __enter__(self) -> CallFrame:
        self._token = FRAME.set(self._frame)
        return self._frame

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        frame, layer = self._frame, self._frame.layer
        failure = None if error is None else scope.unwrap_group(error)
        try:
            if layer is not None and error is None and self._inputs is not None:
                self.effects = layer.effects()
                layer.commit()
            elif layer is not None:
                layer.drop()
            if failure is not None and self._inputs is not None:
                note_failure(failure, frame, self._module, self._inputs)
        finally:
            frame.live = False
            frame.layer = None
            if self._token is not None:
                leaves.reset(FRAME, self._token)
        if failure is not None and failure is not error:
            leaves.aio.reraise(failure)


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
                str(leaf._schema.get("title") or leaf.name) for leaf in contract.leaves_of_any(inputs) if is_datum(leaf)
            ]
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
        raise contract.no_call(module)
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


# -- the build of a tree -----------------------------------------------------------------------------------------------


async def build(module: Module, *schemas: Any, training: bool | None = None, **keywords: Any) -> Any:
    """Build a module and everything below it, on symbols: no model is called and no value changes.

    Args:
        module: The module; a program with its own Inputs needs no schemas.
        *schemas: The positional inputs of `call`: data models, schemas, symbols, values (only their schema is used), or
            nests of them.
        training: The mode in which `call` is traced.
        **keywords: The keyword inputs, likewise; values that do not declare data are passed to `call` unchanged.

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
    return await build_and_check(lambda outputs: outputs, module, schemas, keywords, training)


async def build_and_check(
    check: Callable[[Any], T],
    module: Module,
    schemas: tuple[Any, ...],
    keywords: Mapping[str, Any] | None = None,
    training: bool | None = None,
) -> T:
    """Build a module as `build` does, and return what `check` returns for its outputs; its failure undoes the build."""
    place = f"{where(module)}: sm.build"
    args = tuple(symbols_of(schema, place) for schema in schemas) or own_inputs_of(module)
    kwargs = {name: _symbols_by_keyword(value, place) for name, value in (keywords or {}).items()}
    while True:
        try:
            with SymbolicFrame(module, training, args) as frame, Build() as whole:
                if module._record.building is None:  # else the other caller's build restores the module
                    whole.remember(module)
                return check(await _build_and_verify(module, args, kwargs, is_root=frame.parent is None))
        except BaseException as error:
            blocker = transactions.build_to_wait_for(error)
            if blocker is None:
                raise
        await blocker.over.wait()


def _symbols_by_keyword(value: Any, place: str) -> Any:
    """Return a symbol for a value that declares data; return anything else unchanged, for `call`."""
    return symbols_of(value, place) if kind_of(value) != LEAF or is_declaration(value) else value


async def _build_and_verify(module: Module, args: tuple[Any, ...], kwargs: Mapping[str, Any], *, is_root: bool) -> Any:
    """Build, and check the wiring of a whole program; a wiring error explains more than the error of a single call."""
    if is_root:
        RoomsAbove.instance.verify_wiring(module, False)
    try:
        outputs = await _build_tree(module, args, kwargs)
    except errors.SkipError as error:
        if is_root:
            try:
                RoomsAbove.instance.verify_wiring(module, True)
            except errors.SkipVerifyError as faults:
                raise faults from error
        raise
    if is_root:
        RoomsAbove.instance.verify_wiring(module, True)
    for _, part in _modules_below(module):  # built modules that no trace has called
        if part._record.built:
            seal(part)
    return outputs


async def _build_tree(module: Module, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    """Build the module, then all modules below it that a trace of `call` reaches, also if the output is declared.

    A functional program, or an overridden `compute_output_spec`, builds the modules inside by itself; then `call` is
    traced only if a module below is still unbuilt.
    """
    record, declaration = module._record, module._record.declaration
    inputs, call = args or kwargs, declaration.call
    is_followed = hasattr(module, "call") and (
        inputs or not declaration.defines_build or 0 in call.counts or call.rest is not None
    )
    if is_followed:
        contract.check_signature(module, call, args, kwargs)
        contract.check_inputs(module, args, kwargs)
    elif inputs and not declaration.defines_build:
        raise contract.no_call(module)  # nothing would use the schemas
    await ensure_built(module, args, kwargs)
    outputs: Any = None
    reason = ""
    if is_followed:
        contract.check_inputs(module, args, kwargs)
        if (record.flow is None and not declaration.declares_spec) or unbuilt_paths(module):
            try:
                outputs = await trace(module, args, kwargs)
            except Exception as error:
                is_declared = not contract.output_declaration(module).nothing
                if is_of_wiring(error) or not (is_declared or isinstance(error, errors.SymbolicValueError)):
                    raise
                reason = f" The trace of call did not reach them: {error}"
        if declaration.declares_spec or not contract.output_declaration(module).nothing:
            outputs = await output_symbols(module, args, kwargs)
    elif hasattr(module, "call"):
        outputs = contract.output_declaration(module).fresh()
    left = unbuilt_paths(module)
    if left:
        raise errors.BuildError(
            f"{where(module)}: still unbuilt: {', '.join(path_str(path) or '(root)' for path in left)}.{reason} "
            f"Build them in the parent's build: `await {_expression_of(left[0])}.build(Schema)`."
        )
    return outputs


def unbuilt_paths(module: Module) -> list[KeyPath]:
    """Return the paths of all unbuilt modules, `module` included."""
    return [path for path, part in _modules_below(module) if not part.built]


def _modules_below(module: Module) -> list[tuple[KeyPath, Module]]:
    """Return the modules of a tree with their paths, each once."""
    visits = (visit for visit in walk(module) if visit.first and visit.impl is not None and visit.impl.is_module)
    return [(visit.path, visit.value) for visit in visits]


def _expression_of(path: KeyPath) -> str:
    """Return the expression for a path, as code in the root writes it."""
    steps = (f".{step}" if isinstance(step, str) and step.isidentifier() else f"[{step!r}]" for step in path)
    return f"self{''.join(steps)}"


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
    while not transactions.is_ready_here(record):
        if record.built and record.building is None:
            verify_first_call(module)
            seal(module)
            extend_paths(module)
            return
        try:
            own, blocker = transactions.take_turn(module)
            if own is not None:
                await _build_module(own, module, args, kwargs)
            elif blocker is not None:
                await transactions.wait_for(blocker)
        except BaseException as error:
            blocker = transactions.build_to_wait_for(error)
            if blocker is None:
                raise
            await blocker.over.wait()


async def _build_module(block: Build, module: Module, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
    """Run the module's own `build` on symbols, in its block and its own frame, between the build events."""
    with block:
        before, caller, record = dict(attributes_of(module)), scope.current_call(), module._record
        inputs = _bind_symbols(module, args, kwargs)
        body = inspect.getattr_static(class_of(module), "build").function.__get__(module)
        with SymbolicFrame(module) as frame:
            listeners = () if record.restored is not None else hooks_for(scope.ambient(), record.hooks)  # not of a load
            place = caller if caller is not None and caller.owner is record else frame  # the call that builds
            at, started = (place, place.phase), perf_counter()
            failure: BaseException | None = None
            try:
                if listeners:
                    scope.notify(listeners, scope.BuildBegin(*scope.place_of(*at), inputs.args, inputs.kwargs))
                # traces and overlays are set aside: a build is for all callers
                with keep_writes(transactions.remember_variable):
                    pending = body(*inputs.args, **inputs.kwargs)
                    if inspect.isawaitable(pending):
                        await pending
            except BaseException as error:
                failure = error
                raise
            finally:
                if listeners:
                    elapsed_s = perf_counter() - started
                    scope.notify(listeners, scope.BuildEnd(*scope.place_of(*at), inputs.args, failure, elapsed_s))
                failure = None  # avoids a reference cycle of the exception and this frame
        assigned = [name for name, value in attributes_of(module) if before.get(name, ABSENT) is not value]
        mark_built(module, dict(inputs.arguments), frozenset(assigned))


def mark_built(module: Module, arguments: dict[str, Any], assigned: frozenset[str] = frozenset()) -> None:
    """Record that the module's own build is done, on which inputs and with which new attributes; then seal it."""
    record = module._record
    record.build_config, record.made_in_build = arguments, assigned
    record.built = True
    record.contract = record.declared = None
    seal(module)


def _bind_symbols(module: Module, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> inspect.BoundArguments:
    """Return the arguments for a module's own `build`: a symbol in place of each value.

    Raises:
        CallError: A keyword argument for a required parameter is not data.
        BuildError: A required parameter has no argument; names it.
    """
    signature = module._record.declaration.build
    data = contract.data_among(kwargs)
    matched = contract.inputs_by_parameter(signature, args, data)
    parameters = signature.parameters.values()
    required = [p.name for p in parameters if p.default is p.empty and p.kind is not inspect.Parameter.VAR_KEYWORD]
    missing = [name for name in required if name not in matched]
    for name in missing:
        if name in kwargs and name not in data:
            raise contract.wrong_leaf(module, name, kwargs[name])
    if missing:
        raise errors.BuildError(
            f"{where(module)}: build{signature} has no argument for {', '.join(map(repr, missing))}. It receives a "
            "symbol for each positional input of call, and the keyword data that it names."
        )
    return inspect.BoundArguments(signature, {name: contract.fresh(value) for name, (_, value) in matched.items()})  # pyright: ignore[reportArgumentType]


# -- the method `build` ------------------------------------------------------------------------------------------------


class BuildMethod:
    """A class's own `build` as a method; a call from outside builds the module: once, checked and atomic."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        functools.update_wrapper(self, function)  # signature, docstring and `__isabstractmethod__`

    def __get__(self, module: Any, owner: type | None = None) -> Any:
        return self if module is None else functools.partial(self, module)

    def __call__(self, module: Any, *inputs: Any, **keywords: Any) -> Any:
        """Run the body if the module's own build is running (`super().build(...)`), else build the module."""
        if transactions.current_own_build(module._record) is None:
            return build(module, *inputs, **keywords)
        if self is inspect.getattr_static(tree.class_of(module), "build"):
            raise transactions.self_wait_error(module)
        return self.function.__get__(module)(*inputs, **keywords)


def build_nothing(_module: Any, *_inputs: Any, **_keywords: Any) -> _NoResult:
    """Do nothing: the `build` of `Module`."""
    return _NoResult()


class _NoResult:
    """The result of the empty build: may be awaited or not, unlike a coroutine."""

    def __await__(self) -> Iterator[Any]:
        return iter(())


# -- build configs -----------------------------------------------------------------------------------------------------


def write_build_config(module: Module, write: Callable[[Any], Any]) -> dict[str, Any] | None:
    """Return what a module was built on, by parameter of `build`, with `write(symbol)` for each symbol; else None."""

    def convert(nest: Any) -> Any:
        if nest is None or isinstance(nest, data.SymbolicDataModel):
            return None if nest is None else write(nest)
        if leaves.kind_of(nest) == leaves.MAPPING:
            return {"dict": {key: convert(item) for key, item in nest.items()}}
        return [convert(item) for item in nest]

    built_on = module._record.build_config
    return None if built_on is None else {"schemas": {name: convert(nest) for name, nest in built_on.items()}}


def _nest_from_json(json: Any) -> Any:
    if json is None:
        return None
    if leaves.is_sequence(json):
        return [_nest_from_json(item) for item in json]
    if leaves.is_object(json) and list(json) == ["dict"]:
        return {key: _nest_from_json(item) for key, item in json["dict"].items()}
    if not leaves.is_object(json):
        raise errors.ConfigError(
            f"an input of a build config is a schema, null, a list or {{'dict': ...}}, not {json!r:.100}."
        )
    return data.symbol(data.declare(json))


def read_build_config(module: Module, config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the symbols of a build config, by parameter of `build`.

    Raises:
        ConfigError: `config` is not a build config of this class.
        SchemaError: A schema in it is unusable.
    """
    schemas = config.get("schemas")
    if len(config) != 1 or not leaves.is_mapping(schemas):
        raise errors.ConfigError(
            f"{where(module)}: a build config is {{'schemas': {{parameter: schema}}}}, not {config!r:.100}."
        )
    signature = module._record.declaration.build
    for name in schemas:
        if name not in signature.parameters:
            raise errors.ConfigError(
                f"{where(module)}: build{signature} has no parameter {name!r}, which its build config has."
                f"{leaves.did_you_mean(name, signature.parameters)}"
            )
    return {name: _nest_from_json(json) for name, json in schemas.items()}


def build_from_config(module: Module, config: Mapping[str, Any] | None) -> None:
    """Build an unbuilt module on the schemas of a build config.

    `build` runs on symbols, without waiting. If a load has restored the Variables of an earlier `build`, `add_variable`
    returns those.

    Raises:
        BuildError: `build` awaits something that does not return at once; everything is undone.
        ConfigError: `config` is not a build config of this class.
    """
    record = module._record
    if config is None or record.built:
        return
    built_on = read_build_config(module, config)
    if record.flow is not None:  # its `build` made the graph, which a load restores by itself
        mark_built(module, built_on)
        return
    bound = inspect.BoundArguments(record.declaration.build, built_on)  # pyright: ignore[reportArgumentType]
    try:
        leaves.drive(_build_without_parts(module, bound.args, bound.kwargs))
    except leaves.Suspended:
        raise errors.BuildError(
            f"{where(module)}: its build must wait, which synchronous code cannot: use "
            "`await sm.build(module, Schema)`."
        ) from None


async def _build_without_parts(module: Module, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
    """Run the module's own build only: the modules below have their own configs."""
    with SymbolicFrame(module, inputs=args):
        await ensure_built(module, args, kwargs)
