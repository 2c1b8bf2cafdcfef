"""`sm.build`: a whole program built from schemas, before the first token."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from synmod.errors import BuildError, SymbolicValueError
from synmod.module.building import Build, building, current_build, ensure_built
from synmod.module.checks import check_inputs
from synmod.module.frames import entered
from synmod.module.inputs import check_signature, where
from synmod.module.nests import symbols_of
from synmod.module.notes import note_call
from synmod.module.outputs import declared_outputs, symbolic_outputs
from synmod.module.symbolic import output_symbols, trace
from synmod.tree.walk import walk

if TYPE_CHECKING:
    from synmod.module.module import Module


async def build(module: Module, *schemas: Any, **named: Any) -> Any:
    """Build a module and everything below it, on symbols: no model is called and no value changes.

    Args:
        module: The module; a program that has its Inputs needs no schemas.
        *schemas: What the positional inputs of `call` will be: data models, schemas, symbols, values (their schema is
            taken), or nests of them.
        **named: The same for keyword inputs.

    Returns:
        The symbolic outputs; None if `call` must read a value, nothing is left unbuilt, and no output is declared.

    Raises:
        BuildError: A module below defines `build` and was not reached; or a build waits for itself, calls a model, or
            cannot be given its inputs.
        SchemaError: A schema does not meet a contract.
        ArgumentError: The schemas do not fit the signature of `call`.

    Example:
        >>> import synmod as sm
        >>> class Query(sm.DataModel):
        ...     question: str
        >>> sm.run(sm.build, sm.Identity(), Query).keys()
        ('question',)

    Source: Keras `Model.build`; differs: schemas for shapes, everything or nothing.
    """
    args = tuple(symbols_of(schema, f"{where(module)}: sm.build") for schema in schemas)
    kwargs = {name: symbols_of(schema, f"{where(module)}: sm.build") for name, schema in named.items()}
    args = args or module._own_inputs()
    whole = Build(None, current_build(), None)
    with building(whole), entered(module, None, symbolic=True) as frame:
        try:
            whole.undo.remember_below(module)
            if _wants_inputs(module, args, kwargs):
                check_signature(module, module._record.declaration.call, args, kwargs)
                check_inputs(module, args, kwargs)
            await ensure_built(module, args, kwargs)
            if _wants_inputs(module, args, kwargs):
                check_inputs(module, args, kwargs)
            return await _outputs(module, args, kwargs)
        except Exception as error:
            note_call(error, frame, module, args)
            raise


def _wants_inputs(module: Module, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> bool:
    """Tell whether there is a `call` whose inputs were given."""
    return hasattr(module, "call") and bool(args or kwargs)


async def _outputs(module: Module, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    """Find the outputs, and trace `call` where something below is unbuilt, so that the whole tree builds."""
    if not hasattr(module, "call"):
        _refuse_unbuilt(module, None)
        return None
    declared = declared_outputs(module)
    is_declared = not declared.nothing or module._record.declaration.declares_spec
    blocked: SymbolicValueError | None = None
    outputs: Any = None
    if is_declared:
        if unbuilt_below(module):
            try:
                await trace(module, args, kwargs)
            except SymbolicValueError as error:
                blocked = error
        outputs = await output_symbols(module, args, kwargs)
    else:
        try:
            outputs = symbolic_outputs(module, await trace(module, args, kwargs))
        except SymbolicValueError as error:
            blocked = error
    _refuse_unbuilt(module, blocked)
    return outputs


def unbuilt_below(module: Module) -> list[str]:
    """The paths of all modules, `module` included, that define `build` and are unbuilt."""
    return [
        "/".join(map(str, visit.path)) or "(root)"
        for visit in walk(module)
        if visit.kind == "node" and visit.first and hasattr(visit.value, "_record") and not visit.value.built
    ]


def _refuse_unbuilt(module: Module, cause: SymbolicValueError | None) -> None:
    left = unbuilt_below(module)
    if not left:
        return
    reason = f" call could not be followed to them: {cause}" if cause is not None else ""
    child = left[0]
    raise BuildError(
        f"{where(module)}: still unbuilt: {', '.join(left)}.{reason} "
        f"Build them in the parent's build: `await self.{child.replace('/', '.')}.build(Schema)`."
    )
