"""What comes out of a call: converted to data, and checked where it was declared."""

from __future__ import annotations

import inspect
from typing import Any

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
from synmod.leaves.frozen import frozen
from synmod.leaves.nests import MAPPING, aligned, kind_of, leaves, map_leaves, pack

from .contract import ANY_CLASS, KnownSchemas, fresh, symbols_of, title_of
from .declaring import UNDECLARED
from .record import Module, kind_text, where

_UNSET = object()


class DeclaredOutputs:
    """The outputs that a module declares: a nest of symbols, or nothing.

    `known` answers the common output, one value, by one lookup.
    """

    __slots__ = ("known", "nest", "nothing")

    def __init__(self, module: Module) -> None:
        declaration = module._record.declaration
        spec = module.__dict__.get("output_spec", getattr(module, "_class_output_spec", _UNSET))
        if spec is _UNSET or spec is None:
            flow = module._record.flow
            spec = declaration.call.outputs if flow is None else flow.output_symbols()
        self.nothing = spec is UNDECLARED
        self.nest: Any = None if self.nothing else symbols_of(spec, f"{where(module)}: output_spec")
        self.known = KnownSchemas()

    def fresh(self) -> Any:
        """Return new symbols, one nest for each symbolic call."""
        return fresh(self.nest)

    def nones(self) -> Any:
        """Return the declared structure with None at every leaf: what a call that is not taken returns."""
        return None if self.nothing else map_leaves(lambda _: None, self.nest)


def declared_outputs(module: Module) -> DeclaredOutputs:
    """Return the outputs that `module` declares; made once."""
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
        CallError: It is not data, has another structure than declared, or is None where `call` is annotated without it.
        SchemaError: A leaf is not valid for its declared schema.
    """
    if module._record.flow is not None:  # a graph checks each of its steps against what was recorded
        return output
    if output is None:
        call = module._record.declaration.call
        if call.outputs is UNDECLARED or call.may_return_none:
            return None
        raise CallError(
            f"{where(module)}: call returned None, which its annotation does not allow: is a `return` missing? Where "
            "None may come, write `| None` behind the return annotation."
        )
    declared = declared_outputs(module)
    if declared.nothing:
        if kind_of(output) == MAPPING and not any(_is_output(leaf) for leaf in leaves(output)):
            raise _not_data(module, output, "")  # plain JSON
        return map_leaves(lambda leaf: leaf if leaf is None else _as_value(module, leaf, ""), output)
    if isinstance(declared.nest, SymbolicDataModel):
        value, by_schema = _fits(module, declared.nest, output, "")
        if by_schema:
            declared.known = declared.known.plus(value, ANY_CLASS if declared.nest._model is None else value._model)
        return value
    pairs = aligned(declared.nest, output)
    if pairs is None:
        raise CallError(
            f"{where(module)}: call returned {kind_text(output)} of another structure than it declares: "
            f"{kind_text(declared.nest)} with {len(leaves(declared.nest))} leaves."
        )
    values = (
        leaf if leaf is None else _fits(module, wanted, leaf, f", leaf {'/'.join(map(str, path))}")[0]
        for path, wanted, leaf in pairs
    )
    return pack(declared.nest, values)


def _fits(module: Module, wanted: SymbolicDataModel | None, x: Any, at: str) -> tuple[JsonDataModel[Any], bool]:
    """Check one leaf against what is declared; whether its schema alone shows that it fits."""
    if wanted is None:
        return _as_value(module, x, at), False
    schema, model = wanted._schema, wanted._model
    place = f"{where(module)}: the output of call{at}"
    if isinstance(x, dict):
        try:
            json = frozen(x)  # pyright: ignore[reportUnknownArgumentType]
        except DataError as error:
            raise DataError(f"{place}: {error}") from None
        validate(schema, json, f"{place}, declared {title_of(schema)}")
        if model is not None:
            validator_faults(model, json, place)
        return wrap(json, schema, model, wanted._label), False
    value = _as_value(module, x, at)
    fits = value._schema is schema or is_subschema(value._schema, schema)
    if not fits:
        try:
            validate(schema, value._json, f"{place}, declared {title_of(schema)}")
        except SchemaError as error:
            raise SchemaError(f"{error}\n  got {title_of(value._schema)}", error.errors) from None
    if model is not None and not (value._model is not None and issubclass(value._model, model)):
        validator_faults(model, value._json, place)  # not made from an instance: the validators have not run
        return value, False
    return value, fits


def _is_output(leaf: Any) -> bool:
    return leaf is None or isinstance(leaf, JsonDataModel | DataModel)


def _as_value(module: Module, x: Any, at: str) -> JsonDataModel[Any]:
    """Return a value as it is, and a model instance as a value."""
    if isinstance(x, DataModel):
        return to_value(x)
    if not isinstance(x, JsonDataModel):
        raise _not_data(module, x, at)
    return x  # pyright: ignore[reportUnknownVariableType]


def _not_data(module: Module, x: Any, at: str) -> CallError:
    start = f"{where(module)}: call returned {kind_text(x)}{at}, which is not data."
    if isinstance(x, SymbolicDataModel):
        return CallError(
            f"{where(module)}: call returned a symbol{at} where values went in: return what is made of the inputs."
        )
    if inspect.isawaitable(x):
        return CallError(f"{start} Write `return await ...`.")
    return CallError(
        f"{start} Wrap it, `return Answer(...)` or `sm.JsonDataModel(x, data_model=Answer)`, "
        "or declare `-> Answer` on call and return a plain JSON object."
    )


def symbolic_outputs(module: Module, outputs: Any) -> Any:
    """Return what a declaration or a trace gave as fresh symbols.

    Raises:
        CallError: A leaf is not data.
    """

    def as_datum(leaf: Any) -> Any:
        return leaf if leaf is None or isinstance(leaf, SymbolicDataModel) else _as_value(module, leaf, "")

    return fresh(map_leaves(as_datum, outputs))
