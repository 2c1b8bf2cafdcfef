"""`sm.build`: a whole program built from schemas, before the first token."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from synmod.errors import BuildError, SkipError, SkipVerifyError, SymbolicValueError
from synmod.flow import LEAF, kind_of
from synmod.leaves.names import KeyPath, path_str
from synmod.module.building.building import ensure_built
from synmod.module.building.builds import Build, current_undo
from synmod.module.building.checks import check_inputs
from synmod.module.building.symbolic import output_symbols, trace
from synmod.module.execution import verify_wiring
from synmod.module.frames import SymbolicFrame
from synmod.module.interface.inputs import check_signature, no_call
from synmod.module.interface.nests import is_declaration, symbols_of
from synmod.module.interface.outputs import declared_outputs, symbolic_outputs
from synmod.module.interface.where import where
from synmod.module.notes import note_failure
from synmod.module.record import ModuleRecord
from synmod.module.sealing import seal
from synmod.tree import walk

if TYPE_CHECKING:
    from synmod.module.module import Module


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
    args = tuple(symbols_of(schema, place) for schema in schemas) or module._own_inputs()
    kwargs = {name: _by_keyword(value, place) for name, value in named.items()}
    with SymbolicFrame(module, training) as frame:
        try:
            with Build() as whole:
                whole.undo.remember_containers(module, [whole])
                return await _verified(module, args, kwargs, is_root=frame.parent is None)
        except BaseException as error:
            note_failure(error, frame, module, args)
            raise


def _by_keyword(value: Any, place: str) -> Any:
    """A symbol for what declares data; anything else is for `call` itself."""
    return symbols_of(value, place) if kind_of(value) != LEAF or is_declaration(value) else value


async def _verified(module: Module, args: tuple[Any, ...], kwargs: Mapping[str, Any], *, is_root: bool) -> Any:
    """Build, and check the wiring of a whole program; what is wrong there says more than the call that met it."""
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
    undo = current_undo()
    for visit in walk(module):
        record = getattr(visit.value, "_record", None) if visit.kind == "node" and visit.first else None
        if isinstance(record, ModuleRecord) and record.built and not record.sealed:
            if undo is not None:
                undo.remember_lifecycle(visit.value)
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
    """Tell whether `call` may be called without inputs."""
    call = module._record.declaration.call
    return 0 in call.counts or call.rest is not None


async def _outputs(module: Module, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    """Find the outputs, and trace `call` where something below is unbuilt, so that the whole tree builds."""
    is_declared = not declared_outputs(module).nothing or module._record.declaration.declares_spec
    blocked: SymbolicValueError | None = None
    outputs: Any = None
    if not is_declared or unbuilt_below(module):
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
