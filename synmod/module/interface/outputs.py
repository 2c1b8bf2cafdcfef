"""What a call returns: converted to data, and checked where it was declared."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any, cast

from synmod.data import (
    DataModel,
    JsonDataModel,
    SymbolicDataModel,
    is_subschema,
    to_value,
    validate,
    validator_faults,
    wrap,
)
from synmod.errors import CallError, DataError, SchemaError
from synmod.flow import MAPPING, aligned, kind_of, leaves, map_leaves, pack
from synmod.leaves.frozen import frozen
from synmod.module.interface.annotations import UNDECLARED
from synmod.module.interface.known import ANY_CLASS, KnownSchemas
from synmod.module.interface.nests import fresh, symbols_of, title_of_schema
from synmod.module.interface.where import kind_text, where

if TYPE_CHECKING:
    from synmod.module.module import Module

_UNSET = object()


class DeclaredOutputs:
    """The outputs that a module declares: a nest of symbols, or nothing.

    `known` answers the common output, one value, by one lookup.
    """

    __slots__ = ("is_single", "known", "nest", "nothing")

    def __init__(self, module: Module) -> None:
        declaration = module._record.declaration
        spec = vars(module).get("output_spec", getattr(module, "_class_output_spec", _UNSET))
        if spec is _UNSET or spec is None:
            flow = module._record.flow
            spec = declaration.call.outputs if flow is None else flow.output_symbols()
        self.nothing = spec is UNDECLARED
        self.nest: Any = None if self.nothing else symbols_of(spec, f"{where(module)}: output_spec")
        self.is_single = isinstance(self.nest, SymbolicDataModel)
        self.known = KnownSchemas()

    def remember(self, value: JsonDataModel[Any]) -> None:
        """Let the next output of this schema (and class, where one is declared) pass by one lookup."""
        self.known = self.known.plus(value, ANY_CLASS if self.nest._model is None else value._model)

    def fresh(self) -> Any:
        """New symbols, as each symbolic call gives."""
        return fresh(self.nest)

    def nones(self) -> Any:
        """The declared structure with None at every leaf: what a call that is not taken returns."""
        return None if self.nothing else map_leaves(lambda _: None, self.nest)


def declared_outputs(module: Module) -> DeclaredOutputs:
    """The outputs that `module` declares, made once."""
    record = module._record
    if record.declared is None:
        record.declared = DeclaredOutputs(module)
    return record.declared


def check_output(module: Module, output: Any) -> Any:
    """Turn what `call` returned into data, and check it where it was declared.

    Args:
        module: The module that was called.
        output: What its `call` returned.

    Returns:
        The output, with instances and (where one schema is declared) a plain JSON object turned into values.

    Raises:
        CallError: It is no data, or has another structure than declared.
        SchemaError: A leaf is not valid for its declared schema.
    """
    if output is None or module._record.flow is not None:  # a graph holds each of its steps to what was recorded
        return output
    declared = declared_outputs(module)
    if declared.nothing:
        return _undeclared(module, output)
    if declared.is_single:
        return _fits(module, declared, declared.nest, output, "")
    pairs = aligned(declared.nest, output)
    if pairs is None:
        raise CallError(
            f"{where(module)}: call returned {kind_text(output)} of another structure than it declares: "
            f"{kind_text(declared.nest)} with {len(leaves(declared.nest))} leaves."
        )
    values = [
        leaf if leaf is None else _fits(module, None, wanted, leaf, f", leaf {'/'.join(map(str, path))}")
        for path, wanted, leaf in pairs
    ]
    return pack(declared.nest, iter(values))


def _fits(module: Module, declared: DeclaredOutputs | None, wanted: SymbolicDataModel | None, x: Any, at: str) -> Any:
    if wanted is None:
        return _undeclared(module, x)
    if isinstance(x, dict):
        return _wrapped(module, wanted, cast("dict[str, Any]", x), at)
    value = as_value(x)
    if value is None:
        raise _no_data(module, x, at)
    schema, given = wanted._schema, value._schema
    model = wanted._model
    foreign = model is not None and not (value._model is not None and issubclass(value._model, model))
    if given is schema or is_subschema(given, schema):
        if foreign:
            _run_validators(module, model, value, at)
        elif declared is not None:
            declared.remember(value)
        return value
    try:
        validate(schema, value._json, f"{where(module)}: the output of call{at}, declared {title_of_schema(schema)}")
    except SchemaError as error:
        raise SchemaError(f"{error}\n  got {title_of_schema(given)}", error.errors) from None
    if foreign:
        _run_validators(module, model, value, at)
    return value


def as_value(x: object) -> JsonDataModel[Any] | None:
    """Turn a model instance into a value, leave a value, and give None for everything else."""
    if isinstance(x, DataModel):
        return to_value(x)
    return cast("JsonDataModel[Any]", x) if isinstance(x, JsonDataModel) else None


def _run_validators(module: Module, model: Any, value: JsonDataModel[Any], at: str) -> None:
    """Run the class's own validators on a value that was not made from an instance."""
    validator_faults(model, value._json, f"{where(module)}: the output of call{at}")


def _wrapped(module: Module, wanted: SymbolicDataModel, x: dict[str, Any], at: str) -> JsonDataModel[Any]:
    """Validate a plain JSON object against the one schema that is declared, and make a value of it."""
    place = f"{where(module)}: the output of call{at}"
    try:
        json = frozen(x)
    except DataError as error:
        raise DataError(f"{place}: {error}") from None
    validate(wanted._schema, json, f"{place}, declared {title_of_schema(wanted._schema)}")
    if wanted._model is None:
        return wrap(json, wanted._schema, None, wanted._label)
    _run_validators(module, wanted._model, wrap(json, wanted._schema, None, wanted._label), at)
    return wrap(json, wanted._schema, wanted._model, wanted._label)


def _undeclared(module: Module, output: Any) -> Any:
    def convert(leaf: Any) -> Any:
        value = as_value(leaf)
        if value is None and leaf is not None:
            raise _no_data(module, leaf, "")
        return value

    if kind_of(output) == MAPPING and not any(isinstance(x, JsonDataModel | DataModel | None) for x in leaves(output)):
        raise _no_data(module, output, "")
    return map_leaves(convert, output)


def _no_data(module: Module, x: Any, at: str) -> CallError:
    start = f"{where(module)}: call returned {kind_text(x)}{at}, which is no data."
    if isinstance(x, SymbolicDataModel):
        return CallError(
            f"{where(module)}: call returned a symbol{at} where values went in: return what the inputs give."
        )
    if inspect.isawaitable(x):
        return CallError(f"{start} Write `return await ...`.")
    return CallError(
        f"{start} Wrap it, `return Answer(...)` or `sm.JsonDataModel(x, data_model=Answer)`, "
        "or declare `-> Answer` on call and return a plain JSON object."
    )


def symbolic_outputs(module: Module, outputs: Any) -> Any:
    """Turn what a declaration or a trace gave into fresh symbols.

    Raises:
        CallError: A leaf is no data.
    """

    def as_symbol(leaf: Any) -> Any:
        if leaf is None or isinstance(leaf, SymbolicDataModel):
            return leaf
        value = as_value(leaf)
        if value is None:
            raise _no_data(module, leaf, "")
        return value

    return fresh(map_leaves(as_symbol, outputs))
