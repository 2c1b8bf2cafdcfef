"""`sm.build` and `module.build`: a whole program built from schemas before the first token; and build configs."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Generator, Mapping
from typing import Any, cast

from synmod.data import SymbolicDataModel, declare, schema_of, symbol
from synmod.errors import BuildError, ConfigError, SkipError, SkipVerifyError, SymbolicValueError
from synmod.leaves.aio import Suspended, drive
from synmod.leaves.frozen import thaw
from synmod.leaves.names import KeyPath, did_you_mean, path_str
from synmod.leaves.nests import LEAF, MAPPING, kind_of
from synmod.tree import class_of, walk

from .building import ensure_built, mark_built
from .builds import Build, gave_way_to, remember, running_own_build, waits_for_itself
from .calling import note_failure, output_symbols, trace
from .contract import check_inputs, check_signature, is_declaration, no_call, symbols_of, where
from .frames import SymbolicFrame
from .outputs import declared_outputs, symbolic_outputs
from .record import Module, ModuleRecord
from .structure import seal
from .wiring import own_inputs_of, verify_wiring


async def build(module: Module, *schemas: Any, training: bool | None = None, **named: Any) -> Any:
    """Build a module and everything below it, on symbols: no model is called and no value changes.

    Args:
        module: The module; a program that has its Inputs needs no schemas.
        *schemas: What the positional inputs of `call` will be: data models, schemas, symbols, values (their schema is
            taken), or nests of them.
        training: The mode in which `call` is followed.
        **named: The same for keyword inputs; what declares no data goes to `call` as it is.

    Returns:
        The symbolic outputs; None if `call` must read a value, nothing is left unbuilt, and no output is declared.

    Raises:
        BuildError: A module below defines `build` and was not reached; or a build waits for itself, calls a model, or
            cannot be given its inputs.
        SchemaError: A schema does not meet a contract.
        ArgumentError: The schemas do not fit the signature of `call`.
        SkipVerifyError: The skip connections below do not match.
        NoCallError: The class defines neither `call` nor `build`, and schemas were given.

    Example:
        >>> import synmod as sm
        >>> class Query(sm.DataModel):
        ...     question: str
        >>> sm.run(sm.build, sm.Identity(), Query).keys()
        ('question',)

    Source: Keras `Model.build`; differs: schemas for shapes, everything or nothing.
    """
    place = f"{where(module)}: sm.build"
    args = tuple(symbols_of(schema, place) for schema in schemas) or own_inputs_of(module)
    kwargs = {name: _by_keyword(value, place) for name, value in named.items()}
    while True:
        with SymbolicFrame(module, training) as frame:
            try:
                with Build() as whole:
                    if module._record.building is None:  # another caller's build restores what it began with
                        whole.remember(module)
                    return await _verified(module, args, kwargs, is_root=frame.parent is None)
            except BaseException as error:
                other = gave_way_to(error)
                if other is None:
                    note_failure(error, frame, module, args)
                    raise
        await other.over.wait()


def _by_keyword(value: Any, place: str) -> Any:
    """A symbol for what declares data; anything else is for `call` itself."""
    return symbols_of(value, place) if kind_of(value) != LEAF or is_declaration(value) else value


async def _verified(module: Module, args: tuple[Any, ...], kwargs: Mapping[str, Any], *, is_root: bool) -> Any:
    """Build, and check the wiring of a whole program; a fault there explains more than the call that met it."""
    if is_root:
        verify_wiring(module, is_whole=False)
    try:
        outputs = await _built(module, args, kwargs)
    except SkipError as error:
        if is_root:
            try:
                verify_wiring(module)
            except SkipVerifyError as faults:
                raise faults from error
        raise
    if is_root:
        verify_wiring(module)
    _seal_below(module)
    return outputs


def _seal_below(module: Module) -> None:
    """Seal what the build did not come by: modules without `build` that no trace has called."""
    for visit in walk(module):
        record = getattr(visit.value, "_record", None) if visit.kind == "node" and visit.first else None
        if isinstance(record, ModuleRecord) and record.built and not record.sealed:
            remember(visit.value)
            seal(visit.value)


async def _built(module: Module, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    """Build the module, then all below it that following `call` reaches."""
    has_call = hasattr(module, "call")
    if not has_call and (args or kwargs) and not module._record.declaration.defines_build:
        raise no_call(module)  # nobody would look at the schemas
    needs_no_inputs = not args and not kwargs and module._record.declaration.defines_build
    followed = has_call and not (needs_no_inputs and not _takes_nothing(module))
    if followed:
        check_signature(module, module._record.declaration.call, args, kwargs)
        check_inputs(module, args, kwargs)
    await ensure_built(module, args, kwargs)
    if followed:
        check_inputs(module, args, kwargs)
        return await _outputs(module, args, kwargs)
    _refuse_unbuilt(module, None)
    return declared_outputs(module).fresh() if has_call and not declared_outputs(module).nothing else None


def _takes_nothing(module: Module) -> bool:
    """Whether `call` may be called without inputs."""
    call = module._record.declaration.call
    return 0 in call.counts or call.rest is not None


async def _outputs(module: Module, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    """Trace `call`, also where the output is declared, so that the whole tree builds and wrong wiring is found.

    Where a functional program, or an overridden `compute_output_spec`, follows what is inside by itself, `call` is
    traced only if something below is unbuilt.
    """
    record = module._record
    is_declared = not declared_outputs(module).nothing or record.declaration.declares_spec
    blocked: SymbolicValueError | None = None
    outputs: Any = None
    if (record.flow is None and not record.declaration.declares_spec) or unbuilt_below(module):
        try:
            outputs = symbolic_outputs(module, await trace(module, args, kwargs))
        except SymbolicValueError as error:
            blocked = error
    if is_declared:
        outputs = await output_symbols(module, args, kwargs)
    _refuse_unbuilt(module, blocked)
    return outputs


def unbuilt_below(module: Module) -> list[KeyPath]:
    """The paths of all modules, `module` included, that define `build` and are unbuilt."""
    return [
        visit.path
        for visit in walk(module)
        if visit.kind == "node" and visit.first and hasattr(visit.value, "_record") and not visit.value.built
    ]


def _refuse_unbuilt(module: Module, cause: SymbolicValueError | None) -> None:
    left = unbuilt_below(module)
    if not left:
        return
    reason = f" call could not be followed to them: {cause}" if cause is not None else ""
    raise BuildError(
        f"{where(module)}: still unbuilt: {', '.join(path_str(path) or '(root)' for path in left)}.{reason} "
        f"Build them in the parent's build: `await {_expression(left[0])}.build(Schema)`."
    )


def _expression(path: KeyPath) -> str:
    """How code of the root writes a path."""
    steps = (f".{step}" if isinstance(step, str) and step.isidentifier() else f"[{step!r}]" for step in path)
    return f"self{''.join(steps)}"


# -- `module.build` ---------------------------------------------------------------------------------------------------


class BuildMethod:
    """A class's own `build` as a method: called from outside it is once, checked, and all or nothing."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        functools.update_wrapper(self, function)  # signature, text, and whether it is abstract

    def __get__(self, module: Any, owner: type | None = None) -> Any:
        return self if module is None else functools.partial(self, module)

    def __call__(self, module: Any, *inputs: Any, **named: Any) -> Any:
        """Run the body where the module's own build runs (`super().build(...)`), else build the module."""
        running = running_own_build(module._record)
        if running is None:
            return build(module, *inputs, **named)
        if self is inspect.getattr_static(class_of(module), "build"):
            raise waits_for_itself(module)
        return self.run(module, *inputs, **named)

    def run(self, module: Any, *inputs: Any, **named: Any) -> Any:
        """Run the body, whatever it is: plain or async."""
        body: Any = self.function.__get__(module)
        return body(*inputs, **named)


def empty_build(_module: Any, *_inputs: Any, **_named: Any) -> Nothing:
    """Make nothing: the `build` of `Module`."""
    return Nothing()


class Nothing:
    """What the empty build returns: it may be awaited, and may be left alone."""

    def __await__(self) -> Generator[Any, Any, None]:
        return
        yield


# -- build configs -----------------------------------------------------------------------------------------------------


def build_config_json(module: Module) -> dict[str, Any] | None:
    """Return the schemas a module was built on, by parameter of `build`; None for one that was not."""
    built_on = module._record.build_config
    return None if built_on is None else {"schemas": {name: _to_json(nest) for name, nest in built_on.items()}}


def _to_json(nest: Any) -> Any:
    if nest is None:
        return None
    if isinstance(nest, SymbolicDataModel):
        return thaw(schema_of(nest))
    if kind_of(nest) == MAPPING:
        return {"dict": {key: _to_json(item) for key, item in nest.items()}}
    return [_to_json(item) for item in nest]


def _from_json(json: Any) -> Any:
    if json is None:
        return None
    if isinstance(json, list | tuple):
        return [_from_json(item) for item in cast("list[Any]", json)]
    if isinstance(json, dict) and list(cast("dict[str, Any]", json)) == ["dict"]:
        return {key: _from_json(item) for key, item in cast("dict[str, dict[str, Any]]", json)["dict"].items()}
    if not isinstance(json, dict):
        raise ConfigError(
            f"a build config has a schema, null, a list or {{'dict': ...}} for an input, not {json!r:.100}."
        )
    return symbol(declare(json))


def read_build_config(module: Module, config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the symbols by parameter of `build` that a config describes.

    Raises:
        ConfigError: It is not a build config of this class.
        SchemaError: A schema in it cannot be used.
    """
    schemas = config.get("schemas")
    if len(config) != 1 or not isinstance(schemas, Mapping):
        raise ConfigError(
            f"{where(module)}: a build config is {{'schemas': {{parameter: schema}}}}, not {config!r:.100}."
        )
    signature = module._record.declaration.build
    for name in cast("Mapping[str, Any]", schemas):
        if name not in signature.parameters:
            raise ConfigError(
                f"{where(module)}: build{signature} takes no {name!r}, which its build config names."
                f"{did_you_mean(name, signature.parameters)}"
            )
    return {name: _from_json(json) for name, json in cast("Mapping[str, Any]", schemas).items()}


def build_from_config(module: Module, config: Mapping[str, Any] | None) -> None:
    """Bring an unbuilt module to the state that a build config describes.

    `build` runs on symbols, to its end. Where a load has restored what an earlier `build` made, `add_variable` returns
    the Variables that are there.

    Raises:
        BuildError: The `build` waits for something; everything is undone.
        ConfigError: It is not a build config of this class.
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
        drive(_build_alone(module, bound.args, bound.kwargs))
    except Suspended:
        raise BuildError(
            f"{where(module)}: its build waits for something, which plain code cannot: "
            "use `await sm.build(module, Schema)`."
        ) from None


async def _build_alone(module: Module, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
    """Run the module's own build only: what is below it has a config of its own."""
    with SymbolicFrame(module) as frame:
        try:
            await ensure_built(module, args, kwargs)
        except BaseException as error:
            note_failure(error, frame, module, args)
            raise
